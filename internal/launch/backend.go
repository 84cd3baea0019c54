package launch

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/internal/pmi"
)

// backend is where the ranks of a job run: this machine (local.go) or several
// hosts (remote.go). What happens to ranks it posts to the job as events.
type backend interface {
	// start starts all ranks, or begins to: each is posted as started, or one
	// event reports why the job cannot be.
	start()
	// host names the machine that a rank runs on.
	host(rank int) string
	// signalAll reaches all ranks that run, and the processes that they have
	// started.
	signalAll(sig syscall.Signal)
	// markDead writes a death on every board.
	markDead(d pmi.Death)
	// pulse reports whether the ranks move; false if there is no board to tell.
	pulse() (pulse, bool)
	// rows is what the ranks say of themselves, in order of ranks, and which
	// hosts did not answer.
	rows() (rows []rankRow, silent []string)
	// learnt is the number of ranks that are known to know of a death.
	learnt() int
	// drain waits for the last lines of output, after all ranks have ended.
	drain()
	// close ends what was left behind.
	close()
}

// rankSpec is a process to start.
type rankSpec struct {
	rank                  int
	prog                  string
	args                  []string // with the program's name first
	env                   []string
	dir                   string
	stdin, stdout, stderr *os.File
	pmi                   *os.File // becomes descriptor pmiFD
	board                 *os.File // becomes descriptor boardFD; may be nil
	life                  *os.File // becomes descriptor lifeFD; may be nil
	cores                 []int    // empty: any
}

// The descriptors that a rank finds open, after the three of every process.
const (
	pmiFD   = 3
	boardFD = 4
	lifeFD  = 5
)

// process is a rank that was started.
type process interface {
	pid() int
	// signal reaches the rank and the processes that it has started.
	signal(sig syscall.Signal)
	// wait returns when the rank has ended. It is called once.
	wait() ending
}

// ending is how a process ended.
type ending struct {
	code   int
	signal syscall.Signal // not 0: the signal that killed it
	err    error          // not nil: it could not be found out
}

// status is what a shell would say.
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
		return "killed by " + unix.SignalName(e.signal)
	case e.err != nil:
		return "lost: " + e.err.Error()
	}
	return fmt.Sprintf("exit status %d", e.code)
}

// explained adds what the launcher's report, unlike the errors of the ranks, has
// room for.
func (e ending) explained() string {
	switch e.signal {
	case 0:
		return e.String()
	case syscall.SIGKILL:
		return e.String() + " (by hand, or by the kernel for lack of memory: see dmesg)"
	}
	return fmt.Sprintf("%s (%s)", e, e.signal)
}
