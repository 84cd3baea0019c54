//go:build !linux

package doctor

import (
	"errors"
	"net"
)

// forbidCutting: there is no one way for all other systems, so that the trial
// with full packets is left out.
func forbidCutting(*net.UDPConn) error { return errors.ErrUnsupported }
