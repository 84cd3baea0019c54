//go:build !linux

package launch

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttr: only Linux can tie a child's life to the launcher's.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// shellAttr is for the command that reaches a host.
func shellAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// bindThread: only Linux lets a thread choose its cores.
func bindThread([]int) (restore func(), err error) { return func() {}, nil }

// socketPair makes a connected pair: ours can be polled, theirs blocks, and
// neither is inherited by accident.
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

// inForeground reports whether this process may read from a terminal.
func inForeground(tty uintptr) bool {
	group, err := unix.IoctlGetInt(int(tty), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func isTerminal(fd uintptr) bool {
	_, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP)
	return err == nil
}
