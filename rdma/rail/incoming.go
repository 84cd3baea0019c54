package rail

import "github.com/muster-mpi/muster/rdma"

// The pieces that come from one peer, over all rails: fresh says whether a piece is new,
// keep keeps one that came before its turn, and ready gives the one whose turn it is.

// arrival is a piece that has come.
type arrival struct {
	message rdma.Mem // of the user, if it is one
	buffer  []byte   // rail's own memory that message lies in; nil: a rail lends it
	kind    kind
	last    bool // of a Write
	refused bool // a piece of a Write that was not placed
	present bool
	request uint32
}

// reorder buffer is memory for the pieces that came before their turn. A peer whose pieces come
// in order has none.
type reorderBuffer [window]arrival

type incoming struct {
	reorderBuffer *reorderBuffer
	next          uint32 // whose turn it is
	lastAcked     uint32 // whose turn it was when the peer was told last
	held          int    // pieces in the reorder buffer
	// wanted is a piece that the peer wants to be told of, if wants.
	wanted uint32
	wants  bool
}

// ackEvery is after how many pieces the peer is told, if nothing else goes to it.
const ackEvery = window / 4

// ackDue reports whether the peer should be told.
func (in *incoming) ackDue() bool {
	return in.next-in.lastAcked >= ackEvery || in.wants && int32(in.next-in.wanted) > 0
}

// want notes that the peer waits to be told of a piece, be it new or not.
func (in *incoming) want(number uint32) {
	if !in.wants || int32(number-in.wanted) > 0 {
		in.wanted, in.wants = number, true
	}
}

// tell gives what the peer is told.
func (in *incoming) takeAck() uint16 {
	in.lastAcked = in.next
	in.wants = in.wants && int32(in.next-in.wanted) <= 0
	return uint16(in.next)
}

// fresh reports whether a piece is one that has not come before, and that an honest sender
// may send.
func (in *incoming) fresh(number uint32) bool {
	return number-in.next < window && (in.reorderBuffer == nil || !in.reorderBuffer[number%window].present)
}

// keep puts a piece into the reorder buffer, which is there.
func (in *incoming) keep(number uint32, a arrival) *arrival {
	e := &in.reorderBuffer[number%window]
	*e = a
	e.present = true
	in.held++
	return e
}

// ready is the piece whose turn it is, nil if it has not come.
func (in *incoming) ready() *arrival {
	if in.held == 0 {
		return nil
	}
	if e := &in.reorderBuffer[in.next%window]; e.present {
		return e
	}
	return nil
}

// taken moves on after the piece whose turn it was.
func (in *incoming) taken(e *arrival) {
	if e != nil {
		*e = arrival{}
		in.held--
	}
	in.next++
}
