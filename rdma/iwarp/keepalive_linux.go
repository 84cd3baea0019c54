//go:build !muster_portable

package iwarp

import (
	"time"

	"golang.org/x/sys/unix"
)

// How the kernel detects a dead connection.
//
// TCP_USER_TIMEOUT (RFC 5482) ends a connection whose bytes are not acked in time; without it
// that takes a quarter of an hour. TCP doubles the pause before each attempt, up to two
// minutes: TCP_RTO_MAX_MS, since Linux 6.15, keeps it short, so that a connection resumes
// soon after a network that was interrupted.
//
// A reset may reach only one end, and a host may disappear silently. The end that only
// receives detects it by a keepalive probe (RFC 9293 section 3.8.4), which the other host
// answers with a reset, or not at all.

const (
	// longestBackoff is the longest pause before another attempt; the kernel accepts no
	// less.
	longestBackoff = time.Second
	// keepaliveIdle is how long a connection is idle before it is probed; the kernel
	// counts whole seconds. A user of Retain has another path over which the other end
	// reports a reset.
	keepaliveIdle = time.Second
	tcpRTOMax     = 44 // TCP_RTO_MAX_MS
)

// setTimeouts sets the kernel's timeouts of a connection. A kernel without one of the
// options notices later: that is no reason to refuse the connection.
func (cfg *Config) setTimeouts(c conn) {
	fd := int(c)
	timeout := cfg.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(timeout/time.Millisecond))
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, tcpRTOMax, int(longestBackoff/time.Millisecond))
	if cfg.Retain {
		return
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(keepaliveIdle/time.Second))
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int(keepaliveIdle/time.Second))
}
