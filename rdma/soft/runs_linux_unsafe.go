//go:build linux

package soft

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Runs: several datagrams that pass through the kernel as one message. Outgoing,
// compose groups consecutive datagrams to the same peer and passes the length at which
// the kernel or the adapter segments them again (UDP_SEGMENT, udp(7)). Incoming, the
// kernel coalesces consecutive datagrams of one flow and reports that length (UDP_GRO);
// Device.divide splits them. Nothing changes on the wire. The path through the kernel
// is paid once per run, and for Ethernet datagrams that path is most of their cost.
//
// Both options are requested when the socket is opened, and are not used on a kernel
// without them. That runs cannot be sent may also show later, when the route changes to
// an adapter without checksum offload: then withdraw disables them.

const (
	// longestOfRun is the longest Ethernet datagram. On the loopback interface
	// datagrams are as long as a run may be.
	longestOfRun = 9000
	// joinedBatch is how many messages are received at once when each may be a run.
	joinedBatch = 8
)

// control is one control message with a number in it (cmsg(3)).
type control struct {
	header unix.Cmsghdr
	value  [8]byte // as much as alignment may need
}

// start returns the address to pass to the kernel.
func (c *control) start() *byte { return (*byte)(unsafe.Pointer(c)) }

// allowRuns requests runs of datagrams up to the given length.
func (s *socket) allowRuns(length int) {
	if length > longestOfRun {
		return
	}
	// Zero is no length: the call only checks whether the kernel supports the option.
	if unix.SetsockoptInt(s.fd, unix.SOL_UDP, unix.UDP_SEGMENT, 0) == nil {
		s.runUpTo = length
	}
	s.joins = unix.SetsockoptInt(s.fd, unix.SOL_UDP, unix.UDP_GRO, 1) == nil
}

// maxMessages returns how many messages are received at once.
func (s *socket) maxMessages() int {
	if s.joins {
		return joinedBatch
	}
	return batchSize
}

// compose groups packets into messages and returns how many. A packet that is long or
// alone is a message by itself.
func (s *socket) compose(packets []packet) (messages int) {
	used, indexes := 0, 0
	for first := 0; first < len(packets); messages++ {
		l, m, from := &packets[first], &s.out[messages].header, used
		n, length, count := 1, l.wire(), int(l.index.count)
		if l.encrypted() {
			used += gather((*[pieces]unix.Iovec)(s.outVec[used:]), l)
		} else if l.index.packets > 0 {
			if indexes+count > len(s.indexes) {
				break
			}
			used += s.gatherRun(used, indexes, l)
			indexes += count
		} else {
			n = s.runOf(packets[first:])
			length, count = l.length(), n
			for i := range packets[first : first+n] {
				used += gather((*[pieces]unix.Iovec)(s.outVec[used:]), &packets[first+i])
			}
		}
		m.Name, m.Namelen = &l.to.bytes[0], uint32(l.to.length)
		m.Iov = &s.outVec[from]
		m.SetIovlen(used - from)
		s.cutAt(messages, length, count)
		s.taken[messages] = n
		first += n
	}
	return messages
}

// gatherRun describes the packets of a long segment to the kernel: before each of them
// its index, which is kept in indexes until the call. It returns the number of pieces.
func (s *socket) gatherRun(used, indexes int, l *packet) (n int) {
	vec := s.outVec[used:]
	for i := range int(l.index.count) {
		index := &s.indexes[indexes+i]
		l.index.put(index, i, l.crcs[i])
		front, back := l.chunk(i)
		for _, b := range [...][]byte{index[:], front, back} {
			if len(b) > 0 {
				vec[n].Base = &b[0]
				vec[n].SetLen(len(b))
				n++
			}
		}
	}
	return n
}

// runs reports whether runs can be sent.
func (s *socket) runs() bool { return s.runUpTo > 0 }

// shorten reduces a run to its first packet, because the kernel does not accept runs. The
// others are lost, and are sent again one by one.
func (l *packet) shorten() {
	if l.encrypted() {
		l.data = l.data[:l.wire()]
	}
	l.index.count = 1
}

// runOf returns how many of the first packets can be one message: they have the same
// destination and length, except that the last may be shorter.
func (s *socket) runOf(packets []packet) int {
	length := packets[0].length()
	if length > s.runUpTo {
		return 1
	}
	most := min(len(packets), runBytes/length)
	for n := 1; n < most; n++ {
		next := packets[n].length()
		if next > length || packets[n].to != packets[0].to || packets[n].index.packets > 0 {
			return n
		}
		if next < length {
			return n + 1
		}
	}
	return most
}

// cutAt passes the length at which the kernel segments a message of n packets.
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

// refusesRun reports whether an error may mean that the kernel does not accept a run.
func refusesRun(errno unix.Errno) bool {
	switch errno {
	case unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.ENOPROTOOPT:
		return true
	}
	return false
}

// withdraw sends the first packet of a rejected run by itself. If the kernel accepts
// it, the run was the problem, and runs are disabled.
func (s *socket) withdraw(packets []packet) (n int, full bool) {
	allowed := s.runUpTo
	s.runUpTo = 0
	n, full = s.send(packets[:1])
	if n == 0 {
		s.runUpTo = allowed
	}
	return n, full
}

// expectJoined reserves room for the segment length of a coalesced message.
func (s *socket) expectJoined(message int) {
	m, c := &s.in[message].header, &s.inControl[message]
	c.header.Type = 0
	m.Control = c.start()
	m.SetControllen(unix.CmsgSpace(4))
}

// noteBulk records the length of a received message.
func (s *socket) noteBulk(n int) {
	if n >= bulkMessage {
		s.bulk = bulkBatch
	} else if s.bulk > 0 {
		s.bulk--
	}
}

// joinedAt returns the segment length of a received message, or 0.
func (s *socket) joinedAt(message int) int {
	c := &s.inControl[message]
	if s.in[message].header.Controllen == 0 || c.header.Level != unix.SOL_UDP || c.header.Type != unix.UDP_GRO {
		return 0
	}
	return max(0, int(int32(binary.NativeEndian.Uint32(c.value[:]))))
}
