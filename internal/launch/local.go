// The backend for this machine: child processes.
//
// All children are started from one OS thread, which lives until the job ends:
// the kernel kills a child when the *thread* that started it goes away
// (prctl PR_SET_PDEATHSIG), and a child inherits that thread's cores.
// Starting in parallel would gain nothing, because the Go runtime starts
// one process at a time (syscall.ForkLock).
package launch

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

type localBackend struct {
	ranks    int
	hostname string
	requests chan localRequest
	ended    chan struct{}
}

type localRequest struct {
	spec  *rankSpec
	reply chan<- localReply
}

type localReply struct {
	proc process
	err  error
}

func newLocalBackend(ranks int) *localBackend {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	b := &localBackend{ranks, host, make(chan localRequest), make(chan struct{})}
	go b.work()
	return b
}

func (b *localBackend) mapping() string { return fmt.Sprintf("(vector,(0,1,%d))", b.ranks) }

func (b *localBackend) host(int) string { return b.hostname }

func (b *localBackend) close() {
	close(b.requests)
	<-b.ended
}

// work is the one thread. It is not unlocked at the end, so that the runtime
// throws it away with whatever cores it was bound to.
func (b *localBackend) work() {
	runtime.LockOSThread()
	defer close(b.ended)
	for r := range b.requests {
		p, err := startLocal(r.spec)
		r.reply <- localReply{p, err}
	}
}

func (b *localBackend) start(spec *rankSpec) (process, error) {
	reply := make(chan localReply, 1)
	b.requests <- localRequest{spec, reply}
	r := <-reply
	return r.proc, r.err
}

func startLocal(spec *rankSpec) (process, error) {
	restore, err := bindThread(spec.cores)
	if err != nil {
		return nil, fmt.Errorf("binding rank %d to cores %v: %w", spec.rank, spec.cores, err)
	}
	defer restore()
	files := []*os.File{spec.stdin, spec.stdout, spec.stderr, spec.pmi}
	if spec.board != nil {
		files = append(files, spec.board)
	}
	p, err := os.StartProcess(spec.prog, spec.args, &os.ProcAttr{
		Dir: spec.dir, Env: spec.env, Files: files, Sys: childAttr(),
	})
	if err != nil {
		return nil, fmt.Errorf("starting rank %d: %w", spec.rank, err)
	}
	return &localProcess{p}, nil
}

type localProcess struct{ p *os.Process }

func (l *localProcess) pid() int { return l.p.Pid }

// signal goes to the process group, of which the rank is the leader: a rank may
// be a shell script, and the program its child.
func (l *localProcess) signal(sig syscall.Signal) { syscall.Kill(-l.p.Pid, sig) }

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
