package p2p

// Messages from registered buffers into a ring (P1, T1 5.3.1: the fast path). The device
// reads the data from the user's buffer, so a slot takes two Writes:
//
//	slot      … (room for the head) | data | head | trailer
//	Write 1                           data                    from the user's buffer
//	Write 2                                  head   trailer   inline
//
// The trailer stays last, because it tells the receiver to look at the slot, and names the
// length of the head. The receiver moves the head in front of the data, which makes an
// ordinary packet. Write 1 completes the send. The CRC covers all of it, whichever Write
// arrives first.
//
// If the device accepts only Write 1, its packet waits as any other does, and Write 2 is
// repeated from the stage: the buffer may belong to the user again by then.

import (
	"hash/crc32"

	"github.com/muster-mpi/muster/rdma"
)

// ringHeadShift is where the first word of a trailer has the length of the head, 0 if the
// head is in front of the data. The bits below are the length of the packet.
const ringHeadShift = 24

// byRingDirect is ByRing for a packet whose data lies in registered memory.
func (m *Machine) byRingDirect(l *Link, packet *rdma.SendWR, writes *[2]rdma.SendWR) int {
	r := l.out
	head, data := int(packet.HeadLen), packet.Body.Len()
	if data == 0 || data+2*head > r.slot-ringTrailer {
		return 0
	}
	tail := r.stage[r.slot-ringTrailer-head:]
	copy(tail, packet.Head[:head])
	put64(tail[head:], uint64(head+data)|uint64(head)<<ringHeadShift|uint64(r.lap())<<32)
	sum := crc32.Update(crc32.Checksum(packet.Body.Bytes(), m.crc), m.crc, tail[:head+8])
	put32(tail[head+8:], sum)
	end := r.slotEnd()
	writes[0] = rdma.SendWR{
		ID: packet.ID, Op: rdma.OpWrite, Peer: l.Peer, Body: packet.Body, LKey: packet.LKey, RKey: r.key,
		Remote: end - uint64(len(tail)+data),
	}
	r.tail = len(tail)
	r.finish(l, &writes[1])
	return 2
}

// finish makes the Write of head and trailer from the stage.
func (r *ringOut) finish(l *Link, write *rdma.SendWR) {
	*write = rdma.SendWR{
		ID: RingID, Op: rdma.OpWrite, Flags: rdma.Inline, Peer: l.Peer, Body: rdma.MemOf(r.stage[r.slot-r.tail:]), RKey: r.key,
		Remote: r.slotEnd() - uint64(r.tail),
	}
}

// ringPacket returns the packet in a slot that is complete: its bytes up to the trailer,
// and the length of the head behind the data, if it is there.
func ringPacket(slot []byte, length, head int) []byte {
	body := len(slot) - length
	if head == 0 {
		return slot[body:]
	}
	copy(slot[body-head:body], slot[len(slot)-head:])
	return slot[body-head : len(slot)-head]
}
