package launch

import (
	"os"
	"syscall"
)

// The signals that Windows does not have, by their numbers on Linux: an agent there may
// be sent them.
const (
	sigStop = syscall.Signal(19)
	sigTstp = syscall.Signal(20)
)

var signalNames = map[syscall.Signal]string{
	syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT", syscall.SIGABRT: "SIGABRT",
	syscall.SIGKILL: "SIGKILL", syscall.SIGPIPE: "SIGPIPE", syscall.SIGTERM: "SIGTERM", sigStop: "SIGSTOP", sigTstp: "SIGTSTP",
}

func signalName(sig syscall.Signal) string { return signalNames[sig] }

func signalNumber(name string) syscall.Signal {
	for sig, n := range signalNames {
		if n == name {
			return sig
		}
	}
	return 0
}

// signalGroup kills the process: there are no other signals.
func signalGroup(pid int, sig syscall.Signal) {
	if p, err := os.FindProcess(pid); err == nil && sig != sigStop && sig != sigTstp {
		_ = p.Kill() // it may have ended
	}
}

func stopSelf() {}

func readNow(fd uintptr, buf []byte) (int, error) { return syscall.Read(syscall.Handle(fd), buf) }
