package launch

// A poller reads the descriptors of a crew: the sockets of the ranks' PMI clients, or the
// pipes of their output. On Linux one goroutine does that for all ranks, with epoll, and
// learns of exits by pidfds (poll_linux.go), so that a rank takes neither a goroutine nor
// a thread. Elsewhere, and if the kernel has no pidfds, goroutines do (this file).

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// reader handles the data of a descriptor. Calls for one reader do not run concurrently.
// On Linux the readers of a poller share its goroutine, so one that blocks holds back the
// others.
type reader interface {
	// data receives what was read. It is valid during the call.
	data(text []byte)
	// end is called once, with nil if the other end was closed.
	end(err error)
}

// conn is a descriptor of a poller.
type conn interface {
	io.Writer
	// watch begins to read. The descriptor is closed after the last data.
	watch(r reader) error
	// hangUp ends a connection; its reader gets the end.
	hangUp()
	// close is for a descriptor that is not watched.
	close()
}

// exitWaiter handles the exit of a process.
type exitWaiter interface{ handleExit(end ending) }

type poller interface {
	// open takes over a nonblocking descriptor.
	open(fd int) conn
	// await calls w when a process has exited and what it sent to c has been read.
	await(p process, c conn, w exitWaiter)
	// drain returns when all descriptors have ended, or after the timeout when what they
	// have has been read.
	drain(timeout time.Duration)
	// close ends the reading. Exits must have been reported.
	close()
}

// portablePoller has a goroutine for each descriptor and process.
type portablePoller struct {
	mu      sync.Mutex
	conns   []*portableConn
	readers sync.WaitGroup
}

type portableConn struct {
	poller *portablePoller
	file   *os.File
	ended  chan struct{}
}

func (p *portablePoller) open(fd int) conn {
	return &portableConn{p, os.NewFile(uintptr(fd), "rank"), make(chan struct{})}
}

func (c *portableConn) Write(text []byte) (int, error) { return c.file.Write(text) }

func (c *portableConn) close() { c.file.Close() }

func (c *portableConn) hangUp() { c.file.Close() }

func (c *portableConn) watch(r reader) error {
	c.poller.mu.Lock()
	c.poller.conns = append(c.poller.conns, c)
	c.poller.mu.Unlock()
	c.poller.readers.Go(func() {
		defer close(c.ended)
		defer c.file.Close()
		from := pipeEnd{f: c.file}
		buf := make([]byte, 4<<10)
		for {
			n, err := from.Read(buf)
			if n > 0 {
				r.data(buf[:n])
				continue
			}
			if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
				err = nil
			}
			r.end(err)
			return
		}
	})
	return nil
}

// socketTimeout is how long await waits for the end of a rank's socket after its process
// has exited, so that an abort request is handled before the failure that follows it.
// Only a child process of the rank can hold the socket open for longer.
const socketTimeout = 20 * time.Millisecond

func (p *portablePoller) await(proc process, c conn, w exitWaiter) {
	go func() {
		end := proc.wait()
		if c, ok := c.(*portableConn); ok {
			select {
			case <-c.ended:
			case <-time.After(socketTimeout):
			}
		}
		w.handleExit(end)
	}()
}

func (p *portablePoller) drain(timeout time.Duration) {
	p.mu.Lock()
	for _, c := range p.conns {
		c.file.SetReadDeadline(time.Now().Add(timeout))
	}
	p.mu.Unlock()
	p.readers.Wait()
}

func (p *portablePoller) close() { p.drain(0) }
