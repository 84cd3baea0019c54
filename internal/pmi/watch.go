package pmi

// What a client learns without asking. Where there is no launcher, rank 0 sends news of
// deaths, which a goroutine reads (rendezvous_join.go). A launcher sends nothing by
// itself, but the kernel closes its end of the connection when it dies: a goroutine
// waits for that on a copy of the descriptor, so that it takes no answers away from
// calls. It costs nothing while nothing comes.

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func (c *wireClient) Watch(lost func(error)) {
	told := func(err error) {
		if !c.leaving.Load() {
			lost(err)
		}
	}
	if c.news != nil {
		c.news.listen(func(d Death) { told(&DeadError{"watching the other ranks", d}) })
		return
	}
	socket, ok := c.conn.(syscall.Conn)
	if !ok {
		return
	}
	line, err := copyDescriptor(socket)
	if err != nil {
		return // as many descriptors as there may be: the next question will tell
	}
	c.line.Store(line)
	c.hold()
	go func() {
		defer line.Close()
		if hungUp(line) {
			told(&LauncherError{"it closed its connection to this rank"})
		}
	}()
}

// endWatch stops listening. Close calls it.
func (c *wireClient) endWatch() {
	c.leaving.Store(true)
	for _, f := range []*os.File{c.line.Load(), c.held.Load()} {
		if f != nil {
			f.Close()
		}
	}
}

// hold opens the other end of the launcher's lifeline. While it is open the kernel does
// not kill this process because the launcher has ended: it has noticed that itself, and
// ends by itself (internal/launch/lifeline.go).
func (c *wireClient) hold() {
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
	return os.NewFile(uintptr(fd), "launcher"), nil // it does not block, like the original
}

// hungUp waits for the other end to close the connection, and is false if this end did.
func hungUp(line *os.File) bool {
	raw, err := line.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	// The runtime calls again whenever something has happened to the descriptor.
	// Answers are left to the calls that wait for them.
	_ = raw.Read(func(fd uintptr) bool {
		look := []unix.PollFd{{Fd: int32(fd), Events: hangUpEvents}}
		n, err := unix.Poll(look, 0)
		gone = err == nil && n > 0 && look[0].Revents&(hangUpEvents|unix.POLLERR) != 0
		return gone
	})
	return gone
}
