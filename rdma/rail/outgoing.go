package rail

// The pieces in flight to one peer: add numbers a piece, settle ends it when a rail has
// delivered it, leave takes back the pieces of a rail that is left, and again returns
// the next one to send again.
//
// A number is used once. A piece keeps it when it is sent again over another rail, so
// that the receiver recognizes it. No number is sent that is window or more beyond the
// receiver's next one, as far as known: that bounds its reorder buffer. The delivery of
// a piece by a rail is not enough for that, because the receiver may poll another rail
// first. For the same reason a message that was sent over two rails is settled only
// when the receiver has acked it: until then it may read either copy.

// window is how many pieces may be in flight to a peer, on all rails together.
const window = 128

type pieceState uint8

const (
	pieceSettled pieceState = iota
	pieceSent
	pieceWaiting // to be sent again
)

// piece is a part of an operation.
type piece struct {
	op     *operation
	offset int
	length int
	ticket uint32 // of its last transmission, on its path
	rail   int8
	state  pieceState
	again  bool // a message that was sent over several rails
}

// pieces is the memory for a window of pieces. A peer with nothing in flight has none.
type pieces [window]piece

type outgoing struct {
	ring     *pieces
	first    uint32 // the oldest unsettled piece
	next     uint32 // the number of the next new one
	peerNext uint32 // the receiver's next number, as far as known
	waiting  int
	doubles  int // pieces that were sent again and are not acked
}

func (o *outgoing) at(number uint32) *piece { return &o.ring[number%window] }

// idle reports whether nothing is in flight.
func (o *outgoing) idle() bool { return o.first == o.next }

// full reports whether no new piece may be sent.
func (o *outgoing) full() bool { return o.next-o.first == window || o.next-o.peerNext >= window }

// has reports whether a piece is in flight.
func (o *outgoing) has(number uint32) bool {
	return number-o.first < o.next-o.first && o.at(number).state != pieceSettled
}

// add adds a piece and returns its number.
func (o *outgoing) add(p piece) uint32 {
	n := o.next
	*o.at(n) = p
	o.next++
	return n
}

// settle ends a piece and returns its operation, or nil if the piece has ended before.
func (o *outgoing) settle(number uint32) *operation {
	if !o.has(number) {
		return nil
	}
	p := o.at(number)
	if p.state == pieceWaiting {
		o.waiting--
	}
	if p.again {
		o.doubles--
	}
	op := p.op
	*p = piece{}
	for !o.idle() && o.at(o.first).state == pieceSettled {
		o.first++
	}
	return op
}

// leave marks every piece in flight on a rail to be sent again, and returns their
// number.
func (o *outgoing) leave(rail int) (n int) {
	for i := o.first; i != o.next; i++ {
		if p := o.at(i); p.state == pieceSent && int(p.rail) == rail {
			p.state = pieceWaiting
			n++
		}
	}
	o.waiting += n
	return n
}

// again returns the number of the oldest piece to send again. There must be one.
func (o *outgoing) again() uint32 {
	i := o.first
	for o.at(i).state != pieceWaiting {
		i++
	}
	return i
}

// sent records that a piece was sent again over another rail.
func (o *outgoing) sent(number uint32, rail int, ticket uint32) {
	p := o.at(number)
	p.state, p.rail, p.ticket = pieceSent, int8(rail), ticket
	o.waiting--
	if p.op.kind == kindMessage && !p.again {
		p.again = true
		o.doubles++
	}
}

// taken returns a piece that was sent again and that the receiver has acked.
func (o *outgoing) taken() (number uint32, ok bool) {
	for i := o.first; o.doubles > 0 && int32(o.peerNext-i) > 0; i++ {
		if o.at(i).again {
			return i, true
		}
	}
	return 0, false
}

// acknowledged processes an ack: the low half of the receiver's next number.
func (o *outgoing) acknowledged(ack uint16) {
	if n := int16(ack - uint16(o.peerNext)); n > 0 && uint32(n) <= o.next-o.peerNext {
		o.peerNext += uint32(n)
	}
}
