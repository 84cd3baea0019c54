package iwarp

import (
	"time"

	"golang.org/x/sys/unix"
)

// A reset may reach one end alone, and a host may vanish without a word. The end that only
// receives learns of it by a keepalive probe (RFC 9293 section 3.8.4), which the other host
// answers with a reset, or not at all.

// keepaliveIdle is how long a connection is idle before it is probed; the kernel counts whole
// seconds. A user of Retain has another path over which the other end tells of a reset.
const keepaliveIdle = time.Second

// keepAlive makes the kernel probe a connection. A kernel that does not know an option probes
// later, or not at all: that is no reason to refuse the connection.
func (cfg *Config) keepAlive(fd int) {
	if cfg.Retain {
		return
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(keepaliveIdle/time.Second))
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int(keepaliveIdle/time.Second))
}
