package doctor

import (
	"net"

	"golang.org/x/sys/unix"
)

// forbidCutting makes a socket send packets whole or not at all, also if the
// kernel believes to know that they are too large for the way.
func forbidCutting(c *net.UDPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var setErr error
	err = raw.Control(func(fd uintptr) {
		setErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
	})
	if err != nil {
		return err
	}
	return setErr
}
