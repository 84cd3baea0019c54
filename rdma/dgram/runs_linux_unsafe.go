//go:build linux

package dgram

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Runs: several datagrams that go through the kernel as one message. Going out, compose
// puts neighbors for the same peer together and names the length at which the kernel, or
// the card, cuts them again (UDP_SEGMENT, udp(7)). Coming in, the kernel joins neighbors
// of one flow and tells that length (UDP_GRO); Device.divide cuts them. On the wire nothing
// is different. The way through the kernel is paid once for a run, and for datagrams of an
// Ethernet that way is most of what they cost.
//
// Both are asked for when the socket is opened, and a kernel that has them not is left in
// peace. That runs cannot leave may also show later, when the route changes to a card that
// makes no checksums: then withdraw ends them.

const (
	// longestOfRun is the length up to which datagrams are of an Ethernet. On the loopback
	// interface they are as long as a run may be.
	longestOfRun = 9000
	// runBytes keeps a run below what IP can say of the length of a packet.
	runBytes = 65000
	// joinedBatch is how many messages are taken at once when each may be a run.
	joinedBatch = 8
)

// control is one control message with a number in it (cmsg(3)).
type control struct {
	header unix.Cmsghdr
	value  [8]byte // as much as alignment may need
}

// start is where the kernel finds it.
func (c *control) start() *byte { return (*byte)(unsafe.Pointer(c)) }

// allowRuns asks for runs of datagrams of up to that length.
func (s *socket) allowRuns(length int) {
	if length > longestOfRun {
		return
	}
	// Zero is no length: it asks only whether the kernel knows the option.
	if unix.SetsockoptInt(s.fd, unix.SOL_UDP, unix.UDP_SEGMENT, 0) == nil {
		s.runUpTo = length
	}
	s.joins = unix.SetsockoptInt(s.fd, unix.SOL_UDP, unix.UDP_GRO, 1) == nil
}

// maxMessages is how many messages are received at once.
func (s *socket) maxMessages() int {
	if s.joins {
		return joinedBatch
	}
	return batchSize
}

// compose makes messages of packets, and says how many. A packet that is long or alone is
// a message by itself.
func (s *socket) compose(packets []packet) (messages int) {
	used := 0
	for first := 0; first < len(packets); messages++ {
		n := s.runOf(packets[first:])
		l, m, from := &packets[first], &s.out[messages].header, used
		for i := range packets[first : first+n] {
			used += gather((*[pieces]unix.Iovec)(s.outVec[used:]), &packets[first+i])
		}
		m.Name, m.Namelen = &l.to.bytes[0], uint32(l.to.length)
		m.Iov = &s.outVec[from]
		m.SetIovlen(used - from)
		s.cutAt(messages, l.length(), n)
		s.taken[messages] = n
		first += n
	}
	return messages
}

// runOf is how many of the first packets can be one message: they go to the same place and
// are of one length, but for the last of them, which may be shorter.
func (s *socket) runOf(packets []packet) int {
	length := packets[0].length()
	if length > s.runUpTo {
		return 1
	}
	most := min(len(packets), runBytes/length)
	for n := 1; n < most; n++ {
		next := packets[n].length()
		if next > length || packets[n].to != packets[0].to {
			return n
		}
		if next < length {
			return n + 1
		}
	}
	return most
}

// cutAt tells the kernel at what length to cut a message of n packets.
func (s *socket) cutAt(message, length, n int) {
	m, c := &s.out[message].header, &s.outControl[message]
	if n == 1 {
		m.Control = nil
		m.SetControllen(0)
		return
	}
	c.header.Level, c.header.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	c.header.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(c.value[:], uint16(length))
	m.Control = c.start()
	m.SetControllen(unix.CmsgSpace(2))
}

// refusesRun reports whether an error may mean that the kernel does not take a run.
func refusesRun(errno unix.Errno) bool {
	switch errno {
	case unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.ENOPROTOOPT:
		return true
	}
	return false
}

// withdraw sends the first packet of a run that was refused by itself. If the kernel takes
// it, it was the run that it did not like, and there are no more of them.
func (s *socket) withdraw(packets []packet) (n int, full bool) {
	allowed := s.runUpTo
	s.runUpTo = 0
	n, full = s.send(packets[:1])
	if n == 0 {
		s.runUpTo = allowed
	}
	return n, full
}

// expectJoined makes room for the length that the kernel tells of a run that it joined.
func (s *socket) expectJoined(message int) {
	m, c := &s.in[message].header, &s.inControl[message]
	c.header.Type = 0
	m.Control = c.start()
	m.SetControllen(unix.CmsgSpace(4))
}

// joinedAt is the length at which a message that came is to be cut, or 0.
func (s *socket) joinedAt(message int) int {
	c := &s.inControl[message]
	if s.in[message].header.Controllen == 0 || c.header.Level != unix.SOL_UDP || c.header.Type != unix.UDP_GRO {
		return 0
	}
	return max(0, int(int32(binary.NativeEndian.Uint32(c.value[:]))))
}
