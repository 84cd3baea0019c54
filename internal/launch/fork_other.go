//go:build unix && !linux

package launch

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttr cannot make the kernel kill a child with the launcher: only Linux can.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// shellAttr is for the remote shell.
func shellAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// bindThread does nothing: only Linux can bind a thread to cores.
func bindThread([]int) (restore func(), err error) { return func() {}, nil }

// socketPair creates a connected pair: ours is nonblocking, theirs blocks, and both are
// close-on-exec.
func socketPair() (ours, theirs int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, 0, err
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	return fds[0], fds[1], unix.SetNonblock(fds[0], true)
}

// outputPipe creates the pipe of an output stream: ours is nonblocking.
func outputPipe() (ours int, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	var fds [2]int
	if err := unix.Pipe(fds[:]); err != nil {
		return 0, nil, err
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	return fds[0], os.NewFile(uintptr(fds[1]), "output"), unix.SetNonblock(fds[0], true)
}

// inForeground reports whether this process may read from a terminal.
func inForeground(tty uintptr) bool {
	group, err := unix.IoctlGetInt(int(tty), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func isTerminal(fd uintptr) bool {
	_, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP)
	return err == nil
}
