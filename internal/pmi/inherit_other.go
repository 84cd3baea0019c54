//go:build unix && !linux

package pmi

import (
	"os"
	"syscall"
)

// inheritSocket takes over a socket inherited from the launcher.
func inheritSocket(fd int) (wireConn, error) {
	syscall.CloseOnExec(fd)
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "launcher"), nil
}

// openBoardFromEnv returns nil: this system has no boards.
func openBoardFromEnv(func(string) string, int) (*Board, error) { return nil, nil }
