package soft

import (
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// receiveUD processes a datagram for a UD queue pair. A message that finds no buffer is
// dropped silently, as UD permits. The sender of a message that can never be used gets
// an error message.
func (q *pair) receiveUD(s *slot, from rdma.PeerID, h *header) (kept bool) {
	for int(from) >= len(q.ended) {
		q.ended = append(q.ended, ended{})
	}
	if !q.ended[from].serials.fresh(h.serial) {
		q.dev.drops.Replayed++
		return false
	}
	switch h.kind {
	case kindRecord:
		q.receiveRecord(s.data[s.lo:s.hi], from, &h.record)
		return false
	case kindError:
		q.receiveError(s.data[s.lo:s.hi], from)
		return false
	}
	return q.receiveMessage(s, from)
}

// receiveMessage delivers a message.
func (q *pair) receiveMessage(s *slot, from rdma.PeerID) (kept bool) {
	segment := s.data[s.lo:s.hi]
	var h ddp.Header
	n, fault := h.Decode(segment, len(segment))
	switch {
	case fault != ddp.NoFault:
	case !isSend(h.Op):
		fault = ddp.FaultOpcode
	case !h.Last || h.MO != 0:
		// T1 6.3.5: a message is one datagram, so its segment is both the first and the
		// last.
		fault = ddp.FaultMO
	}
	if fault != ddp.NoFault {
		q.dev.drops.Malformed++
		q.refuse(from, h.MSN, fault, segment)
		return false
	}
	s.lo += n
	taken, kept, tooLong := q.deliverWhole(s, from)
	switch {
	case !taken:
		q.dev.drops.NoRoom++
	case tooLong:
		q.refuse(from, h.MSN, ddp.FaultTooLong, segment)
	}
	return kept
}
