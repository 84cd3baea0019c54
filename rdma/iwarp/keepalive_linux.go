//go:build !muster_portable

package iwarp

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/soft"
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
//
// TCP_USER_TIMEOUT also ends a connection whose peer acks everything and has no room: its
// program computes for long, and the receive buffers are taken. Datagrams then take over for
// the user of Retain. A mesh has nothing else, so it asks the kernel itself when it last got
// an ack. Keepalive probes elicit one every second, also from a host whose program is busy.

const (
	// longestBackoff is the longest pause before another attempt; the kernel accepts no
	// less.
	longestBackoff = time.Second
	// keepaliveIdle is how long a connection is idle before it is probed; the kernel
	// counts whole seconds. A user of Retain has another path over which the other end
	// reports a reset.
	keepaliveIdle = time.Second
	tcpRTOMax     = 44 // TCP_RTO_MAX_MS
	// looksPerTimeout is how often a mesh asks about a connection during Config.Timeout.
	looksPerTimeout = 8
	// leastTimeout is the shortest time without an ack after which a mesh ends a connection:
	// the kernel sends probes a second apart.
	leastTimeout = 3 * keepaliveIdle
	// kernelTimeout is the TCP_USER_TIMEOUT of a mesh, which ends connections long before.
	kernelTimeout = 24 * time.Hour
)

// setTimeouts sets the kernel's timeouts of a connection. A kernel without one of the
// options notices later: that is no reason to refuse the connection.
func (cfg *Config) setTimeouts(c conn) {
	fd := int(c)
	timeout := cfg.timeout()
	if cfg.endsSilent {
		timeout = kernelTimeout
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

// endSilent ends the connections of a mesh to hosts that have acked nothing for
// Config.Timeout, or leastTimeout. It returns the time until it is due again, 0 if it has ended some.
func (d *device) endSilent() time.Duration {
	if !d.cfg.endsSilent {
		return soft.Forever
	}
	s, now, limit := &d.sockets, time.Now(), max(d.cfg.timeout(), leastTimeout)
	period := limit / looksPerTimeout
	if rest := period - now.Sub(s.asked); rest > 0 {
		return rest
	}
	s.asked = now
	for _, q := range d.queues {
		if q.fd.none() {
			continue
		}
		info, err := unix.GetsockoptTCPInfo(int(q.fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if silent := time.Duration(info.Last_ack_recv) * time.Millisecond; err == nil && silent >= limit {
			q.cause, period = &rdma.SilenceError{For: silent}, 0
			q.lose(rdma.StatusPeerGone)
		}
	}
	return period
}
