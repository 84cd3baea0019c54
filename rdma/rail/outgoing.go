package rail

// The pieces under way to one peer: add gives a piece its number, settle ends it when a
// rail has delivered it, leave takes the pieces of a rail that is left, and again gives
// those to be sent once more.
//
// A number is used once. It stays the same when a piece goes again over another rail, so
// that the receiver knows it. No number goes out that is window or more beyond the one
// whose turn it is at the receiver, as far as is known: that bounds what it must keep.
// That a rail has delivered a piece is not enough for that, for the receiver may look at
// another rail first. For the same reason a message that went over two rails is only
// settled when the receiver has taken it: until then it may look at either copy.

// window is how many pieces may be under way to a peer, on all rails together.
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
	ticket uint32 // on its path, that it went with last
	rail   int8
	state  pieceState
	again  bool // a message that went over several rails
}

// pieces is the memory for a window of them. A peer with nothing under way has none.
type pieces [window]piece

type outgoing struct {
	ring     *pieces
	first    uint32 // the oldest unsettled piece
	next     uint32 // the number of the next new one
	peerNext uint32 // whose turn it is at the receiver, as far as is known
	waiting  int
	doubles  int // pieces that went again and wait to be acknowledged
}

func (o *outgoing) at(number uint32) *piece { return &o.ring[number%window] }

// idle reports whether nothing is under way.
func (o *outgoing) idle() bool { return o.first == o.next }

// full reports whether no new piece may go.
func (o *outgoing) full() bool { return o.next-o.first == window || o.next-o.peerNext >= window }

// has reports whether a piece is under way.
func (o *outgoing) has(number uint32) bool {
	return number-o.first < o.next-o.first && o.at(number).state != pieceSettled
}

// add takes a piece and gives its number.
func (o *outgoing) add(p piece) uint32 {
	n := o.next
	*o.at(n) = p
	o.next++
	return n
}

// settle ends a piece and gives its operation. It is nil if the piece has ended before.
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

// leave makes every piece wait that was sent over a rail, and says how many.
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

// again gives the number of the oldest piece that waits. There is one.
func (o *outgoing) again() uint32 {
	i := o.first
	for o.at(i).state != pieceWaiting {
		i++
	}
	return i
}

// sent notes that a piece that waited is on its way over another rail.
func (o *outgoing) sent(number uint32, rail int, ticket uint32) {
	p := o.at(number)
	p.state, p.rail, p.ticket = pieceSent, int8(rail), ticket
	o.waiting--
	if p.op.kind == kindMessage && !p.again {
		p.again = true
		o.doubles++
	}
}

// taken gives the number of a piece that went again and that the receiver has taken.
func (o *outgoing) taken() (number uint32, ok bool) {
	for i := o.first; o.doubles > 0 && int32(o.peerNext-i) > 0; i++ {
		if o.at(i).again {
			return i, true
		}
	}
	return 0, false
}

// acknowledged takes in the low half of the number whose turn it is at the receiver.
func (o *outgoing) acknowledged(ack uint16) {
	if n := int16(ack - uint16(o.peerNext)); n > 0 && uint32(n) <= o.next-o.peerNext {
		o.peerNext += uint32(n)
	}
}
