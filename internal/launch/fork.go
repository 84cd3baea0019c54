package launch

// Child processes. One OS thread, which runs until the job ends, starts all children:
// the kernel signals a child when the thread that started it exits (prctl
// PR_SET_PDEATHSIG), and a child inherits that thread's core binding. Starting in
// parallel would gain nothing, because the Go runtime starts one process at a time
// (syscall.ForkLock).

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// forker runs functions on that thread.
type forker struct {
	requests chan func()
	ended    chan struct{}
}

func newForker() *forker {
	f := &forker{make(chan func()), make(chan struct{})}
	go f.work()
	return f
}

// work does not unlock its thread at the end, so that the runtime destroys the thread
// together with its core binding.
func (f *forker) work() {
	runtime.LockOSThread()
	defer close(f.ended)
	for request := range f.requests {
		request()
	}
}

// do runs a function on the thread and waits for it.
func (f *forker) do(fn func()) {
	done := make(chan struct{})
	f.requests <- func() {
		fn()
		close(done)
	}
	<-done
}

// close ends the thread, and thereby the children that still run.
func (f *forker) close() {
	close(f.requests)
	<-f.ended
}

// start starts a rank. The caller closes the files of spec afterwards.
func (f *forker) start(spec *rankSpec) (p process, err error) {
	f.do(func() { p, err = startLocal(spec) })
	return p, err
}

func startLocal(spec *rankSpec) (process, error) {
	restore, err := bindThread(spec.cores)
	if err != nil {
		return nil, fmt.Errorf("bind rank %d to cores %v: %w", spec.rank, spec.cores, err)
	}
	defer restore()
	files := []*os.File{spec.stdin, spec.stdout, spec.stderr, spec.pmi}
	switch { // a nil file stands for a closed descriptor
	case spec.lifeline != nil:
		files = append(files, spec.board, spec.lifeline)
	case spec.board != nil:
		files = append(files, spec.board)
	}
	p, err := startProcess(spec.prog, spec.args, &os.ProcAttr{
		Dir: spec.dir, Env: spec.env, Files: files, Sys: childAttr(),
	})
	if err != nil {
		return nil, fmt.Errorf("start rank %d: %w", spec.rank, err)
	}
	attach(spec.lifeline, p.pid())
	return p, nil
}

type localProcess struct{ p *os.Process }

func (l *localProcess) pid() int { return l.p.Pid }

// signal sends a signal to the process group that the rank leads: a rank may be a shell
// script with the program as its child.
func (l *localProcess) signal(sig syscall.Signal) { signalGroup(l.p.Pid, sig) }

func (l *localProcess) wait() ending {
	state, err := l.p.Wait()
	if err != nil {
		return ending{err: err}
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ending{signal: ws.Signal()}
	}
	return ending{code: state.ExitCode()}
}
