package p2p

// Eager messages by RDMA Write into a ring at the receiver (P3 §2.2: the channel of busy
// peers). The receiver gives a peer that has sent many messages a ring of slots. The peer
// then writes its packets into consecutive slots, and every poll of the receiver checks
// the next slot. This uses no receive buffer, and on an adapter no completion.
//
//	sender                receiver
//	    ◀───────────────── register, RING      (after many messages of the peer)
//	RDMA Write ══════════▶ slot n
//	    ◀───────────────── SLOTS               (number of slots emptied; now and then)
//
// A packet in a slot has a sequence number on the link like any other. Packets in the ring
// and in the receive queue may overtake each other; the machine restores the order. A
// packet that is too long, or finds no free slot, goes by the receive queue, so a ring
// never blocks.
//
// A packet from a registered buffer is written without a copy (eager_ring_direct.go).
//
// A slot ends with a trailer: length, lap and CRC. RDMA guarantees no order within a Write
// (RFC 5040 section 5.5), so the lap may become visible before the data; the CRC shows
// when all bytes have arrived.

import (
	"hash/crc32"

	"github.com/muster-mpi/muster/rdma"
)

const (
	ringTrailer = 12 // length, lap, CRC
	// RingSlots and RingSlot are the size of a ring: some messages of usual length, and
	// little memory.
	RingSlots = 32
	RingSlot  = 2 << 10
	// RingID is the ID of Writes into rings. No operation has it.
	RingID = ^uint64(0)
)

// ringCRC returns the CRC table. Each machine makes it once, because the package has no
// global state.
func ringCRC() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// ringOut is a ring at the peer, seen by the sender.
type ringOut struct {
	addr, key  uint64
	slot, size int
	put        uint32 // slots written
	freed      uint32 // of these, emptied by the receiver
	stage      []byte // the slot's bytes until the device has copied them
	tail       int    // bytes at the end of stage that follow data from a registered buffer
	half       bool   // that data is written, the tail is not (eager_ring_direct.go)
}

// ringIn is a ring in local memory.
type ringIn struct {
	mem      []byte
	mr       rdma.MR
	slot     int
	size     int
	got      uint32 // slots emptied
	reported uint32 // of these, reported to the sender
}

// OfferRing gives a peer a ring. The engine has registered mem for remote writes, and all
// its bytes are 0.
func (m *Machine) OfferRing(l *Link, mem []byte, mr rdma.MR, slot int) {
	l.in = &ringIn{mem: mem, mr: mr, slot: slot, size: len(mem) / slot}
	wr := m.packet(l)
	m.control(wr, l, kindRing, uint64(slot), uint64(l.in.size), 0)
	put64(wr.Head[offRingAddr:], mr.Base)
	put64(wr.Head[offRingKey:], mr.RKey)
	l.lengthen(wr, headCTS)
}

// arriveRing records that the peer has a ring for this rank.
func (m *Machine) arriveRing(l *Link, pkt []byte) {
	slot, size := get64(pkt[offHandle:]), get64(pkt[offPeer:])
	if !l.Attr.Ops.Has(rdma.OpWrite) || l.out != nil || slot < headLen+ringTrailer || slot > 1<<20 || size < 1 || size > 1<<16 {
		m.failPeer(l, FormatPacket(pkt)+" offers an invalid ring")
		return
	}
	if m.crc == nil {
		m.crc = ringCRC()
	}
	if int(slot) > l.Attr.MaxInline {
		return // leave the ring unused
	}
	l.out = &ringOut{addr: get64(pkt[offRingAddr:]), key: get64(pkt[offRingKey:]), slot: int(slot), size: int(size), stage: make([]byte, slot)}
	l.setOneMax() // SendOne does not support rings
}

// arriveSlots records how many slots the peer has emptied.
func (m *Machine) arriveSlots(l *Link, pkt []byte) {
	n := uint32(get64(pkt[offHandle:]))
	if l.out == nil || l.out.put-l.out.freed < n {
		m.failPeer(l, FormatPacket(pkt)+" returns slots that were not used")
		return
	}
	l.out.freed += n
}

// HasRing reports whether the peer has a ring for this rank.
func (l *Link) HasRing() bool { return l.out != nil }

// ByRing converts a packet to Writes into the next slot of the peer's ring and returns
// their number, 0 if the packet must use the receive queue. They are valid until the next
// call; Wrote must follow when the device has accepted some. A packet that was not
// accepted completely is the next one on this link.
func (m *Machine) ByRing(l *Link, packet *rdma.SendWR, writes *[2]rdma.SendWR) int {
	r := l.out
	if r.half {
		r.finish(l, &writes[0])
		return 1
	}
	if packet.Op != rdma.OpSend || r.put-r.freed == uint32(r.size) {
		return 0
	}
	if packet.Flags&rdma.Inline == 0 {
		if !l.Attr.LocalKeys {
			return 0 // the device reads any memory itself: nothing was registered
		}
		return m.byRingDirect(l, packet, writes)
	}
	n := int(packet.HeadLen) + packet.Body.Len()
	if n > r.slot-ringTrailer {
		return 0
	}
	// The packet is right-aligned, so that the trailer has a fixed offset.
	b := r.stage[r.slot-ringTrailer-n:]
	copy(b[copy(b, packet.Head[:packet.HeadLen]):], packet.Body.Bytes())
	put64(b[n:], uint64(n)|uint64(r.lap())<<32)
	put32(b[n+8:], crc32.Checksum(b[:n+8], m.crc))
	writes[0] = rdma.SendWR{
		ID: RingID, Op: rdma.OpWrite, Flags: rdma.Inline, Peer: l.Peer, Body: rdma.MemOf(b), RKey: r.key,
		Remote: r.slotEnd() - uint64(len(b)),
	}
	return 1
}

// slotEnd returns the address behind the next slot.
func (r *ringOut) slotEnd() uint64 { return r.addr + uint64((int(r.put)%r.size+1)*r.slot) }

// lap returns how often the sender has gone around the ring, this time included. It is
// never 0, which is the content of a new ring.
func (r *ringOut) lap() uint32 { return r.put/uint32(r.size) + 1 }

// Wrote records that the device has accepted some of the Writes of ByRing. It reports
// whether these were all.
func (l *Link) Wrote(accepted, writes int) bool {
	r := l.out
	if writes == 2 && accepted > 0 {
		l.Stats.RingDirect++
	}
	r.half = writes == 2 && accepted == 1 || r.half && accepted == 0
	if accepted < writes {
		return false
	}
	r.put++
	l.Stats.RingSent++
	return true
}

// PollRing processes the packets that have arrived in a ring and returns their number.
func (m *Machine) PollRing(l *Link) (n int) {
	r := l.in
	if m.crc == nil {
		m.crc = ringCRC()
	}
	for n < r.size && l.Err == nil {
		end := (int(r.got)%r.size + 1) * r.slot
		trailer := r.mem[end-ringTrailer : end]
		if get32(trailer[4:]) != r.got/uint32(r.size)+1 {
			break
		}
		length := int(get32(trailer))
		length, head := length&(1<<ringHeadShift-1), length>>ringHeadShift
		if length+head > r.slot-ringTrailer || head > length {
			break // the slot is incomplete
		}
		if crc32.Checksum(r.mem[end-ringTrailer-length:end-4], m.crc) != get32(trailer[8:]) {
			break
		}
		r.got++
		l.Stats.RingReceived++
		m.HandlePacket(l, ringPacket(r.mem[end-r.slot:end-ringTrailer], length, head))
		n++
	}
	if r.got-r.reported >= uint32(r.size/2) && l.Err == nil {
		m.control(m.packet(l), l, kindSlots, uint64(r.got-r.reported), 0, 0)
		r.reported = r.got
	}
	return n
}

// RingMemory returns the ring that a peer writes to, for the engine to free; nil if there
// is none.
func (l *Link) RingMemory() ([]byte, rdma.MR) {
	if l.in == nil {
		return nil, rdma.MR{}
	}
	return l.in.mem, l.in.mr
}
