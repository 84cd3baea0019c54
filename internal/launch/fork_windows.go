package launch

import (
	"errors"
	"os"
	"syscall"
)

// Windows starts no ranks: a process inherits no sockets there, over which it would speak
// PMI. Its ranks are started without a launcher (docs/reference/platforms.md).

func childAttr() *syscall.SysProcAttr { return nil }

func shellAttr() *syscall.SysProcAttr { return nil }

func bindThread([]int) (restore func(), err error) { return func() {}, nil }

func socketPair() (ours, theirs int, err error) {
	return 0, 0, errors.New("muster run needs a Unix system: processes of Windows inherit no sockets; start the ranks without a launcher, by four variables (docs/guide/hosts.md)")
}

func outputPipe() (ours int, theirs *os.File, err error) { return 0, nil, errors.ErrUnsupported }

func inForeground(uintptr) bool { return true }

func isTerminal(uintptr) bool { return false }
