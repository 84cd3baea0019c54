package launch

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// backend starts processes somewhere. There is one for this machine; those for
// ssh, Slurm and Kubernetes will stand beside it, one file each.
type backend interface {
	// mapping is the value of PMI_process_mapping: which ranks share a node.
	mapping() string
	// host names the machine that a rank runs on.
	host(rank int) string
	// start starts a rank. The caller closes the files of spec afterwards.
	start(spec *rankSpec) (process, error)
	// close ends what start has left behind, after all ranks have ended.
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
	cores                 []int    // empty: any
}

// The descriptors that a rank finds open, after the three of every process.
const (
	pmiFD   = 3
	boardFD = 4
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
