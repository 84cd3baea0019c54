package bench

import (
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bareEnd is one end of a connection that is used by raw system calls, without the Go scheduler.
// Reads poll, as a rank in the library does.
type bareEnd struct {
	conn net.Conn
	fd   int
}

// bareMessageBuffer is the size of the socket's buffers: the longest message that the kernels of
// both ends can move alone.
const bareMessageBuffer = 8 << 20

// enlargeBuffers is for a socket that is not connected yet: its window scale follows from the
// buffer. Without CAP_NET_ADMIN the kernel's limit holds.
func enlargeBuffers(_, _ string, raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) {
		for _, option := range []int{unix.SO_SNDBUFFORCE, unix.SO_RCVBUFFORCE} {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, bareMessageBuffer)
		}
	})
}

func newBareEnd(conn net.Conn) (*bareEnd, error) {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	e := &bareEnd{conn: conn}
	return e, raw.Control(func(fd uintptr) { e.fd = int(fd) })
}

func (e *bareEnd) write(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(e.fd, b)
		if err != nil && err != unix.EAGAIN && err != unix.EINTR {
			return err
		}
		b = b[max(n, 0):]
	}
	return nil
}

func (e *bareEnd) read(b []byte) error { return e.readAll(b, func() error { return nil }) }

// readAsleep is read for a thread that sleeps while there is nothing to read.
func (e *bareEnd) readAsleep(b []byte) error { return e.readAll(b, e.await) }

func (e *bareEnd) readAll(b []byte, await func() error) error {
	for len(b) > 0 {
		if err := await(); err != nil {
			return err
		}
		n, err := unix.Read(e.fd, b) // Go made the socket non-blocking
		switch {
		case n == 0 && err == nil:
			return io.ErrUnexpectedEOF
		case err != nil && err != unix.EAGAIN && err != unix.EINTR:
			return err
		}
		b = b[max(n, 0):]
	}
	return nil
}

// becomeReader requests a short time slice for this thread, which then preempts one that computes.
// Kernels before 6.12 ignore the request.
func (e *bareEnd) becomeReader() {
	if attr, err := unix.SchedGetAttr(0, 0); err == nil {
		attr.Runtime = uint64(100 * time.Microsecond)
		_ = unix.SchedSetAttr(0, attr, 0)
	}
}

// await sleeps until there is something to read.
func (e *bareEnd) await() error {
	p := []unix.PollFd{{Fd: int32(e.fd), Events: unix.POLLIN}}
	_, err := unix.Poll(p, -1)
	for err == unix.EINTR {
		_, err = unix.Poll(p, -1)
	}
	return err
}

// shutdown ends reads and sleeps at both ends.
func (e *bareEnd) shutdown() { _ = unix.Shutdown(e.fd, unix.SHUT_RDWR) }

func (e *bareEnd) close() {
	if e != nil {
		_ = e.conn.Close() // nothing is under way
	}
}
