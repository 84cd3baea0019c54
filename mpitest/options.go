package mpitest

import (
	"time"

	"github.com/muster-mpi/muster/mpi"
)

const (
	// Timeout is the default of Options.Timeout.
	Timeout = 120 * time.Second
	// StuckAfter is the default of Options.StuckAfter.
	StuckAfter = 2 * time.Second
)

// Options are the settings of [RunOptions]. The zero value selects the defaults.
type Options struct {
	// Config is the configuration of the ranks, as in [RunConfig]. Default nil.
	Config *mpi.Config
	// Timeout is the time after which the test fails and reports the ranks that have not
	// ended. Default [Timeout].
	Timeout time.Duration
	// StuckAfter is the time after which the test fails and reports which rank waits for
	// which, if every rank waits in a call and none begins or ends a wait. Default
	// [StuckAfter]; a negative value disables the check, and Timeout remains. A launcher has
	// its own setting: "muster run --stuck-after".
	//
	// A call with a context that can end does not count as a wait. Nor is a test stuck while
	// one of its goroutines outside the library runs, sleeps, or waits for a system call or
	// for I/O. A goroutine that blocks in a channel operation counts as waiting, also if it
	// waits for a timer, such as time.After: a test whose ranks all wait for such a
	// goroutine needs a longer time here.
	StuckAfter time.Duration
}

func (o *Options) setDefaults() {
	if o.Timeout == 0 {
		o.Timeout = Timeout
	}
	if o.StuckAfter == 0 {
		o.StuckAfter = StuckAfter
	}
}
