package ddp

import "github.com/muster-mpi/muster/rdma"

// Queue 0: messages into posted buffers, RFC 5041 section 5.1.2 and RFC 5040 section 5.3.
// Message number k uses the k-th buffer that this stream took. A buffer is taken when the
// first segment of its message arrives, so a shared queue serves the active peers, and a
// stream holds at most a window of unfinished ones: a peer that begins messages and does
// not end them cannot exhaust the queue (RFC 5042 section 6.4.3.1).

// Buffers provides the receive buffers of a stream: its own queue or a shared one.
type Buffers interface {
	// Take returns the next buffer, if there is one.
	Take() (rdma.RecvWR, bool)
}

// receives is the receiving side of queue 0.
type receives struct {
	from   Buffers
	next   uint32 // the number of the next message to be delivered
	offset uint32 // how much of it has been delivered
	taken  ring[rdma.RecvWR]
}

// placement returns the memory for the bytes [off, off+n) of a segment's payload.
func (r *receives) placement(h *Header, off, n int) ([]byte, Fault) {
	ahead := h.MSN - r.next // wraps like the numbers
	if ahead >= uint32(r.taken.limit) {
		return nil, FaultMSN
	}
	for uint32(r.taken.n) <= ahead {
		wr, ok := r.from.Take()
		if !ok {
			return nil, FaultNoBuffer
		}
		*r.taken.push() = wr
	}
	room := r.taken.at(int32(ahead)).Body
	lo := uint64(h.MO) + uint64(off)
	switch {
	case uint64(h.MO) > uint64(room.Len()):
		return nil, FaultMO
	case lo+uint64(n) > uint64(room.Len()):
		return nil, FaultTooLong
	case n == 0:
		return nil, NoFault
	}
	return room.Bytes()[lo : lo+uint64(n) : lo+uint64(n)], NoFault
}

// deliver counts a placed segment of n bytes, in the order of the stream. Offsets must be
// contiguous, or the receiver would see the previous contents of the buffer. The message
// stays in the ring until finish.
func (r *receives) deliver(h *Header, n int) Fault {
	if h.MSN != r.next {
		return FaultMSN
	}
	if h.MO != r.offset {
		return FaultMO
	}
	// An empty segment may not have been placed, and its buffer not taken.
	if _, f := r.placement(h, 0, n); f != NoFault {
		return f
	}
	r.offset += uint32(n)
	return NoFault
}

// finish completes a fully delivered message.
func (r *receives) finish() (rdma.RecvWR, uint32) {
	wr, n := *r.taken.at(0), r.offset
	r.taken.pop()
	r.next++
	r.offset = 0
	return wr, n
}
