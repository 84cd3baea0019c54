//go:build !linux

package doctor

import (
	"errors"
	"net"
)

// forbidFragmentation fails: other systems have no common option, so the trial with full
// packets is skipped.
func forbidFragmentation(*net.UDPConn) error { return errors.ErrUnsupported }
