//go:build linux

package soft

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The shortcut: a second socket, connected to the peer on this host to which many
// consecutive datagrams were sent. For an unconnected socket the kernel looks up the
// route of every datagram, which is a tenth of the cost of a short datagram within a
// host. Between hosts that is negligible beside the wire, and there is no shortcut.
//
// The shortcut only sends. Peers identify a device by its incarnation and not by the
// source address of its datagrams, so nothing else changes for them. But a peer that
// has never received a datagram of ours would reply to that source address, so the
// shortcut carries only packets to peers that have acked something from the main
// socket. An error closes the shortcut; the main socket then gets the same error and
// reports what it means.

// shortcutAfter is how many consecutive datagrams to one peer open the shortcut.
const shortcutAfter = 64

type shortcut struct {
	fd     int // 0: none
	to     rawAddress
	wanted rawAddress // destination of the latest datagrams; streak counts them
	streak int
}

// way returns the socket for a packet, and whether the call must name the address.
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

// openShortcut connects the second socket. Without it everything uses the main socket.
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
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, size/2) // the kernel doubles it; on failure the buffer is smaller
	if _, _, errno := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&to.bytes[0])), uintptr(to.length)); errno != 0 {
		_ = unix.Close(fd) // it was just opened
		return
	}
	s.short.fd, s.short.to = fd, *to
}

// closeShortcut closes the shortcut; another one may be opened after as many datagrams.
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
		return 0, true // the next call uses the main socket
	}
	return s.sendEnded(1, errno)
}
