//go:build !linux

package lab

import (
	"errors"
	"io"
)

// SpinIdle is for Linux only.
func SpinIdle(io.Reader) error {
	return errors.New("lab: this system has no scheduling class for idle time; use Linux")
}
