package launch

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openLifeline opens a pipe again, so that the owner of its signals can be set for this
// end alone.
func openLifeline(pipe *os.File, sig syscall.Signal) (*os.File, error) {
	fd, err := control(pipe, func(fd int) (int, error) {
		return unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	if _, err = unix.FcntlInt(uintptr(fd), unix.F_SETSIG, int(sig)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_ASYNC)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "lifeline"), nil
}

// ownLifeline sets the recipient of the signal: a process, a process group if negative,
// none if 0.
func ownLifeline(end *os.File, owner int) error {
	_, err := control(end, func(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_SETOWN, owner) })
	return err
}

// control calls fn with the descriptor of a file without changing its mode, as Fd would.
func control(f *os.File, fn func(fd int) (int, error)) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	if cerr := raw.Control(func(fd uintptr) { n, err = fn(int(fd)) }); cerr != nil {
		return 0, cerr
	}
	return n, err
}
