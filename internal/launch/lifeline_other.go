//go:build !linux

package launch

import (
	"errors"
	"os"
	"syscall"
)

func openLifeline(*os.File, syscall.Signal) (*os.File, error) {
	return nil, errors.ErrUnsupported // pipes cannot be opened again
}

func ownLifeline(*os.File, int) error { return errors.ErrUnsupported }
