//go:build !linux

package bench

import (
	"errors"
	"net"
	"syscall"
)

// bareEnd exists on Linux only.
type bareEnd struct{}

func enlargeBuffers(_, _ string, _ syscall.RawConn) error { return nil }

func newBareEnd(conn net.Conn) (*bareEnd, error) { return nil, conn.Close() }

func (*bareEnd) write([]byte) error      { return errors.ErrUnsupported }
func (*bareEnd) read([]byte) error       { return errors.ErrUnsupported }
func (*bareEnd) readAsleep([]byte) error { return errors.ErrUnsupported }
func (*bareEnd) becomeReader()           {}
func (*bareEnd) await() error            { return errors.ErrUnsupported }
func (*bareEnd) shutdown()               {}
func (*bareEnd) close()                  {}
