package rail

import (
	"errors"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/guard"
)

// A flow is everything between a queue pair and one peer. The send path: push queues an
// operation, flush cuts it into pieces and assigns each to a rail, settle and lose
// process the outcome, and service looks after the paths.

type flow struct {
	q         *pair
	peer      rdma.PeerID
	paths     []path
	preferred int  // the rail for short messages, if it is not busy
	busy      bool // on the busy list of its queue pair
	epoch     uint8
	base      uint32 // number of the first piece of this epoch

	oldest, newest *operation // not fully cut into pieces
	out            outgoing
	requests       *requests
	nextRequest    uint32

	in        incoming
	met       bool // its hello has arrived
	refused   bool // the Write being received is refused
	barred    bool // too many refused memory accesses
	strikes   guard.Strikes
	ackNeeded bool // an ack may have been lost with a path
	peerEpoch uint8

	awaited, lookedAt, givenUp time.Duration // silent.go

	lastReceived time.Duration // last arrival from it, or the start of waiting for one
	lookAt       time.Duration // when to check the paths
}

const (
	// lookEvery is how often a waiting flow is checked.
	lookEvery = 25 * time.Millisecond
	// callEvery is how often a peer that has not responded to a request is probed.
	callEvery = 500 * time.Millisecond
	// goneTryEvery is how often a path is tried whose device has declared the peer
	// gone.
	goneTryEvery = time.Second
)

// push queues an operation.
func (f *flow) push(op *operation) {
	if f.oldest == nil {
		f.oldest = op
	} else {
		f.newest.following = op
	}
	f.newest = op
	f.markBusy()
}

// markBusy adds the flow to the busy list.
func (f *flow) markBusy() {
	if f.busy {
		return
	}
	f.busy = true
	f.lastReceived = f.q.dev.now
	f.lookAt = f.lastReceived + quietTime
	f.q.busy = append(f.q.busy, f)
}

// inactive reports whether there is no work for the flow.
func (f *flow) inactive() bool {
	if f.oldest != nil || !f.out.idle() || f.requests != nil || f.in.held > 0 || f.ackNeeded || f.in.ackDue() {
		return false
	}
	for i := range f.paths {
		if f.paths[i].busy() {
			return false
		}
	}
	return true
}

// releaseMemory returns memory that only a busy flow needs.
func (f *flow) releaseMemory() {
	d := f.q.dev
	if f.out.ring != nil {
		d.freePieces = append(d.freePieces, f.out.ring)
		f.out.ring = nil
	}
	if f.in.reorderBuffer != nil {
		d.freeReorderBuffers = append(d.freeReorderBuffers, f.in.reorderBuffer)
		f.in.reorderBuffer = nil
	}
	for i := range f.paths {
		if p := &f.paths[i]; p.tickets != nil {
			d.freeTickets = append(d.freeTickets, p.tickets)
			p.tickets = nil
		}
	}
}

// loads describes the paths to the planner. It opens the paths that deliver. If none is
// known to, it opens one untried path, and the hellos on the others will show more. If
// all were left, it opens those.
func (f *flow) loads(n int, list *[maxRails]load) []load {
	var have [gone]bool
	fastest := 0.0
	for i := range f.paths {
		if p := &f.paths[i]; p.reached && p.state != gone {
			have[p.state] = true
			fastest = max(fastest, p.speed)
		}
	}
	use := left
	if have[good] {
		use = good
	} else if have[untried] {
		use = untried
	}
	out := list[:len(f.paths)]
	chosen := false
	for i := range f.paths {
		k := (f.preferred + i) % len(f.paths)
		p := &f.paths[k]
		open := p.reached && p.state == use && !(chosen && use == untried)
		chosen = chosen || open
		out[k] = load{speed: max(p.speed, fastest*slowest), backlog: p.backlog, open: open, full: p.full || !p.room(n)}
	}
	return out
}

// flush gives the rails what they accept. Pieces to send again come first: the peer
// waits for them.
func (f *flow) flush() {
	var list [maxRails]load
	for f.out.waiting > 0 {
		number := f.out.again()
		p := f.out.at(number)
		if p.op.ended || p.op.reported && p.op.ours {
			f.settle(number) // the peer has responded, so it has arrived, and the rail has a copy
			continue
		}
		rail := pickRail(p.length, f.loads(p.length, &list), -1)
		if rail < 0 {
			return
		}
		if f.post(rail, number, p) {
			f.out.sent(number, rail, f.paths[rail].next-1)
		}
	}
	most := f.q.dev.maxPiece
	for f.oldest != nil && !f.out.full() {
		op := f.oldest
		size := op.size() - op.cut
		rail := -1
		if size > minStripe && op.kind != kindMessage {
			rail, size = stripe(size, most, f.loads(min(size, most), &list))
		} else {
			if op.kind != kindMessage {
				size = min(size, most)
			}
			rail = pickRail(size, f.loads(size, &list), f.preferred)
		}
		if rail < 0 {
			return
		}
		if f.out.ring == nil {
			f.out.ring = f.q.dev.takePieces()
		}
		p := piece{op: op, offset: op.cut, length: size, rail: int8(rail), state: pieceSent}
		if !f.post(rail, f.out.next, &p) {
			continue // another rail may accept it
		}
		p.ticket = f.paths[rail].next - 1
		f.out.add(p)
		op.refs++
		if op.cut += size; op.cut == op.size() {
			if f.oldest = op.following; f.oldest == nil {
				f.newest = nil
			}
			op.following = nil
			f.unref(op)
		}
	}
}

// post gives a piece to a rail. It returns false if the rail does not accept it.
func (f *flow) post(rail int, number uint32, p *piece) bool {
	path := &f.paths[rail]
	if !path.helloSent || path.helloEpoch != f.epoch {
		f.sendHellos()
		if !path.helloSent || path.helloEpoch != f.epoch || !path.room(p.length) {
			path.full = true
			return false
		}
	}
	q := f.q
	h, body := q.header(f, number, p)
	wr := &q.one[0]
	n := h.put(&wr.Head)
	wr.Flags = 0
	if h.kind == kindMessage {
		n += copy(wr.Head[n:], p.op.head[:p.op.headLen])
	}
	if h.kind != kindMessage && h.kind != kindData || p.op.solicited {
		wr.Flags = rdma.Solicited // a request or a response
	}
	if h.kind == kindAnswer || p.op.inline && h.kind == kindMessage {
		wr.Flags |= rdma.Lazy // the rail has a copy
	}
	wr.HeadLen, wr.Body = uint16(n), body
	return f.hand(rail, ticket{number: number, bytes: uint32(n + body.Len()), kind: h.kind})
}

// sendHellos sends a hello on every path without one in this epoch. It precedes
// everything else, and its arrival shows that the path works.
func (f *flow) sendHellos() {
	for i := range f.paths {
		if p := &f.paths[i]; p.reached && p.state != gone && (!p.helloSent || p.helloEpoch != f.epoch) {
			f.sendHello(i)
		}
	}
}

// sendHello sends a hello on a path.
func (f *flow) sendHello(rail int) {
	p, q := &f.paths[rail], f.q
	p.triedAt = q.dev.now
	// The ack in a hello is not relied on: the hello may be lost, and nothing repeats
	// it.
	h := header{kind: kindHello, epoch: f.epoch, ack: uint16(f.in.next), number: f.base, incarnation: q.incarnation, name: q.dev.name}
	if f.sendHeader(rail, &h) {
		p.helloInFlight, p.helloSent, p.helloEpoch = true, true, f.epoch
	}
}

// sendAck sends an ack, if one is due and nothing else carries it.
func (f *flow) sendAck() {
	if !f.ackNeeded && !f.in.ackDue() {
		return
	}
	var list [maxRails]load
	rail := pickRail(0, f.loads(0, &list), f.preferred)
	if rail < 0 {
		return
	}
	p := &f.paths[rail]
	if !p.helloSent || p.helloEpoch != f.epoch {
		f.sendHello(rail)
	}
	h := header{kind: kindAck, epoch: f.epoch, ack: uint16(f.in.next)}
	if p.helloSent && p.helloEpoch == f.epoch && f.sendHeader(rail, &h) {
		f.in.takeAck()
		f.ackNeeded = false
		p.ackInFlight = true
	}
}

// sendHeader sends a piece that is only a header.
func (f *flow) sendHeader(rail int, h *header) bool {
	wr := &f.q.one[0]
	wr.HeadLen, wr.Body, wr.Flags = uint16(h.put(&wr.Head)), rdma.Mem{}, 0
	p := &f.paths[rail]
	return p.next-p.first < maxTickets && f.hand(rail, ticket{bytes: uint32(wr.HeadLen), kind: h.kind})
}

// hand posts the request in q.one to a rail.
func (f *flow) hand(rail int, t ticket) bool {
	p, q := &f.paths[rail], f.q
	if p.tickets == nil {
		p.tickets = q.dev.takeTickets()
	}
	wr := &q.one[0]
	wr.Op, wr.Peer, wr.ID = rdma.OpSend, q.dev.peers[f.peer].inner[rail], uint64(f.peer)<<32|uint64(p.next)
	n, err := q.rails[rail].qp.PostSend(q.one[:])
	wr.Body = rdma.Mem{}
	if n == 1 {
		t.epoch = f.epoch
		q.rails[rail].Bytes += uint64(t.bytes)
		p.open(q.dev.now, t)
		return true
	}
	p.full = true
	if !errors.Is(err, rdma.ErrAgain) {
		f.lose(rail, gone)
	}
	return false
}

// settle ends a piece that has arrived.
func (f *flow) settle(number uint32) {
	op := f.out.settle(number)
	if op == nil {
		return
	}
	if op.kind == kindMessage {
		f.q.complete(f, op, rdma.StatusOK)
	}
	f.unref(op)
}

// settleTaken ends a message that was sent over several rails and that the peer has
// acked. The rail that has it last may not know about the arrival, and must not read
// the user's memory any more.
func (f *flow) settleTaken(number uint32) {
	if p := f.out.at(number); p.state == pieceSent && f.paths[p.rail].pending(p.ticket) {
		f.keep(int(p.rail))
	}
	f.settle(number)
}

// lose records that a path does not deliver. Its pieces in flight are sent again over
// others. If no path is left, the peer is gone.
func (f *flow) lose(rail int, to pathState) {
	p := &f.paths[rail]
	if p.state == gone || p.state == to {
		return
	}
	p.state, p.doubt = to, 0
	f.keep(rail) // the rail keeps trying, and the user gets the memory back before it ends
	p.helloSent = p.helloSent && to != gone
	c := &f.q.rails[rail].RailCounts
	c.Left++
	c.Again += uint64(f.out.leave(rail))
	f.ackNeeded = f.ackNeeded || p.ackInFlight
	p.ackInFlight = false
	for i := range f.paths {
		if f.paths[i].reached && f.paths[i].state != gone {
			return
		}
	}
	f.fail(rdma.StatusPeerGone)
}

// keep lets a rail copy what is in flight on it.
func (f *flow) keep(rail int) {
	if qp, ok := f.q.rails[rail].qp.(rdma.KeepingQP); ok && f.paths[rail].reached {
		qp.Keep(f.q.dev.peers[f.peer].inner[rail])
	}
}

// fail ends all operations to the peer. Later ones begin a new epoch, so that a peer
// that is still alive does not wait for missing pieces.
func (f *flow) fail(status rdma.Status) {
	for n := f.out.first; n != f.out.next; n++ {
		if f.out.has(n) {
			op := f.out.settle(n)
			f.q.complete(f, op, status)
			f.q.release(op)
		}
	}
	for f.oldest != nil {
		op := f.oldest
		f.oldest = op.following
		op.following = nil
		f.q.complete(f, op, status)
		f.q.release(op)
	}
	f.newest = nil
	for i := 0; f.requests != nil && i < maxRequests; i++ {
		if op := f.requests.list[i]; op != nil {
			f.completeRequest(op, status)
		}
	}
	f.epoch++
	f.base, f.out.peerNext, f.ackNeeded = f.out.next, f.out.next, false
	for i := range f.paths {
		f.paths[i].state, f.paths[i].helloSent, f.paths[i].doubt = untried, false, 0
	}
}

// waits reports whether a busy flow has no work until a rail delivers something.
func (f *flow) waits(now time.Duration) bool {
	return now < f.lookAt && f.oldest == nil && f.out.waiting == 0 && f.in.held == 0 && !f.ackNeeded && !f.in.ackDue() &&
		(!f.out.idle() || f.requests != nil)
}

// service does what is due.
func (f *flow) service(now time.Duration) {
	for i := range f.paths {
		f.paths[i].full = false
	}
	if now >= f.lookAt {
		f.look(now)
	}
	f.advance()
	f.flush()
	f.sendAck()
}

// look leaves paths that have been in doubt for too long, and tries others.
func (f *flow) look(now time.Duration) {
	waiting := f.oldest != nil || !f.out.idle() || f.requests != nil
	if f.silent(now, waiting) {
		f.giveUp(now)
		return
	}
	f.lookAt = now + lookEvery
	quiet := f.requests != nil && f.out.idle() && now-f.lastReceived >= callEvery
	for i := range f.paths {
		p := &f.paths[i]
		if now >= p.doubtEnds() {
			f.lose(i, left)
		}
		quiet = quiet || now >= p.quietEnds()
		f.lookAt = min(f.lookAt, p.doubtEnds())
	}
	for i := range f.paths {
		p := &f.paths[i]
		every := tryEvery
		if p.state == gone {
			every = goneTryEvery
		}
		if p.reached && waiting && !p.helloInFlight && (p.state == gone || quiet && !p.busy()) && now-p.triedAt >= every {
			f.sendHello(i)
		}
	}
}
