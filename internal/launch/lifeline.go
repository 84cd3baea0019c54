package launch

// The lifeline: a pipe that ties all processes of a rank to the launcher, or to the
// agent that has started it. The kernel kills a process with its parent
// (PR_SET_PDEATHSIG), but not the children of that process, and a rank is often a shell
// that runs the program. So each rank inherits a read end of a pipe that asks for a
// signal to the rank's process group when something happens to the pipe (F_SETOWN,
// F_SETSIG and O_ASYNC of fcntl(2)). Nothing is ever written into it. What happens is
// that its last write end is closed: that of the launcher, by the kernel, however the
// launcher ends. Programs need not know about it, and it costs nothing until then.
//
// A rank of Muster that has joined the job holds a write end too (internal/pmi/watch.go),
// because it notices the end of the launcher itself: its calls return errors, and it
// says why it ends. The kernel kills what is left when it is gone.

import (
	"os"
	"syscall"
)

// lifeline is the pipe. A nil lifeline ties nobody.
type lifeline struct{ read, write *os.File }

func newLifeline() *lifeline {
	read, write, err := os.Pipe()
	if err != nil {
		return nil
	}
	l := &lifeline{read, write}
	probe := l.end()
	if probe == nil {
		l.close() // this system has no such pipes
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

// end opens a read end of its own for a rank; nil if that does not work.
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

// tie ties the group of a rank, which has inherited the end.
func tie(end *os.File, group int) {
	if end != nil {
		_ = ownLifeline(end, -group) // without it the group still dies with its leader's parent
	}
}

// untie lets the group of a rank be: its own process has ended, and what that has left
// behind may stay.
func untie(end *os.File) {
	if end != nil {
		_ = ownLifeline(end, 0)
		end.Close()
	}
}
