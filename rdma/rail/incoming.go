package rail

import "github.com/muster-mpi/muster/rdma"

// The pieces that arrive from one peer, over all rails: fresh reports whether a piece
// is new, keep stores one that is early, and ready returns the next one in order.

// arrival is a piece that has arrived.
type arrival struct {
	message rdma.Mem // the user's message, if the piece is one
	buffer  []byte   // memory of this device that holds message; nil: a rail lends it
	kind    kind
	last    bool // of a Write
	refused bool // a piece of a Write that was not allowed
	present bool
	request uint32
}

// reorderBuffer holds the pieces that arrived early. A peer whose pieces arrive in
// order has none.
type reorderBuffer [window]arrival

type incoming struct {
	reorderBuffer *reorderBuffer
	next          uint32 // number of the next piece in order
	lastAcked     uint32 // next when the last ack was sent
	held          int    // pieces in the reorder buffer
	// wanted is a piece for which the peer has requested an ack, if wants is set.
	wanted uint32
	wants  bool
}

// ackEvery is after how many pieces an ack is sent, if nothing else goes to the peer.
const ackEvery = window / 4

// ackDue reports whether an ack should be sent.
func (in *incoming) ackDue() bool {
	return in.next-in.lastAcked >= ackEvery || in.wants && int32(in.next-in.wanted) > 0
}

// want records that the peer requests an ack for a piece, be it new or not.
func (in *incoming) want(number uint32) {
	if !in.wants || int32(number-in.wanted) > 0 {
		in.wanted, in.wants = number, true
	}
}

// takeAck returns the ack to send and records it as sent.
func (in *incoming) takeAck() uint16 {
	in.lastAcked = in.next
	in.wants = in.wants && int32(in.next-in.wanted) <= 0
	return uint16(in.next)
}

// fresh reports whether a piece has not arrived before and is in the window of a
// correct sender.
func (in *incoming) fresh(number uint32) bool {
	return number-in.next < window && (in.reorderBuffer == nil || !in.reorderBuffer[number%window].present)
}

// keep puts a piece into the reorder buffer, which must exist.
func (in *incoming) keep(number uint32, a arrival) *arrival {
	e := &in.reorderBuffer[number%window]
	*e = a
	e.present = true
	in.held++
	return e
}

// ready returns the next piece in order, nil if it has not arrived.
func (in *incoming) ready() *arrival {
	if in.held == 0 {
		return nil
	}
	if e := &in.reorderBuffer[in.next%window]; e.present {
		return e
	}
	return nil
}

// taken advances after the delivery of the next piece.
func (in *incoming) taken(e *arrival) {
	if e != nil {
		*e = arrival{}
		in.held--
	}
	in.next++
}
