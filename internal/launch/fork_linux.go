package launch

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttr makes a child the leader of its own process group, so that a
// signal reaches its children too and the terminal's keys reach only the
// launcher, and lets it die with the launcher, however that dies.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// shellAttr is for the command that reaches a host. When the launcher dies it is
// asked to end; the agent behind it also sees its input end.
func shellAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// bindThread keeps the calling thread, and the child that it starts next, on
// the given cores until restore is called.
func bindThread(cores []int) (restore func(), err error) {
	if len(cores) == 0 {
		return func() {}, nil
	}
	var was, want unix.CPUSet
	if err := unix.SchedGetaffinity(0, &was); err != nil {
		return nil, err
	}
	for _, c := range cores {
		want.Set(c)
	}
	if err := unix.SchedSetaffinity(0, &want); err != nil {
		return nil, err
	}
	return func() { unix.SchedSetaffinity(0, &was) }, nil
}

// socketPair makes a connected pair: ours can be polled, theirs blocks, and
// neither is inherited by accident.
func socketPair() (ours, theirs int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, err
	}
	return fds[0], fds[1], unix.SetNonblock(fds[0], true)
}

// inForeground reports whether this process may read from a terminal. Where it
// may not, a read would stop it.
func inForeground(tty uintptr) bool {
	group, err := unix.IoctlGetInt(int(tty), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func isTerminal(fd uintptr) bool {
	_, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
	return err == nil
}
