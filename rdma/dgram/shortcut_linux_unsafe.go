//go:build linux

package dgram

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The shortcut: a second socket, connected to the peer on this host that datagrams have gone
// to many times in a row. For a socket that is not connected the kernel looks up the route
// of every datagram, which is a tenth of all that a short one costs on its way from a host
// to itself; between hosts it is nothing beside the wire, and there is no shortcut.
//
// It only sends. Peers know a device by its incarnation and not by the address that datagrams come
// from, so nothing else changes for them. But one that has never heard of us would answer to
// that address, so only packets to acquaintances go this way: those that have acknowledged
// something that came from the socket itself. An error ends the shortcut; the socket then
// meets it too, and reports what it means.

// shortcutAfter is how many datagrams must go to a peer in a row.
const shortcutAfter = 64

type shortcut struct {
	fd     int // 0: none
	to     rawAddress
	wanted rawAddress // whom the latest datagrams went to, and how many of them
	streak int
}

// way is the socket for a packet, and whether it must be told the address.
func (s *socket) way(l *packet) (fd int, named bool) {
	c := &s.short
	switch {
	case !l.addressKnown || !s.self:
	case c.fd != 0 && l.to == c.to:
		return c.fd, false
	case l.to != c.wanted:
		c.wanted, c.streak = l.to, 0
	default:
		if c.streak++; c.streak == shortcutAfter {
			s.openShortcut(&l.to)
		}
	}
	return s.fd, true
}

// openShortcut connects the second socket. Without it everything goes the usual way.
func (s *socket) openShortcut(to *rawAddress) {
	s.closeShortcut()
	size, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		return
	}
	fd, err := unix.Socket(s.family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, size/2) // the kernel doubles it; without, it is full earlier
	if _, _, errno := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&to.bytes[0])), uintptr(to.length)); errno != 0 {
		_ = unix.Close(fd) // it was opened a moment ago
		return
	}
	s.short.fd, s.short.to = fd, *to
}

// closeShortcut ends the shortcut; there may be another one after as many datagrams.
func (s *socket) closeShortcut() {
	if s.short.fd != 0 {
		_ = unix.Close(s.short.fd) // what it has sent has arrived
		s.short.fd, s.short.streak = 0, 0
	}
}

// sendOne sends one packet.
func (s *socket) sendOne(l *packet) (n int, full bool) {
	fd, named := s.way(l)
	var errno unix.Errno
	switch {
	case l.body == nil && named:
		_, _, errno = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&l.data[0])), uintptr(len(l.data)), unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(&l.to.bytes[0])), uintptr(l.to.length))
	case l.body == nil:
		_, _, errno = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&l.data[0])), uintptr(len(l.data)), unix.MSG_DONTWAIT, 0, 0)
	default:
		m := &s.out[0].header
		*m = unix.Msghdr{Iov: &s.outVec[0]}
		m.SetIovlen(gather((*[pieces]unix.Iovec)(s.outVec[:]), l))
		if named {
			m.Name, m.Namelen = &l.to.bytes[0], uint32(l.to.length)
		}
		_, _, errno = unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(m)), unix.MSG_DONTWAIT)
	}
	s.messages++
	if !named && errno != 0 && errno != unix.EAGAIN && errno != unix.EINTR {
		s.closeShortcut()
		return 0, true // it goes the usual way, with the next call
	}
	return s.sendEnded(1, errno)
}
