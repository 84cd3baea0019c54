//go:build unix

package pmi

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

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
