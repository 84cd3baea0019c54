//go:build unix

package launch

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	sigStop = syscall.SIGSTOP
	sigTstp = syscall.SIGTSTP
)

func signalName(sig syscall.Signal) string { return unix.SignalName(sig) }

func signalNumber(name string) syscall.Signal { return unix.SignalNum(name) }

// signalGroup sends a signal to the process group that a process leads.
func signalGroup(pid int, sig syscall.Signal) { _ = syscall.Kill(-pid, sig) } // it may have ended

// stopSelf stops this process until SIGCONT.
func stopSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

// readNow reads what a descriptor has.
func readNow(fd uintptr, buf []byte) (int, error) { return syscall.Read(int(fd), buf) }
