package p2p

// One run of a program on a world: the events that can happen next, and the invariants that
// must hold after each.

import (
	"errors"
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// event is something that can happen next.
type event struct {
	kind eventKind
	a, b int8 // step, die, notice: rank · take, deliver: from, to · complete, cancel, offer: rank, operation
	i    int8 // deliver: which packet
}

type eventKind uint8

const (
	evStep eventKind = iota
	evTake
	evDeliver
	evDouble // a packet is delivered and stays in flight
	evComplete
	evCancel // a receive is cancelled
	evOffer  // a receive sends its RTR
	evDie    // a rank dies
	evNotice // another rank notices the death
)

func (e event) String() string {
	switch e.kind {
	case evStep:
		return fmt.Sprintf("rank %d goes on", e.a)
	case evTake:
		return fmt.Sprintf("the device of rank %d takes a request to rank %d", e.a, e.b)
	case evDeliver:
		return fmt.Sprintf("packet %d from rank %d to rank %d is delivered", e.i, e.a, e.b)
	case evDouble:
		return fmt.Sprintf("packet %d from rank %d to rank %d is delivered, and will come again", e.i, e.a, e.b)
	case evCancel:
		return fmt.Sprintf("rank %d cancels its operation %d", e.a, e.b)
	case evOffer:
		return fmt.Sprintf("rank %d may send an RTR for its operation %d", e.a, e.b)
	case evDie:
		return fmt.Sprintf("rank %d dies", e.a)
	case evNotice:
		return fmt.Sprintf("rank %d notices", e.a)
	}
	return fmt.Sprintf("the work of rank %d's operation %d completes", e.a, e.b)
}

// setting is the environment of a program.
type setting struct {
	rendezvous string
	reorder    bool // packets of a link may be delivered in any order
	slow       bool // devices accept requests late
	double     bool // the network may duplicate one packet
	localKeys  bool
	credit     int64
	shared     bool // all senders share the credit
	// plain sends go by Send, as calls with a context do; the others by SendOne or
	// SendNow if they can.
	plain bool
	// depth is that of the devices' queues, with room for as many OpPush; 0: no limit.
	depth int
	// regions is how many a rank can register at a time; 0: no limit.
	regions int
	// early receives, those of non-blocking calls, send an RTR if they may.
	early   bool
	anytime bool // but at any time while they wait
	adapt   bool // and stop after a wasted one, except for every second
	mortal  bool // a rank may die
	// transfer, if not 0, is the longest Read or Write.
	transfer int
}

func (s setting) String() string {
	out := s.rendezvous
	for _, f := range []struct {
		on   bool
		name string
	}{{s.reorder, "reorder"}, {s.slow, "slow"}, {s.double, "double"}, {s.localKeys, "localkeys"}, {s.credit != 0, fmt.Sprint("credit=", s.credit)}, {s.shared, "shared"}, {s.plain, "plain"}, {s.depth != 0, fmt.Sprint("depth=", s.depth)}, {s.regions != 0, fmt.Sprint("regions=", s.regions)},
		{s.early, "early"}, {s.anytime, "anytime"}, {s.adapt, "adapt"}, {s.mortal, "mortal"},
		{s.transfer != 0, fmt.Sprint("transfer=", s.transfer)}} {
		if f.on {
			out += " " + f.name
		}
	}
	return out
}

// run is a running program.
type run struct {
	setting
	p     program
	w     *world
	ranks [maxRanks]progress
	// template is a link before its first use.
	template [maxRanks][maxRanks]Link
	got      outcome
	dead     int // the dead rank, or -1
	ending   bool
	doubled  int    // packets that the network has duplicated
	fault    string // the first violation
	owner    Waiter
	plant    bug // for tests of the explorer
	kept     []offer
	keptBy   *Link

	replaying bool
}

// progress is the state of a rank in its program.
type progress struct {
	pc    int
	done  [maxOps]bool
	opOf  [2 * maxOps]int8 // operation of each Xfer, by its index in the slab
	spots [maxOps][]byte   // buffers
	met   [maxOps]int8     // rendezvous message that matched a receive, plus 1
	asked [maxOps]bool     // receives that the rank has tried to cancel
	spoke [maxOps]bool     // receives for which offer was called

	noticed bool // it has noticed another rank's death
}

// Buffers have fixed offsets in a rank's arena.
const (
	spotLen   = roomFull + guardLen
	arenaLen  = guardLen + maxOps*spotLen
	poison    = 0xDD // written into a send buffer when its send has completed
	untouched = 0
)

func newRun(p program, s setting) *run {
	cfg := Config{EagerLimit: sizeSegment, Rendezvous: s.rendezvous, Credit: s.credit, Speculate: "always"}
	if s.shared {
		cfg.Senders, cfg.leastCredit = len(p)-1, 1
	}
	attr := testAttr(sizeSegment / 2)
	attr.LocalKeys, attr.MaxTransfer = s.localKeys, s.transfer
	if s.depth > 0 {
		attr.MaxPush = s.depth
	}
	attr.MaxRegions = s.regions
	r := &run{setting: s, p: p, w: newWorld(len(p), cfg, attr, arenaLen)}
	r.w.slow, r.w.depth = s.slow, s.depth
	r.w.done = r.ended
	for i, n := range r.w.nodes {
		if s.adapt {
			n.m.specRule = specRule{spare: 0, pause: 2, rest: 2, of: 1, resume: 1}
		}
		n.m.match.buckets, n.m.match.shift = make([]*entry, 8), 64-3 // a small table is fast to clear
		for k, l := range n.links {
			r.template[i][k] = *l
		}
		n.m.observe = func(x *Xfer, ev Event) {
			from := int(x.Source)
			if ev.Kind != EvMatched || r.dead == from {
				return
			}
			if k := r.operation(from, x.peer); k >= 0 { // else it completed when the data was written
				r.ranks[i].met[r.operation(i, x.handle)] = int8(message(from, k) + 1)
			}
		}
		n.mem.limit = s.regions
		for k := range maxOps {
			at := guardLen + k*spotLen
			r.ranks[i].spots[k] = n.mem.arena[at : at+roomFull]
		}
	}
	r.reset(p)
	return r
}

// reset returns to the initial state and keeps the allocated memory.
func (r *run) reset(p program) {
	r.p, r.got, r.doubled, r.fault, r.dead, r.ending = p, ^outcome(0), 0, "", -1, false
	r.w.fault, r.w.heap = "", r.w.heap[:0]
	r.w.pushDepth = r.plant == bugPushDepth
	for i := range r.w.wires {
		wi := &r.w.wires[i]
		wi.wait, wi.inFlight = wi.wait[:0], wi.inFlight[:0]
	}
	for i, n := range r.w.nodes {
		recycle(n.m)
		n.m.creditPool = newCreditPool(&n.m.cfg)
		for k, l := range n.links {
			held, partial, offers := l.held[:0], l.partial[:0], l.offers[:0]
			*l = r.template[i][k]
			l.held, l.partial, l.offers = held, partial, offers
		}
		n.work = n.work[:0]
		n.mem.reset()
		pr := &r.ranks[i]
		pr.pc, pr.done, pr.met, pr.noticed = 0, [maxOps]bool{}, [maxOps]int8{}, false
		pr.asked, pr.spoke = [maxOps]bool{}, [maxOps]bool{}
		for k, op := range p[i] {
			clear(pr.spots[k][:op.size])
		}
	}
}

// recycle resets a machine.
func recycle(m *Machine) {
	for g := m.match.arrived.head; g != nil; {
		next := g.nodes[listArrived].next
		m.putMsg(g)
		g = next
	}
	t := &m.match
	for b, e := range t.buckets {
		for e != nil {
			next := e.chain
			e.chain, t.free = t.free, e
			e = next
		}
		t.buckets[b] = nil
	}
	for _, d := range m.devices {
		d.pushes, d.exposed, d.matched = 0, 0, 0
	}
	m.starved = m.starved[:0]
	m.match = matcher{buckets: t.buckets, shift: t.shift, free: t.free}
	m.free = m.free[:0]
	for i := len(m.slab) - 1; i >= 0; i-- {
		*m.slab[i] = Xfer{handle: uint64(i) + 1}
		m.free = append(m.free, m.slab[i])
	}
	m.Out.WR, m.Out.Link, m.Out.Done = m.Out.WR[:0], m.Out.Link[:0], m.Out.Done[:0]
}

// events lists the events that can happen next.
func (r *run) events(out []event) []event {
	w := r.w
	for i := range w.nodes {
		if i == r.dead {
			continue
		}
		for k := range r.ranks[i].pc {
			if r.p[i][k].cancel && !r.ranks[i].done[k] && !r.ranks[i].asked[k] {
				out = append(out, event{kind: evCancel, a: int8(i), b: int8(k)})
			}
			if op := r.p[i][k]; r.anytime && !op.send && !op.block && !r.ranks[i].done[k] && !r.ranks[i].spoke[k] {
				out = append(out, event{kind: evOffer, a: int8(i), b: int8(k)})
			}
		}
		if r.free(i) {
			out = append(out, event{kind: evStep, a: int8(i)})
		}
		for k := range w.nodes {
			wi := w.wire(i, k)
			if w.takes(i, k) {
				out = append(out, event{kind: evTake, a: int8(i), b: int8(k)})
			}
			for f := range wi.inFlight {
				if f > 0 && !r.reorder || k == r.dead {
					break
				}
				out = append(out, event{kind: evDeliver, a: int8(i), b: int8(k), i: int8(f)})
				if r.double && r.doubled == 0 {
					out = append(out, event{kind: evDouble, a: int8(i), b: int8(k), i: int8(f)})
				}
			}
		}
		for k := range w.nodes[i].work {
			if w.ready(i, k) {
				out = append(out, event{kind: evComplete, a: int8(i), b: int8(r.operation(i, w.nodes[i].work[k].wr.ID))})
			}
		}
	}
	if r.mortal {
		out = r.deaths(out)
	}
	return out
}

// free reports whether a rank can continue its program.
func (r *run) free(i int) bool {
	pr := &r.ranks[i]
	return pr.pc < len(r.p[i]) && (pr.pc == 0 || !r.p[i][pr.pc-1].block || pr.done[pr.pc-1])
}

// operation returns the operation of a rank's handle.
func (r *run) operation(rank int, handle uint64) int {
	if r.w.nodes[rank].m.find(handle) == nil {
		return -1
	}
	return int(r.ranks[rank].opOf[handle&(1<<32-1)-1])
}

// happen executes an event and checks its effects.
func (r *run) happen(e event) {
	w := r.w
	switch e.kind {
	case evStep:
		if op := r.p[e.a][r.ranks[e.a].pc]; r.plant == bugMispred && op.send && op.size <= sizeSegment {
			r.keepOffers(w.nodes[e.a].links[op.peer])
		}
		if r.plant == bugPushes {
			w.nodes[e.a].m.devices[0].pushes = 0
		}
		if r.plant == bugExposed {
			w.nodes[e.a].m.devices[0].exposed = 0
		}
		r.issue(int(e.a))
	case evTake:
		w.take(int(e.a), int(e.b))
		w.settle(int(e.a))
	case evDeliver:
		r.misdeliver(e)
		w.deliver(int(e.a), int(e.b), int(e.i))
	case evDouble:
		r.doubled++
		wi := w.wire(int(e.a), int(e.b))
		wi.inFlight = append(wi.inFlight, wi.inFlight[e.i])
		w.deliver(int(e.a), int(e.b), int(e.i))
	case evComplete:
		n := w.nodes[e.a]
		for k := range n.work {
			if r.operation(int(e.a), n.work[k].wr.ID) == int(e.b) {
				if n.work[k].to == r.dead {
					w.failWork(int(e.a), k, rdma.StatusPeerGone)
				} else if s := w.complete(int(e.a), k); s != rdma.StatusOK {
					r.wrong("the work of rank %d's operation %d ended with: %s", e.a, e.b, s)
				}
				break
			}
		}
	case evCancel:
		r.cancel(int(e.a), int(e.b))
	case evOffer:
		r.speak(int(e.a), int(e.b))
	case evDie:
		r.die(int(e.a))
	case evNotice:
		r.notice(int(e.a))
	}
	if r.plant != bugNone {
		r.meddle()
	}
	if r.replaying {
		return // it was checked the first time
	}
	if w.fault != "" {
		r.wrong("the device saw: %s", w.fault)
	}
	if from, to, op, found := w.stranded(); found {
		r.wrong("rank %d's %v to rank %d waits behind an OpPush that waits for the peer's application", from, op, to)
	}
	for i, n := range w.nodes {
		for _, l := range n.links {
			if l.Err != nil && l.Rank != r.dead {
				r.wrong("rank %d gives rank %d up: %v", i, l.Rank, l.Err)
			}
			if l.credit < 0 {
				r.wrong("rank %d has used %d more credit with rank %d than it had", i, -l.credit, l.Rank)
			}
		}
	}
}

func (r *run) wrong(format string, args ...any) {
	if r.fault == "" {
		r.fault = fmt.Sprintf(format, args...)
	}
}

// issue starts a rank's next operation, as the engine does.
func (r *run) issue(rank int) {
	n, pr := r.w.nodes[rank], &r.ranks[rank]
	i := pr.pc
	op := r.p[rank][i]
	pr.pc++
	buf := pr.spots[i][:op.size]
	if !op.send {
		x := n.m.New()
		x.Buf, x.Source, x.Tag, x.Owner = buf, int32(op.peer), int32(op.tag), &r.owner
		if op.peer != AnySource {
			x.Link = n.links[op.peer]
		}
		r.name(rank, i, x)
		n.m.Recv(x)
		if r.early && !op.block && !r.anytime {
			r.offer(n.m, x)
		}
		r.w.settle(rank)
		return
	}
	for k := range buf {
		buf[k] = payload(message(rank, i), k)
	}
	l := n.links[op.peer]
	if !op.sync && !r.plain && r.w.sendNow(rank, l, int32(op.tag), buf) {
		wait := r.w.wire(rank, int(op.peer)).wait
		if len(wait) == 0 {
			r.finish(rank, i)
			return
		}
		x := n.m.Adopt(l)
		x.Owner = &r.owner
		r.name(rank, i, x)
		wait[len(wait)-1].ID = x.Handle()
		return
	}
	x := n.m.New()
	x.Buf, x.Link, x.Source, x.Tag, x.Owner = buf, l, int32(rank), int32(op.tag), &r.owner
	if op.sync {
		x.Mode = Synchronous
	}
	r.name(rank, i, x)
	n.m.Send(x)
	r.w.settle(rank)
}

// name records which operation an Xfer belongs to.
func (r *run) name(rank, i int, x *Xfer) { r.ranks[rank].opOf[x.handle&(1<<32-1)-1] = int8(i) }

// ended handles completed operations.
func (r *run) ended(rank int, x *Xfer) {
	if r.ending {
		return
	}
	i := r.operation(rank, x.handle)
	op := r.p[rank][i]
	if r.ranks[rank].done[i] {
		r.wrong("rank %d's operation %d ended twice", rank, i)
	}
	switch gone := r.dead >= 0 && x.Link != nil && x.Link.Rank == r.dead && x.Err != nil; {
	case x.Cancelled && r.ranks[rank].asked[i], gone && !op.send:
		r.ranks[rank].done[i] = true
	case op.send:
		if x.Err != nil && !gone {
			r.wrong("rank %d's send %d ended with: %v", rank, i, x.Err)
		}
		r.finish(rank, i)
	default:
		r.received(rank, i, x)
	}
	r.w.nodes[rank].m.Free(x)
}

// finish completes a send: the rank may reuse the buffer, and overwrites it.
func (r *run) finish(rank, i int) {
	pr := &r.ranks[rank]
	pr.done[i] = true
	buf := pr.spots[i][:r.p[rank][i].size]
	for k := range buf {
		buf[k] = poison
	}
}

// received determines which message a receive got.
func (r *run) received(rank, i int, x *Xfer) {
	r.ranks[rank].done[i] = true
	from, msg := int(x.Source), -1
	if from < 0 || from >= len(r.p) {
		r.wrong("rank %d's receive %d names source %d", rank, i, from)
		return
	}
	for k, op := range r.p[from] { // by envelope and length, then by data or sender's handle
		m := message(from, k)
		if !r.p.fits(rank, i, m) || r.taken(m, rank, i) || int32(op.tag) != x.Tag ||
			int(op.size) != x.total || min(op.size, r.p[rank][i].size) != int8(x.Len) {
			continue
		}
		if met := r.ranks[rank].met[i]; met != 0 && int(met) != m+1 {
			continue
		}
		if x.Len == 0 || messageOf(x.Buf[0]) == m {
			msg = m
			break
		}
	}
	if msg < 0 {
		r.wrong("rank %d's receive %d got source %d, tag %d, data %x, error %v, which is no message that is to come",
			rank, i, x.Source, x.Tag, x.Buf[:x.Len], x.Err)
		return
	}
	if long := r.p[from][msg%maxOps].size > r.p[rank][i].size; long != errors.Is(x.Err, ErrTruncated) || !long && x.Err != nil {
		r.wrong("rank %d's receive %d of %d bytes ended with: %v", rank, i, x.Len, x.Err)
	}
	r.got.set(rank, i, msg)
}

// taken reports whether another receive has got a message.
func (r *run) taken(msg, rank, i int) bool {
	to := int(r.p[msg/maxOps][msg%maxOps].peer)
	for k, op := range r.p[to] {
		if !op.send && (to != rank || k != i) && (r.got.of(to, k) == msg || int(r.ranks[to].met[k]) == msg+1) {
			return true
		}
	}
	return false
}

// final checks the invariants when no event is left.
func (r *run) final() {
	if r.dead >= 0 || r.p.cancels() {
		r.finalOf()
		return
	}
	for rank, n := range r.w.nodes {
		pr := &r.ranks[rank]
		for i := range r.p[rank] {
			if i >= pr.pc || !pr.done[i] {
				r.wrong("stuck: rank %d's operation %d has not ended and nothing can happen", rank, i)
				return
			}
		}
		if r.plant == bugNone { // a planted bug must be found by its effects
			r.links(rank)
		}
		if len(n.mem.regs) > 0 || len(n.work) > 0 || n.m.CountUnexpected() > 0 {
			r.wrong("rank %d leaves %d regions, %d requests, %d messages", rank, len(n.mem.regs), len(n.work), n.m.CountUnexpected())
		}
		for p, l := range n.links {
			back := r.w.nodes[p].links[rank]
			if len(l.held) > 0 || len(l.partial) > 0 || l.credit+back.consumed != back.granted {
				r.wrong("rank %d has with rank %d: %d packets held, %d partial messages, credit %d and %d of %d",
					rank, p, len(l.held), len(l.partial), l.credit, back.consumed, back.granted)
			}
		}
		if sum := granted(n.links, rank); r.shared && sum > n.m.cfg.Credit {
			r.wrong("rank %d has granted %d of credit, and has %d", rank, sum, n.m.cfg.Credit)
		}
		r.memory(rank, n.mem)
	}
}

// memory checks every byte of a rank: buffers hold the expected data, and nothing else was
// written.
func (r *run) memory(rank int, mem *memory) {
	var want [arenaLen]byte
	for i := range want {
		want[i] = guardByte
	}
	for i, op := range r.p[rank] {
		spot := want[guardLen+i*spotLen:][:op.size]
		msg := r.got.of(rank, i)
		for k := range spot {
			switch {
			case op.send && r.ranks[rank].done[i]:
				spot[k] = poison
			case op.send:
				spot[k] = payload(message(rank, i), k)
			case msg == nothing:
				spot[k] = untouched
			case k < int(r.p[msg/maxOps][msg%maxOps].size):
				spot[k] = payload(msg, k)
			default:
				spot[k] = untouched
			}
		}
	}
	for i := range want {
		if mem.arena[i] != want[i] {
			r.wrong("rank %d has %#x at byte %d of its memory, want %#x", rank, mem.arena[i], i, want[i])
			return
		}
	}
}

// granted returns the total credit of a rank's senders, without itself.
func granted(links []*Link, rank int) (sum int64) {
	for _, l := range links {
		if l != nil && l.Rank != rank {
			sum += l.granted
		}
	}
	return sum
}
