package launch

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttr makes a child the leader of its own process group, so that a signal also
// reaches its children and the terminal's keys reach only the launcher. The kernel kills
// the child when the launcher exits for any reason.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// shellAttr is for the remote shell. It gets SIGTERM when the launcher exits; the agent
// behind it also sees the end of its input.
func shellAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// bindThread binds the calling thread, and the children it starts, to the given cores
// until restore is called.
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

// socketPair creates a connected pair: ours is nonblocking, theirs blocks, and both are
// close-on-exec.
func socketPair() (ours, theirs int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, err
	}
	return fds[0], fds[1], unix.SetNonblock(fds[0], true)
}

// outputPipe creates the pipe of an output stream: ours is nonblocking.
func outputPipe() (ours int, theirs *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return 0, nil, err
	}
	return fds[0], os.NewFile(uintptr(fds[1]), "output"), unix.SetNonblock(fds[0], true)
}

// inForeground reports whether this process may read from a terminal. Otherwise a read
// would stop the process.
func inForeground(tty uintptr) bool {
	group, err := unix.IoctlGetInt(int(tty), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func isTerminal(fd uintptr) bool {
	_, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
	return err == nil
}
