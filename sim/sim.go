package sim

import (
	"fmt"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/sched"
)

// Call is a collective call of all ranks.
type Call struct {
	Algorithm *coll.Algorithm
	Params    []int
	Shape     coll.Shape // Rank is ignored
	// Segment means that the ranks of a node share a buffer, so that hand-overs have no
	// data (sched.Op.HandOver).
	Segment bool
	// Before is the time in nanoseconds that every rank computes before the call.
	Before float64

	section *schedules // of a replayed program (Replay), in place of Algorithm
}

// Config is a simulation. All calls have the same ranks and nodes.
type Config struct {
	Machine *Machine
	Calls   []Call
	// Arrive returns when a rank enters the first call, in nanoseconds; nil: all at 0.
	Arrive func(rank int) float64
	Faults Faults
	// Packets selects the level packets: real point-to-point machines. nil: schedules.
	Packets *Packets
	// Path records which operation each one waited for, so that the result has a
	// critical path. It takes 12 bytes per operation.
	Path bool
	// Limit is the largest memory in bytes for the state of all ranks; 0: no limit.
	Limit int
}

// Faults are what is wrong with the machine.
type Faults struct {
	// SlowNode takes SlowFactor times as long for what its processors do. It counts from
	// 1; 0: none.
	SlowNode   int
	SlowFactor float64
	// LostRail of node LostNode carries nothing. Both count from 1; 0: none.
	LostNode, LostRail int
}

// Sim is a simulation. Times are in picoseconds.
type Sim struct {
	size, nodes, rails int
	m                  *Machine
	topology           *coll.Topology // nil: one node
	steps              []step
	ranks              []rank
	state              []uint32 // of operations: the dependencies that are missing, and flags
	ready              []int32  // stack of operations of the current rank
	q                  queue
	now                int64
	tx, rx             []rail // by node and rail
	hosts              []host
	perHost            int // nodes
	shared             bool
	faults             Faults
	left               int
	path               *path
	packets            *packets    // nil: level schedule
	agree              *agreements // nil: the ranks execute calls
	stats              Stats
	near, far          costs
}

// step is a call as the ranks execute it; several steps may have the same schedules.
type step struct {
	*schedules
	before int64
}

// rank is the state of a rank.
type rank struct {
	base        int64 // of its operations in Sim.state
	cpu         int64 // its processor is busy until then
	begin, end  int64
	left, out   int32 // operations that are not complete; those that are under way
	step        uint16
	begun, done bool
	more        *more
}

// more is what only some ranks have.
type more struct {
	early       []event // messages of later calls
	pending     []event // what happened while the rank had no core
	queued      bool
	held, under []int32 // unordered sends: ready, and under way
	fresh       bool    // held must be examined
}

// rail is one direction of an adapter.
type rail struct{ free, busy int64 }

// Flags of an operation's state.
const (
	posted uint32 = 1 << 31
	here   uint32 = 1 << 30 // its message has arrived
	asked  uint32 = 1 << 29 // its long message is announced
	long   uint32 = 1 << 28 // the data of its long message has arrived
	flags         = posted | here | asked | long
)

const picos = 1000 // of a nanosecond

// New builds the schedules of all ranks.
func New(c Config) (*Sim, error) {
	if err := c.Machine.Check(); err != nil {
		return nil, fmt.Errorf("machine: %w", err)
	}
	if len(c.Calls) == 0 {
		return nil, fmt.Errorf("no call")
	}
	first := &c.Calls[0].Shape
	s := &Sim{size: first.Size, nodes: 1, rails: c.Machine.Rails, m: c.Machine, faults: c.Faults, perHost: max(c.Machine.NodesPerHost, 1)}
	if t := first.Nodes; t != nil {
		s.topology, s.nodes = t, t.Nodes()
	}
	s.near, s.far = newCosts(&c.Machine.Near), newCosts(&c.Machine.Far)
	s.tx, s.rx = make([]rail, s.nodes*s.rails), make([]rail, s.nodes*s.rails)
	if err := s.checkFaults(); err != nil {
		return nil, err
	}
	if c.Packets != nil {
		s.ranks = make([]rank, s.size)
		for r := range s.ranks {
			if c.Arrive != nil {
				s.ranks[r].begin = int64(c.Arrive(r) * picos)
			}
		}
		s.newHosts()
		return s, s.newPackets(&c)
	}
	for i := range c.Calls {
		if err := s.addCall(&c.Calls[i], c.Calls[:i]); err != nil {
			return nil, err
		}
	}
	s.ranks = make([]rank, s.size)
	ops := int64(0)
	for r := range s.ranks {
		most := 0
		for i := range s.steps {
			most = max(most, len(s.steps[i].template(int32(r)).ops))
		}
		s.ranks[r].base = ops
		ops += int64(most)
		if c.Arrive != nil {
			s.ranks[r].begin = int64(c.Arrive(r) * picos)
		}
	}
	if c.Limit > 0 && ops*4 > int64(c.Limit) {
		return nil, fmt.Errorf("%d operations of %d ranks need more than %d MB: simulate fewer ranks, or an algorithm with fewer messages", ops, s.size, c.Limit>>20)
	}
	s.state = make([]uint32, ops)
	if c.Path {
		s.path = newPath(s.size, int(ops))
	}
	s.newHosts()
	return s, nil
}

func (s *Sim) checkFaults() error {
	f := &s.faults
	switch {
	case f.SlowNode > s.nodes || f.LostNode > s.nodes || f.LostRail > s.rails:
		return fmt.Errorf("a fault names a node or rail beyond the %d nodes and %d rails", s.nodes, s.rails)
	case f.LostNode > 0 && s.rails == 1:
		return fmt.Errorf("a node that loses its only rail cannot take part")
	}
	return nil
}

// addCall appends a step. Equal calls share their schedules.
func (s *Sim) addCall(c *Call, before []Call) error {
	if c.Shape.Size != s.size || c.Shape.Nodes != nil && c.Shape.Nodes.Nodes() != s.nodes {
		return fmt.Errorf("call %d has other ranks or nodes than the first", len(before)+1)
	}
	gap := int64(c.Before * picos)
	if c.section != nil {
		s.steps = append(s.steps, step{c.section, gap})
		return nil
	}
	for i := range before {
		if before[i].same(c) {
			s.steps = append(s.steps, step{s.steps[i].schedules, gap})
			return nil
		}
	}
	all, err := newSchedules(c.Algorithm, c.Shape, c.Params, c.Segment)
	if err != nil {
		return err
	}
	s.steps = append(s.steps, step{all, gap})
	return nil
}

func (c *Call) same(d *Call) bool {
	if c.section != nil || c.Algorithm != d.Algorithm || c.Segment != d.Segment || len(c.Params) != len(d.Params) {
		return false
	}
	for i := range c.Params {
		if c.Params[i] != d.Params[i] {
			return false
		}
	}
	a, b := &c.Shape, &d.Shape
	return a.Kind == b.Kind && a.Root == b.Root && a.Bytes == b.Bytes && a.Send.Each == b.Send.Each && a.Recv.Each == b.Recv.Each &&
		a.Elem == b.Elem && a.Send.Lens == nil && b.Send.Lens == nil && a.Recv.Lens == nil && b.Recv.Lens == nil
}

// Run executes the calls and returns the result. It must be called once.
func (s *Sim) Run() (*Result, error) {
	for r := range s.ranks {
		k := &s.ranks[r]
		k.cpu = k.begin
		s.q.push(event{t: k.begin, dst: int32(r), kind: evStart})
	}
	s.left = s.size
	if err := s.events(); err != nil {
		return nil, err
	}
	return s.result(), nil
}

// events handles all events.
func (s *Sim) events() error {
	for s.q.n > 0 {
		e := s.q.pop()
		s.now = e.t
		s.stats.Events++
		switch e.kind {
		case evInject:
			s.transmit(&e)
		case evArrive:
			s.land(&e)
		case evFree:
			s.endSlice(e.dst)
		default:
			if s.shared {
				s.pend(&e)
				continue
			}
			k := &s.ranks[e.dst]
			k.cpu = max(k.cpu, e.t)
			s.handle(k, &e)
		}
	}
	if s.left > 0 {
		return fmt.Errorf("%d of %d ranks do not complete the calls: the schedules deadlock", s.left, s.size)
	}
	return nil
}

func (s *Sim) node(r int32) int {
	if s.topology == nil {
		return 0
	}
	return s.topology.NodeOf(int(r))
}

// handle does what a rank does when something happens. Its clock is k.cpu.
func (s *Sim) handle(k *rank, e *event) {
	switch {
	case s.packets != nil:
		s.packets.handle(k, e)
		return
	case s.agree != nil:
		s.agree.handle(k, e)
		return
	}
	r := e.dst
	if e.kind == evStart {
		s.enter(r, k)
	} else if e.step != k.step || !k.begun {
		m := k.extra()
		m.early = append(m.early, *e)
		return
	} else {
		s.message(r, k, e)
	}
	if k.more != nil && len(k.more.held) > 0 {
		k.more.fresh = true
		s.advance(r, k)
	}
	if k.begun && k.left == 0 && k.out == 0 {
		s.leave(r, k)
	}
}

func (k *rank) extra() *more {
	if k.more == nil {
		k.more = &more{}
	}
	return k.more
}

// enter starts a call of a rank.
func (s *Sim) enter(r int32, k *rank) {
	t := s.steps[k.step].template(r)
	k.begun = true
	k.left, k.out = int32(len(t.ops)), 0
	copy(s.state[k.base:], t.need)
	if s.path != nil {
		s.path.enter(r, k, len(t.ops))
	}
	for i := len(t.start) - 1; i >= 0; i-- {
		s.ready = append(s.ready, t.start[i])
	}
	s.advance(r, k)
	if k.more == nil || len(k.more.early) == 0 {
		return
	}
	early := k.more.early
	k.more.early = nil
	for i := range early {
		if early[i].step != k.step {
			k.more.early = append(k.more.early, early[i])
			continue
		}
		s.message(r, k, &early[i])
	}
}

// leave ends a call of a rank, and enters the next.
func (s *Sim) leave(r int32, k *rank) {
	k.begun = false
	if int(k.step)+1 == len(s.steps) {
		k.done, k.end = true, k.cpu
		s.left--
		return
	}
	k.step++
	gap := s.slow(r, s.steps[k.step].before)
	if gap > 0 {
		k.cpu += gap
		s.q.push(event{t: k.cpu, dst: r, step: k.step, kind: evStart})
		return
	}
	s.handle(k, &event{t: k.cpu, dst: r, step: k.step, kind: evStart})
}

// message handles an event of a message.
func (s *Sim) message(r int32, k *rank, e *event) {
	if s.path != nil {
		s.path.recordArrival(s, r, e)
	}
	if e.kind == evPull {
		s.sendPulled(r, k, e)
		return
	}
	if e.kind == evSent {
		s.complete(r, k, e.op)
		return
	}
	id := s.steps[k.step].receive(e.src, r, e.op)
	at := &s.state[k.base+int64(id)]
	switch e.kind {
	case evHand, evData:
		if *at |= here; e.kind == evData {
			*at |= long
		}
		if *at&posted != 0 {
			k.cpu += s.receiveCost(r, e.src, e.bytes, e.kind == evData)
			s.complete(r, k, id)
		}
	case evAsk:
		k.cpu += s.control(r, e.src)
		if *at |= asked; *at&posted != 0 && s.pull(r, k, id, e.src, e.op) {
			s.complete(r, k, id)
		}
	}
}

// complete ends an operation that was under way and starts what waited for it.
func (s *Sim) complete(r int32, k *rank, id int32) {
	t := s.steps[k.step].template(r)
	k.out--
	if t.ops[id].unordered {
		k.more.remove(id)
	}
	s.end(r, k, t, id)
	s.advance(r, k)
}

func (s *Sim) end(r int32, k *rank, t *template, id int32) {
	k.left--
	if s.path != nil {
		s.path.did(r, k, id)
	}
	after := t.after[t.first[id]:t.first[id+1]]
	for i := len(after) - 1; i >= 0; i-- {
		s.satisfy(k, after[i])
	}
}

func (s *Sim) satisfy(k *rank, id int32) {
	at := &s.state[k.base+int64(id)]
	if *at--; *at&^flags == 0 {
		s.ready = append(s.ready, id)
	}
}

// advance starts all operations that are ready, in the order of sched.Run.
func (s *Sim) advance(r int32, k *rank) {
	c := &s.steps[k.step]
	t := c.template(r)
	for {
		m := k.more
		if len(s.ready) == 0 {
			if m == nil || !m.fresh {
				return
			}
			s.serve(r, k, t)
			continue
		}
		id := s.ready[len(s.ready)-1]
		op := &t.ops[id]
		if m != nil && m.fresh && op.kind >= sched.Copy {
			s.serve(r, k, t)
			continue
		}
		s.ready = s.ready[:len(s.ready)-1]
		switch {
		case op.kind >= sched.Copy:
			s.local(r, k, op)
			s.end(r, k, t, id)
		case op.unordered:
			m := k.extra()
			m.held, m.fresh = append(m.held, id), true
		default:
			s.post(r, k, t, id)
		}
	}
}

// post posts a message and reports whether it is still under way.
func (s *Sim) post(r int32, k *rank, t *template, id int32) bool {
	op := &t.ops[id]
	peer := s.steps[k.step].peer(t, r, id)
	var ended bool
	if op.kind == sched.Recv {
		ended = s.postReceive(r, k, op, id, peer)
	} else {
		ended = s.postSend(r, k, op, id, peer)
	}
	if next := t.next[id]; next >= 0 {
		s.satisfy(k, next)
	}
	if ended {
		s.end(r, k, t, id)
		return false
	}
	if s.path != nil && op.kind == sched.Send {
		s.path.did(r, k, id)
	}
	k.out++
	return true
}

func (s *Sim) postReceive(r int32, k *rank, op *operation, id, peer int32) (ended bool) {
	at := &s.state[k.base+int64(id)]
	*at |= posted
	switch {
	case *at&here != 0:
		k.cpu += s.receiveCost(r, peer, op.bytes, *at&long != 0)
		return true
	case *at&asked != 0:
		return s.pull(r, k, id, peer, s.steps[k.step].send(peer, r, id))
	}
	return false
}
