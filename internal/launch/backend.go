package launch

import (
	"fmt"
	"os"
	"syscall"
)

// backend runs the ranks of a job on this machine (local.go) or on several hosts
// (remote.go). It posts events about the ranks to the job.
type backend interface {
	// start starts all ranks, or begins to. It posts an event for each started rank,
	// or one that reports why the job cannot be started.
	start()
	// host returns the name of the machine that a rank runs on.
	host(rank int) string
	// signalAll sends a signal to all running ranks and to their child processes.
	signalAll(sig syscall.Signal)
	// markDead writes the failure of ranks of one host to every board.
	markDead(ranks spans, host, status string)
	// pulse returns the progress of the ranks; false if there is no board.
	pulse() (pulse, bool)
	// rows returns the board rows of all ranks, in order, with the states of their threads
	// if these are wanted, and the hosts that did not answer.
	rows(threads bool) (rows []rankRow, silent []string)
	// countNoticed returns the number of ranks that have noticed a failure.
	countNoticed() int
	// drain waits for the last lines of output, after all ranks have exited.
	drain()
	// close releases the resources and ends remaining processes.
	close()
}

// rankSpec describes a process to start.
type rankSpec struct {
	rank                  int
	prog                  string
	args                  []string // with the program's name first
	env                   []string
	dir                   string
	stdin, stdout, stderr *os.File
	pmi                   *os.File // becomes descriptor pmiFD
	board                 *os.File // becomes descriptor boardFD; may be nil
	lifeline              *os.File // becomes descriptor lifelineFD; may be nil
	cores                 []int    // empty: any
}

// The descriptors that a rank inherits, after the three standard ones.
const (
	pmiFD      = 3
	boardFD    = 4
	lifelineFD = 5
)

// process is a started rank.
type process interface {
	pid() int
	// signal sends a signal to the rank and its child processes.
	signal(sig syscall.Signal)
	// wait returns when the rank has exited. It is called once.
	wait() ending
}

// ending describes how a process ended.
type ending struct {
	code   int
	signal syscall.Signal // not 0: the signal that killed it
	err    error          // not nil: the status is unknown
}

// status returns the exit status as a shell reports it.
func (e ending) status() int {
	switch {
	case e.signal != 0:
		return 128 + int(e.signal)
	case e.err != nil:
		return 1
	}
	return e.code
}

func (e ending) String() string {
	switch {
	case e.signal != 0:
		return "killed by " + signalName(e.signal)
	case e.err != nil:
		return "lost: " + e.err.Error()
	}
	return fmt.Sprintf("exit status %d", e.code)
}

// explain returns a longer description for the launcher's report.
func (e ending) explain() string {
	switch e.signal {
	case 0:
		return e.String()
	case syscall.SIGKILL:
		return e.String() + " (by a user, or by the kernel when it was out of memory: see dmesg)"
	}
	return fmt.Sprintf("%s (%s)", e, e.signal)
}
