package launch

// The lifeline: a pipe that makes the kernel kill all processes of a rank when the
// launcher, or the agent that started the rank, is gone. PR_SET_PDEATHSIG kills a process
// with its parent, but not the children of that process, and a rank is often a shell that
// runs the program. So each rank inherits a read end of a pipe, in the descriptor named
// by MUSTER_LIFELINE_FD, that requests a signal to the rank's process group when the state
// of the pipe changes (F_SETOWN, F_SETSIG and O_ASYNC of fcntl(2)). No data is ever
// written. The state changes when the last write end is closed: that of the launcher,
// which the kernel closes when the launcher exits for any reason. Programs need no code
// for it, and it costs nothing until then.
//
// A rank that uses Muster and has joined the job also holds a write end
// (internal/pmi/watch.go), because it notices the end of the launcher itself: its calls
// return errors, and it can report why it exits. When it has exited, the kernel kills the
// remaining processes of its group.

import (
	"os"
	"syscall"
)

// lifeline is the pipe. A nil lifeline has no effect.
type lifeline struct{ read, write *os.File }

func newLifeline() *lifeline {
	read, write, err := os.Pipe()
	if err != nil {
		return nil
	}
	l := &lifeline{read, write}
	probe := l.end()
	if probe == nil {
		l.close() // this system does not support it
		return nil
	}
	probe.Close()
	return l
}

func (l *lifeline) close() {
	if l != nil {
		l.read.Close()
		l.write.Close()
	}
}

// end opens a separate read end for a rank; it returns nil on failure.
func (l *lifeline) end() *os.File {
	if l == nil {
		return nil
	}
	f, err := openLifeline(l.read, syscall.SIGKILL)
	if err != nil {
		return nil
	}
	return f
}

// attach directs the signal to the process group of a rank, which has inherited the end.
func attach(end *os.File, group int) {
	if end != nil {
		_ = ownLifeline(end, -group) // on failure the rank itself still gets PR_SET_PDEATHSIG
	}
}

// detach removes the recipient of the signal: the rank itself has exited, and its
// remaining child processes may go on.
func detach(end *os.File) {
	if end != nil {
		_ = ownLifeline(end, 0)
		end.Close()
	}
}
