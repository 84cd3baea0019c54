package pmi

import (
	"errors"
	"os"
	"syscall"
)

// copyDescriptor fails: a launcher passes no sockets on this system (inherit_windows.go).
func copyDescriptor(syscall.Conn) (*os.File, error) { return nil, errors.ErrUnsupported }

// hungUp is never called: there is no copy to wait on.
func hungUp(*os.File) bool { return false }
