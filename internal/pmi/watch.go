package pmi

// Asynchronous notifications to a client. Without a launcher, rank 0 sends notices of
// failures, which a goroutine reads (rendezvous_join.go). A launcher sends none, but the
// kernel closes its end of the connection when it exits. A goroutine waits for that on a
// copy of the descriptor, so that it does not consume answers to calls. It costs nothing
// while nothing happens.

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func (c *wireClient) Watch(lost func(error)) {
	reported := func(err error) {
		if !c.leaving.Load() {
			lost(err)
		}
	}
	if c.notice != nil {
		c.notice.listen(func(d Death) { reported(&DeadError{"watching the other ranks", d}) })
		return
	}
	socket, ok := c.conn.(syscall.Conn)
	if !ok {
		return
	}
	line, err := copyDescriptor(socket)
	if err != nil {
		return // out of descriptors: the next request will fail instead
	}
	c.line.Store(line)
	c.holdLifeline()
	go func() {
		defer line.Close()
		if hungUp(line) {
			reported(&LauncherError{"it closed its connection to this rank"})
		}
	}()
}

// endWatch stops the notifications. Close calls it.
func (c *wireClient) endWatch() {
	c.leaving.Store(true)
	for _, f := range []*os.File{c.line.Load(), c.held.Load()} {
		if f != nil {
			f.Close()
		}
	}
}

// holdLifeline opens a write end of the launcher's lifeline. While it is open, the kernel
// does not kill this process when the launcher exits: the process notices that itself,
// and exits by itself (internal/launch/lifeline.go).
func (c *wireClient) holdLifeline() {
	if c.lifeline == "" {
		return
	}
	if f, err := os.OpenFile("/proc/self/fd/"+c.lifeline, os.O_WRONLY, 0); err == nil {
		c.held.Store(f)
	}
}

func copyDescriptor(socket syscall.Conn) (*os.File, error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	if cerr := raw.Control(func(theirs uintptr) { fd, err = unix.FcntlInt(theirs, unix.F_DUPFD_CLOEXEC, 0) }); cerr != nil {
		return nil, cerr
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "launcher"), nil // nonblocking, like the original
}

// hungUp waits until the other end closes the connection. It returns false if this end
// closed it.
func hungUp(line *os.File) bool {
	raw, err := line.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	// The runtime calls the function again after every event on the descriptor. It does
	// not read answers, which belong to the calls that wait for them.
	_ = raw.Read(func(fd uintptr) bool {
		look := []unix.PollFd{{Fd: int32(fd), Events: hangUpEvents}}
		n, err := unix.Poll(look, 0)
		gone = err == nil && n > 0 && look[0].Revents&(hangUpEvents|unix.POLLERR) != 0
		return gone
	})
	return gone
}
