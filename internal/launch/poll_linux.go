package launch

// The poller of Linux: an epoll descriptor, which the Go runtime polls like a socket, so
// that the goroutine of the poller blocks no thread while it waits.

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pollBuffer is the buffer that the descriptors of a poller share.
const pollBuffer = 64 << 10

type epoller struct {
	file *os.File // of the epoll descriptor
	raw  syscall.RawConn
	buf  []byte
	done chan struct{} // closed when the goroutine has ended

	mu       sync.Mutex
	at       []polled // a slot for each descriptor so far; nil: it has ended
	opened   int      // descriptors in at
	draining bool
}

// polled is called by the poller's goroutine when its descriptor is ready.
type polled interface {
	ready()
	// last reads what the descriptor has and closes it.
	last()
}

func newPoller() poller {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return new(portablePoller)
	}
	err = unix.SetNonblock(fd, true)
	file := os.NewFile(uintptr(fd), "epoll")
	raw, rawErr := file.SyscallConn()
	if err = errors.Join(err, rawErr, file.SetReadDeadline(time.Time{})); err != nil { // the runtime cannot poll it
		file.Close()
		return new(portablePoller)
	}
	p := &epoller{file: file, raw: raw, buf: make([]byte, pollBuffer), done: make(chan struct{})}
	go p.run()
	return p
}

// run ends when the poller is closed or drained.
func (p *epoller) run() {
	defer close(p.done)
	var events [64]unix.EpollEvent
	for {
		n := 0
		err := p.raw.Read(func(fd uintptr) bool {
			n, _ = unix.EpollWait(int(fd), events[:], 0)
			return n > 0
		})
		if err != nil {
			break
		}
		for i := range n {
			if h := p.handler(int(events[i].Fd)); h != nil {
				h.ready()
			}
		}
		if p.isDrained() {
			return
		}
	}
	p.mu.Lock()
	rest := p.at
	p.mu.Unlock()
	for _, h := range rest {
		if h != nil {
			h.last()
		}
	}
}

func (p *epoller) handler(slot int) polled {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at[slot]
}

func (p *epoller) isDrained() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draining && p.opened == 0
}

// add watches a descriptor and stores its slot, which the handler may need at once.
func (p *epoller) add(fd int, h polled, slot *int) error {
	p.mu.Lock()
	*slot = len(p.at) // not one that has ended: an event of it may be pending
	p.at = append(p.at, h)
	p.opened++
	p.mu.Unlock()
	_, err := control(p.file, func(epoll int) (int, error) {
		return 0, unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(*slot)})
	})
	if err != nil {
		p.remove(*slot, fd)
	}
	return err
}

// remove forgets a descriptor, which is then closed. A copy of it in a child process would
// keep it in the epoll set, so it is removed there too.
func (p *epoller) remove(slot, fd int) {
	p.mu.Lock()
	p.at[slot] = nil
	p.opened--
	p.mu.Unlock()
	_, _ = control(p.file, func(epoll int) (int, error) { return 0, unix.EpollCtl(epoll, unix.EPOLL_CTL_DEL, fd, nil) })
}

func (p *epoller) drain(timeout time.Duration) {
	p.mu.Lock()
	p.draining = true
	if p.opened == 0 {
		timeout = 0
	}
	p.mu.Unlock()
	p.file.SetReadDeadline(time.Now().Add(timeout))
	<-p.done
}

func (p *epoller) close() {
	p.drain(0)
	p.file.Close()
}

// epollConn is a socket or a pipe.
type epollConn struct {
	poller *epoller
	reader reader
	slot   int

	mu sync.Mutex // protects fd, which answers to fences are written to by any goroutine
	fd int        // -1: closed
}

func (p *epoller) open(fd int) conn { return &epollConn{poller: p, fd: fd} }

func (c *epollConn) watch(r reader) error {
	c.reader = r
	return c.poller.add(c.fd, c, &c.slot)
}

// errUnread reports a rank that sends requests and does not read the answers.
var errUnread = errors.New("it does not read the answers to its requests")

// Write does not block: the answers that a client has not read fit in its socket many
// times.
func (c *epollConn) Write(text []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for written := 0; ; {
		if c.fd < 0 {
			return written, syscall.EPIPE
		}
		n, err := unix.Write(c.fd, text[written:])
		written += max(0, n)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return written, errUnread
		case err != nil:
			return written, err
		case written == len(text):
			return written, nil
		}
	}
}

func (c *epollConn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd >= 0 {
		unix.Close(c.fd)
		c.fd = -1
	}
}

func (c *epollConn) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd >= 0 {
		unix.Shutdown(c.fd, unix.SHUT_RDWR)
	}
}

func (c *epollConn) ready() { c.read() }

// read reads once, and reports whether there may be more.
func (c *epollConn) read() bool {
	if c.fd < 0 {
		return false
	}
	n, err := unix.Read(c.fd, c.poller.buf)
	switch {
	case n > 0:
		c.reader.data(c.poller.buf[:n])
		return true
	case err == unix.EAGAIN || err == unix.EINTR:
		return err == unix.EINTR
	}
	c.finish(err)
	return false
}

func (c *epollConn) finish(err error) {
	c.poller.remove(c.slot, c.fd)
	c.close()
	c.reader.end(err)
}

func (c *epollConn) last() {
	for c.read() {
	}
	if c.fd >= 0 {
		c.finish(nil)
	}
}

// pidProcess is a rank with its pidfd.
type pidProcess struct{ id, fd int }

func (p *pidProcess) pid() int { return p.id }

func (p *pidProcess) signal(sig syscall.Signal) { signalGroup(p.id, sig) }

func (p *pidProcess) wait() ending {
	if p.fd >= 0 {
		defer unix.Close(p.fd)
	}
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(p.id, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return ending{err: os.NewSyscallError("wait4", err)}
		case status.Signaled():
			return ending{signal: status.Signal()}
		default:
			return ending{code: status.ExitStatus()}
		}
	}
}

// startProcess starts a process and gets its pidfd, which is -1 if the kernel has none.
func startProcess(prog string, args []string, attr *os.ProcAttr) (process, error) {
	p := &pidProcess{fd: -1}
	attr.Sys.PidFD = &p.fd
	files := make([]uintptr, len(attr.Files))
	for i, f := range attr.Files {
		files[i] = ^uintptr(0)
		if f != nil {
			files[i] = f.Fd()
		}
	}
	var err error
	if p.id, err = syscall.ForkExec(prog, args, &syscall.ProcAttr{Dir: attr.Dir, Env: attr.Env, Files: files, Sys: attr.Sys}); err != nil {
		return nil, &os.PathError{Op: "fork/exec", Path: prog, Err: err}
	}
	return p, nil
}

// exitWait waits for a process: its pidfd becomes readable.
type exitWait struct {
	poller *epoller
	proc   *pidProcess
	conn   *epollConn
	waiter exitWaiter
	slot   int
}

func (p *epoller) await(proc process, c conn, waiter exitWaiter) {
	pp := proc.(*pidProcess)
	w := &exitWait{poller: p, proc: pp, conn: c.(*epollConn), waiter: waiter}
	if pp.fd < 0 || p.add(pp.fd, w, &w.slot) != nil {
		go func() { waiter.handleExit(pp.wait()) }()
	}
}

// ready reads the rest of the rank's socket first, so that an abort request is handled
// before the failure that follows it.
func (w *exitWait) ready() {
	for w.conn.read() {
	}
	w.poller.remove(w.slot, w.proc.fd)
	w.waiter.handleExit(w.proc.wait())
}

func (w *exitWait) last() {}
