package sim

import "github.com/muster-mpi/muster/internal/sched"

// Messages: who spends how much time on them, and how they share rails. A short message
// is sent at once. A long one is announced; within a node the receiver then copies the
// data, and between nodes it asks for it.

// costs are a Level in picoseconds. Times of short messages are in a table, because the
// interpolation of a Curve takes longer than the rest of an event.
type costs struct {
	latency, gap int64
	byte         float64
	eager        int32
	o            Curve
	short        [64]int64 // by size / 8
}

func newCosts(l *Level) costs {
	c := costs{latency: int64(l.L * picos), gap: int64(l.Gap * picos), byte: l.G * picos, eager: int32(min(l.Eager, 1<<30)), o: l.O}
	for i := range c.short {
		c.short[i] = int64(l.O.At(8*i) * picos)
	}
	return c
}

func (c *costs) processor(bytes int32) int64 {
	if i := bytes / 8; int(i) < len(c.short) {
		return c.short[i]
	}
	return int64(c.o.At(int(bytes)) * picos)
}

// ahead is how far the clock of a rank may be ahead of the simulation when its message
// occupies a rail at once. Beyond it, an event at the right time does.
const ahead = 2_000 * picos

func (s *Sim) costs(a, b int32) *costs {
	if s.node(a) == s.node(b) {
		return &s.near
	}
	return &s.far
}

// slow returns the time that a processor of a rank takes for some work.
func (s *Sim) slow(r int32, t int64) int64 {
	if s.faults.SlowNode > 0 && s.node(r) == s.faults.SlowNode-1 {
		return int64(float64(t) * s.faults.SlowFactor)
	}
	return t
}

// control is the time of a processor for a message without data.
func (s *Sim) control(r, peer int32) int64 { return s.slow(r, s.costs(r, peer).short[0]) }

// receiveCost is the time of a processor for receiving a message.
func (s *Sim) receiveCost(r, peer, bytes int32, long bool) int64 {
	c := s.costs(r, peer)
	t := c.processor(bytes)
	if long { // the announcement and the request were counted
		t = max(t-2*c.short[0], c.short[0])
	}
	if c == &s.near {
		t = s.memory(r, t, bytes)
	}
	return s.slow(r, t)
}

// memory returns the time of a copy that takes t if the memory of the host is idle.
func (s *Sim) memory(r int32, t int64, bytes int32) int64 {
	if bytes < 1<<10 || s.m.Memory == 0 {
		return t
	}
	// The clock of a rank that posts many messages is ahead of the simulation. Others copy
	// meanwhile, so the memory is busy from the time of the simulation on.
	h := &s.hosts[s.node(r)/s.perHost]
	h.memory = max(h.memory, s.now) + int64(float64(bytes)*s.m.Memory*picos)
	return max(t, h.memory-s.ranks[r].cpu)
}

// compute is the kind of an operation of a replayed program whose length is its time in
// nanoseconds.
const compute sched.Kind = 100

// local is a copy, a reduction or computation.
func (s *Sim) local(r int32, k *rank, op *operation) {
	if op.kind == compute {
		k.cpu += s.slow(r, int64(op.bytes)*picos)
		return
	}
	by := s.m.Copy
	if op.kind == sched.Reduce {
		by = s.m.Reduce
	}
	t := int64(by * float64(op.bytes) * picos)
	k.cpu += s.slow(r, s.memory(r, t, op.bytes))
}

func (s *Sim) postSend(r int32, k *rank, op *operation, id, peer int32) (ended bool) {
	c := s.costs(r, peer)
	e := event{src: r, dst: peer, op: id, bytes: op.bytes, step: k.step}
	if c == &s.near {
		s.stats.Near++
		s.stats.NearBytes += int64(op.bytes)
		if op.bytes <= c.eager {
			k.cpu += s.slow(r, s.memory(r, c.processor(op.bytes), op.bytes))
			e.t, e.kind = k.cpu+c.latency, evHand
			s.q.push(e)
			return true
		}
		s.stats.NearLong++
		k.cpu += s.control(r, peer)
		e.t, e.kind = k.cpu+c.latency, evAsk
		s.q.push(e)
		return false
	}
	s.stats.Far++
	s.stats.FarBytes += int64(op.bytes)
	if op.bytes <= c.eager {
		k.cpu += s.slow(r, c.processor(op.bytes))
		e.kind = evHand
		s.inject(k.cpu, &e)
		return true
	}
	s.stats.FarLong++
	s.stats.Control++
	k.cpu += s.control(r, peer)
	e.t, e.kind = k.cpu+c.latency+c.gap, evAsk
	s.q.push(e)
	return false
}

// pull gets the data of a long message for a receive. It reports whether the receive is
// complete; it is under way otherwise, also if it was posted just now.
func (s *Sim) pull(r int32, k *rank, id, from, send int32) (ended bool) {
	c := s.costs(r, from)
	bytes := s.steps[k.step].template(r).ops[id].bytes
	s.stats.Control++
	if c == &s.near {
		t := max(2*c.processor(bytes)-3*c.short[0], c.short[0])
		k.cpu += s.slow(r, s.memory(r, t, bytes))
		s.q.push(event{t: k.cpu + c.latency, src: r, dst: from, op: send, step: k.step, kind: evSent})
		if s.state[k.base+int64(id)]&here != 0 {
			panic("sim: a long message came twice")
		}
		s.state[k.base+int64(id)] |= here
		return true
	}
	k.cpu += s.control(r, from)
	s.q.push(event{t: k.cpu + c.latency + c.gap, src: r, dst: from, op: send, bytes: bytes, step: k.step, kind: evPull})
	return false
}

// sendPulled sends the data of a long message.
func (s *Sim) sendPulled(r int32, k *rank, e *event) {
	c := &s.far
	k.cpu += s.slow(r, max(c.processor(e.bytes)-c.short[0], c.short[0]))
	s.inject(k.cpu, &event{src: r, dst: e.src, op: e.op, bytes: e.bytes, step: e.step, kind: evData})
}

// inject puts a message onto a rail of the sender at a time.
func (s *Sim) inject(t int64, e *event) {
	e.t = t
	if t > s.now+ahead {
		late := *e
		late.kind, late.rail = evInject, e.kind
		s.q.push(late)
		return
	}
	s.reserve(e)
}

// transmit is a delayed inject; rail has the kind of the message.
func (s *Sim) transmit(e *event) {
	e.kind, e.rail = e.rail, 0
	s.reserve(e)
}

// reserve uses the sender's rail that is free first, or all rails.
func (s *Sim) reserve(e *event) {
	tx, lost := s.railsOf(s.tx, e.src)
	at := firstFree(tx, lost)
	busy, all := s.busy(e.bytes, lost >= 0)
	out := int64(0)
	for i := range tx {
		if i != lost && (all || i == at) {
			out = max(out, tx[i].take(e.t, busy, int64(s.m.Burst*picos)))
		}
	}
	if e.kind == evData {
		s.q.push(event{t: out, src: e.dst, dst: e.src, op: e.op, step: e.step, kind: evSent})
	}
	e.t = out + s.far.latency
	if e.rail = uint8(at); all {
		e.rail = allRails
	}
	if e.t > s.now+s.far.latency+ahead {
		late := *e
		late.kind, late.op = evArrive, e.op
		if e.kind == evData {
			late.rail |= dataBit
		}
		s.q.push(late)
		return
	}
	s.receiveOn(e)
}

// Marks in event.rail between the adapters.
const (
	allRails = 0x7f
	dataBit  = 0x80
)

// land is a message at the receiver's adapter.
func (s *Sim) land(e *event) {
	e.kind = evHand
	if e.rail&dataBit != 0 {
		e.kind = evData
	}
	e.rail &^= dataBit
	s.receiveOn(e)
}

// receiveOn occupies the receiver's rail and hands the message to the rank.
func (s *Sim) receiveOn(e *event) {
	rx, lost := s.railsOf(s.rx, e.dst)
	busy, all := s.busy(e.bytes, lost >= 0)
	all = all || e.rail == allRails
	at := int(e.rail)
	if at == lost || at >= len(rx) {
		at = firstFree(rx, lost)
	}
	t := e.t
	for i := range rx {
		if i != lost && (all || i == at) {
			t = max(t, rx[i].take(e.t-busy, busy, int64(s.m.Burst*picos)))
		}
	}
	e.t = max(t, s.now)
	s.q.push(*e)
}

// busy is the time that a message occupies a rail, and whether it uses all.
func (s *Sim) busy(bytes int32, lost bool) (t int64, all bool) {
	wire := float64(bytes) * s.far.byte
	rails := s.rails
	if lost {
		rails--
	}
	if all = s.m.Stripe > 0 && int(bytes) > s.m.Stripe && rails > 1; all {
		wire /= float64(rails)
	}
	return max(s.far.gap, int64(wire)), all
}

// take occupies a rail from time t on and returns when it has transmitted.
func (l *rail) take(t, busy, burst int64) int64 {
	l.busy += busy
	l.free = max(l.free, t-burst) + busy
	return max(l.free, t)
}

// railsOf returns the rails of a rank's node, and the index of the lost one, or -1.
func (s *Sim) railsOf(all []rail, r int32) (list []rail, lost int) {
	n := s.node(r)
	lost = -1
	if s.faults.LostNode == n+1 {
		lost = s.faults.LostRail - 1
	}
	return all[n*s.rails : (n+1)*s.rails], lost
}

func firstFree(list []rail, lost int) int {
	at := -1
	for i := range list {
		if i != lost && (at < 0 || list[i].free < list[at].free) {
			at = i
		}
	}
	return at
}
