//go:build !muster_portable

package soft

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// slice is the scheduler time slice of the progress thread. It needs little time, but
// soon: a thread with a short slice is preferred when it wakes, even on a core that
// another thread computes on (EEVDF, Linux 6.12). Older kernels ignore it.
const slice = 100_000 // ns

// longPause is a pause that may end slightly late.
const longPause = time.Millisecond

// osThread is the OS thread of a progress goroutine, which is locked to it only while the
// application is away: beside a spinning application a locked thread costs more than it
// gains.
type osThread struct {
	attr  unix.SchedAttr
	asked bool
	usual bool // the scheduling policy is the default one
	limit unix.Timespec
}

// enter locks the calling goroutine to a thread that is woken with priority, until
// leave.
func (t *osThread) enter() {
	runtime.LockOSThread()
	if !t.asked {
		t.asked = true
		if attr, err := unix.SchedGetAttr(0, 0); err == nil {
			t.attr, t.usual = *attr, attr.Policy == unix.SCHED_NORMAL
		}
	}
	t.set(slice)
}

// leave undoes enter.
func (t *osThread) leave() {
	t.set(0) // the system's default
	runtime.UnlockOSThread()
}

func (t *osThread) set(slice uint64) {
	if t.usual {
		t.attr.Runtime = slice
		_ = unix.SchedSetAttr(0, &t.attr, 0) // without it the goroutine only wakes later
	}
}

// pause sleeps for d. It sleeps in the kernel if d is short: a timer of the runtime
// would wake another thread first, which would then wake this one, and each may wait
// for a busy core. A long sleep in the kernel would alert the runtime's monitor, which
// takes the processor from the sleeping thread and then checks every 20 µs for some
// milliseconds whether there is more to take: with 16 ranks on two cores that was an
// eighth of all time. With GOMAXPROCS 1 the other goroutines must get the processor
// meanwhile.
func (t *osThread) pause(d time.Duration) {
	if runtime.GOMAXPROCS(0) == 1 || d >= longPause {
		time.Sleep(d)
		return
	}
	t.limit = unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&t.limit, nil) // a signal may end it early
}
