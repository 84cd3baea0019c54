package doctor

import (
	"net"

	"golang.org/x/sys/unix"
)

// forbidFragmentation disables fragmentation on a socket, also for packets above the path
// MTU that the kernel has recorded.
func forbidFragmentation(c *net.UDPConn) error {
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
