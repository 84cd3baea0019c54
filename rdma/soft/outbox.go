package soft

import (
	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// The outbox holds datagrams that are ready until the kernel accepts them in one call.
// A short datagram is one piece of memory. The payload of a long one stays in the
// user's memory, and the kernel gathers header, payload and seal. What the kernel does
// not accept at once is copied, because the user may get the memory back before it is
// sent.

// packet is a datagram that is ready to send.
type packet struct {
	data []byte // all of it, or what precedes body
	body []byte // of a long one: the user's memory
	seal [sealLen]byte
	to   rawAddress
	on   uint8 // path
	// index is set if the packet is sent as a run of packets, or as one of them.
	index runIndex
	crcs  []uint32 // of its packets
	// addressKnown reports whether the peer knows our address.
	addressKnown bool
}

// length returns the length of the datagram.
func (l *packet) length() int {
	if l.body == nil {
		return len(l.data)
	}
	return len(l.data) + len(l.body) + len(l.seal)
}

// packets returns how many packets the network has of it.
func (l *packet) packets() int { return max(int(l.index.count), 1) }

// gatherAbove is the payload length from which the kernel gathers instead of us
// copying.
const gatherAbove = 2 << 10

// keep makes the packet contiguous.
func (l *packet) keep() {
	if l.body == nil {
		return
	}
	l.data = append(l.data, l.body...)
	if l.index.packets == 0 {
		l.data = append(l.data, l.seal[:]...)
	}
	l.body = nil
}

// seal appends the payload and seals the packet.
func (d *Device) seal(l *packet, front, bytes []byte) {
	if len(bytes) < gatherAbove || d.keys.encrypt || d.net.below != nil && len(front) > rdma.HeadMax {
		l.data, l.body = d.keys.seal(append(front, bytes...)), nil
		return
	}
	if l.data, l.body = front, bytes; d.net.below != nil {
		return
	}
	d.keys.sealGathered(front, bytes, &l.seal)
}

// sendSide is the memory of what the device sends.
type sendSide struct {
	outbox     outbox
	windowPool *windowPool // of all peers
	spare      []*message
	bodies     bodies
	image      []byte // the packets of the next run to send, if the device encrypts
	// disturb simulates network faults in tests.
	disturb func(*outbox)
}

type outbox struct {
	packets [batchSize]packet
	n       int
	most    int // high-water mark of n
}

func newOutbox(longest int) (o outbox) {
	for i := range o.packets {
		o.packets[i].data = make([]byte, 0, longest)
		o.packets[i].crcs = make([]uint32, reliable.MaxRun)
	}
	return o
}

// nextPacket returns the next free packet, or nil when the kernel accepts no more.
func (d *Device) nextPacket() *packet {
	if d.outgoing.outbox.n == batchSize {
		if d.flush(); d.outgoing.outbox.n == batchSize {
			return nil
		}
	}
	d.outgoing.outbox.n++
	return &d.outgoing.outbox.packets[d.outgoing.outbox.n-1]
}

// begin addresses a packet and writes the header into it.
func (d *Device) begin(l *packet, h *header, from uint16, to rdma.PeerID) []byte {
	a := &d.peers.list[to]
	d.address(l, to, int(h.path))
	h.to, h.from, h.toIncarnation, h.name = a.pair, from, a.incarnation, d.name
	h.serial, h.fromIncarnation = d.serial(), d.keys.incarnation
	return h.append(l.data[:0])
}

// serial returns the next serial number.
func (d *Device) serial() uint64 {
	if !d.keys.advance() {
		// 2^48 datagrams at a million a second are nine years.
		panic("soft: the serial numbers of this device are exhausted")
	}
	return d.keys.serial
}

// address addresses a packet on a path, or on the first one if it is not known where the
// path leads.
func (d *Device) address(l *packet, to rdma.PeerID, on int) {
	l.to, l.on, l.addressKnown, l.index = d.peers.list[to].at, 0, false, runIndex{}
	if !d.net.several() {
		return
	}
	if at := d.endpointOf(to, on); at != nil {
		l.to, l.on = *at, uint8(on)
	}
}

func appendDDP(b []byte, h *ddp.Header) []byte {
	n := len(b)
	b = b[:n+h.Len()]
	h.Put(b[n:])
	return b
}

// flush hands the packets to the kernel. What the kernel does not accept now stays.
// What it rejects permanently is dropped, and RD treats it as lost.
func (d *Device) flush() {
	o := &d.outgoing.outbox
	if d.outgoing.disturb != nil {
		d.outgoing.disturb(o)
	}
	if o.n == 0 {
		return
	}
	o.most = max(o.most, o.n)
	race.OrderBeforeSending()
	if d.net.several() {
		o.arrangePackets()
	}
	done := d.sendPackets()
	for i := done; i < o.n; i++ { // swap the memory, do not copy
		o.packets[i].keep()
		o.packets[i-done], o.packets[i] = o.packets[i], o.packets[i-done]
	}
	o.n -= done
	if !d.net.runs() {
		d.outgoing.windowPool.MaxRun = 1
	}
}

// sendPackets hands packets to the kernel until it accepts no more, and returns how many are
// done.
func (d *Device) sendPackets() (done int) {
	o := &d.outgoing.outbox
	for done < o.n {
		s, end := d.net.first, o.n
		if d.net.several() {
			s, end = d.net.socketOf(int(o.packets[done].on)), done+together(o.packets[done:o.n])
		}
		n, full := 0, false
		if d.net.below != nil {
			n, full = d.net.below.send(o.packets[done:end])
		} else {
			n, full = s.send(o.packets[done:end])
		}
		for i := range o.packets[done : done+n] {
			d.traffic.sent += uint64(o.packets[done+i].packets())
		}
		done += n
		if full {
			break
		}
		if n == 0 {
			d.drops.Unsendable++
			done++
		}
	}
	return done
}

// messageBlock is how many messages are allocated at a time.
const messageBlock = 64

// newMessage returns a free message and allocates more if there is none.
func (s *sendSide) newMessage() *message {
	if len(s.spare) == 0 {
		block := make([]message, messageBlock)
		for i := range block {
			s.spare = append(s.spare, &block[i])
		}
	}
	last := len(s.spare) - 1
	m := s.spare[last]
	s.spare = s.spare[:last]
	return m
}

// freeMessage returns a message to the free list, without the user's memory.
func (s *sendSide) freeMessage(m *message) {
	m.Info.body, m.Following, m.DelayAck, m.Yields = rdma.Mem{}, nil, false, false
	s.releaseBody(m)
	s.spare = append(s.spare, m)
}

// appendTo appends the part of [offset, offset+n) that is in the head, and returns the
// rest as bytes.
func (m *posted) appendTo(b []byte, offset, n int) (front, bytes []byte) {
	if offset < m.headLen {
		part := min(n, m.headLen-offset)
		b = append(b, m.head[offset:offset+part]...)
		offset, n = offset+part, n-part
	}
	offset -= m.headLen
	return b, m.body.Bytes()[offset : offset+n]
}
