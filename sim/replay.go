package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/sched"
	"github.com/muster-mpi/muster/internal/trace"
)

// Replay of a recorded program. The calls of each rank are cut at the collectives of all
// ranks. What is between two of them is a schedule of its own, a section: messages,
// computation, and collectives on some of the ranks.
//
// A job with more ranks than the trace is extrapolated: it consists of copies of the
// recorded one. Messages, and collectives on some of the ranks, stay within a copy;
// collectives of all ranks span all copies, with the recorded lengths.

// Replayed is a recorded program as calls.
type Replayed struct {
	Calls []Call
	// Recorded is the number of ranks of the trace, and Elapsed the time in µs from the end
	// of Init to the end of the last call. The simulated job begins there too: computation
	// before the first call counts.
	Recorded int
	Elapsed  float64
	// Collectives counts the calls of all ranks, and Messages those of the program itself.
	Collectives, Messages int
	// Left describes what is not simulated.
	Left []string
}

// Replay converts a trace into calls of ranks on a topology, nil for one node. The number
// of ranks must be a multiple of those of the trace.
func Replay(t *trace.Trace, m *Machine, ranks int, nodes *coll.Topology) (*Replayed, error) {
	p := &replay{t: t, m: m, ranks: ranks, nodes: nodes, base: len(t.Ranks), streams: map[stream]uint16{}, left: map[string]int{}}
	switch {
	case p.base < 2:
		return nil, fmt.Errorf("a trace of %d ranks has nothing to simulate", p.base)
	case ranks%p.base != 0:
		return nil, fmt.Errorf("%d ranks: use a multiple of %d, the ranks of the trace", ranks, p.base)
	}
	for r, k := range t.Ranks {
		if k.Rank != r {
			return nil, fmt.Errorf("the trace has no rank %d", r)
		}
		if k.Dropped > 0 {
			p.left[fmt.Sprintf("calls of rank %d beyond the limit of the trace", r)] += k.Dropped
		}
		p.programs = append(p.programs, k.Program())
	}
	if err := p.cut(); err != nil {
		return nil, err
	}
	p.match()
	x := &Replayed{Recorded: p.base, Collectives: len(p.ends[0]), Messages: p.messages * (ranks / p.base), Elapsed: float64(t.Span().SinceInit()) / 1e3}
	for s := range len(p.ends[0]) + 1 {
		section, err := p.section(s)
		if err != nil {
			return nil, err
		}
		x.Calls = append(x.Calls, *section)
		if s < len(p.ends[0]) {
			call, err := p.collective(&p.programs[0][p.ends[0][s]])
			if err != nil {
				return nil, err
			}
			x.Calls = append(x.Calls, *call)
		}
	}
	if len(x.Calls) >= 1<<16 {
		return nil, fmt.Errorf("%d collectives are too many: record fewer calls (MUSTER_TRACE_LIMIT)", x.Collectives)
	}
	for what, n := range p.left {
		x.Left = append(x.Left, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(x.Left)
	return x, nil
}

type replay struct {
	t           *trace.Trace
	m           *Machine
	ranks, base int
	nodes       *coll.Topology
	programs    [][]trace.Op
	ends        [][]int       // by rank: indices of the collectives of all ranks
	sent        []map[int]int // by rank: sections of the sends that are received, by index
	received    []map[int]int // by rank: sections of the receives that have a message
	messages    int
	streams     map[stream]uint16
	left        map[string]int
}

// stream identifies messages that match in order.
type stream struct {
	context uint32
	tag     int
}

// kindOf returns the collective of an operation, if it is simulated. A non-blocking one counts
// as a blocking one where it is started. Those with individual lengths have the recorded one
// everywhere.
func kindOf(op *trace.Op) (coll.Kind, bool) {
	if op.Kind != trace.OpCollective {
		return 0, false
	}
	k, form, ok := coll.KindOfFunction(op.Name)
	simulated := form == coll.Blocking && k != coll.Finalize || form == coll.Started && op.Starts
	return k, ok && simulated && !k.Near() && !strings.HasSuffix(op.Name, "w")
}

func (p *replay) all(c *trace.Comm) bool { return len(c.Ranks) == 0 || len(c.Ranks) == p.base }

// cut finds the collectives of all ranks, which must be the same on each.
func (p *replay) cut() error {
	p.ends = make([][]int, p.base)
	for r, program := range p.programs {
		for i := range program {
			op := &program[i]
			kind, ok := kindOf(op)
			if op.Kind == trace.OpCollective && !ok {
				p.left["calls of "+op.Name]++
			}
			if !ok || !p.all(op.Comm) {
				continue
			}
			p.ends[r] = append(p.ends[r], i)
			n := len(p.ends[r])
			if r == 0 {
				continue
			}
			if n > len(p.ends[0]) {
				return fmt.Errorf("rank %d has more collectives of all ranks than rank 0", r)
			}
			if first, _ := kindOf(&p.programs[0][p.ends[0][n-1]]); first != kind {
				return fmt.Errorf("collective %d of all ranks is %v on rank 0 and %v on rank %d", n, first, kind, r)
			}
		}
		if len(p.ends[r]) < len(p.ends[0]) {
			return fmt.Errorf("rank %d has %d collectives of all ranks, rank 0 %d", r, len(p.ends[r]), len(p.ends[0]))
		}
	}
	return nil
}

// sectionOf returns the section of an operation.
func (p *replay) sectionOf(r, i int) int {
	s, _ := slices.BinarySearch(p.ends[r], i)
	return s
}

// match finds the section of each message: that of its send. A receive that the program has
// posted earlier, or completes after a collective, is in it too.
func (p *replay) match() {
	p.sent, p.received = make([]map[int]int, p.base), make([]map[int]int, p.base)
	for r := range p.base {
		p.sent[r], p.received[r] = map[int]int{}, map[int]int{}
	}
	matched := p.t.Match()
	if matched.Unmatched > 0 {
		p.left["sends and receives without the other end"] = matched.Unmatched
	}
	for _, one := range matched.Messages {
		if one.Send.Rank == one.Recv.Rank {
			p.left["messages of a rank to itself"]++
			continue
		}
		s := p.sectionOf(int(one.Send.Rank), int(one.Send.Event))
		p.sent[one.Send.Rank][int(one.Send.Event)], p.received[one.Recv.Rank][int(one.Recv.Event)] = s, s
		p.messages++
	}
}

// shapeOf returns the shape of a collective among n ranks.
func (p *replay) shapeOf(op *trace.Op, n int) coll.Shape {
	kind, _ := kindOf(op)
	return coll.EqualBlocks(kind, 0, n, 0, op.Bytes)
}

// collective returns the call of a collective of all ranks.
func (p *replay) collective(op *trace.Op) (*Call, error) {
	s := p.shapeOf(op, p.ranks)
	s.Nodes = p.nodes
	if s.Kind.Rooted() {
		s.Root = max(op.Peer, 0)
	}
	choice, err := p.m.Choose(&s)
	if err != nil {
		return nil, err
	}
	return &Call{Algorithm: choice.Algorithm, Params: choice.Params, Shape: s}, nil
}

// section returns the call of a section.
func (p *replay) section(s int) (*Call, error) {
	c := &Call{Shape: coll.Shape{Size: p.ranks, Nodes: p.nodes}, section: &schedules{base: int32(p.base), of: make([]int32, p.base), rule: make([]uint8, p.base)}}
	var b sched.Builder
	for r := range p.base {
		b.Reset(r, p.ranks)
		w := sectionBuilder{replay: p, b: &b, rank: r, section: s, last: sched.None, started: map[int]sched.ID{}}
		if err := w.build(); err != nil {
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
		g, err := b.Graph()
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
		for i := range g.Ops { // the same distance in every copy
			if op := &g.Ops[i]; op.Kind <= sched.Recv {
				op.Peer = wrap(op.Peer-int32(r), int32(p.ranks))
			}
		}
		t := newTemplate(g, false)
		for i := range t.ops {
			if t.ops[i].kind == sched.Copy {
				t.ops[i].kind = compute
			}
		}
		c.section.of[r] = int32(r)
		c.section.templates = append(c.section.templates, t)
		c.section.ops += len(t.ops) * (p.ranks / p.base)
	}
	return c, nil
}

// sectionBuilder builds the schedule of one rank. Computation is a copy whose length is the
// time in nanoseconds.
type sectionBuilder struct {
	*replay
	b             *sched.Builder
	rank, section int
	last          sched.ID
	started       map[int]sched.ID
}

func (w *sectionBuilder) build() error {
	from, to := 0, len(w.programs[w.rank])
	if w.section > 0 {
		from = w.ends[w.rank][w.section-1] + 1
	}
	if w.section < len(w.ends[w.rank]) {
		to = w.ends[w.rank][w.section]
	}
	program := w.programs[w.rank]
	moved := []int{}
	for i, s := range w.received[w.rank] {
		if s == w.section && (i < from || i >= to) {
			moved = append(moved, i)
		}
	}
	slices.Sort(moved)
	for _, i := range moved {
		w.started[i] = w.receive(&program[i])
	}
	for i := from; i < to; i++ {
		if err := w.add(i, &program[i]); err != nil {
			return err
		}
	}
	if to < len(program) {
		w.compute(program[to].Compute)
	}
	return nil
}

// add adds an operation of the program.
func (w *sectionBuilder) add(i int, op *trace.Op) error {
	w.compute(op.Compute)
	if _, ok := kindOf(op); ok {
		return w.partial(op)
	}
	ids := []sched.ID{w.last}
	if s, ok := w.sent[w.rank][i]; ok && s == w.section {
		w.stream(op.Comm.Context, op.Tag)
		ids = append(ids, w.b.Send(op.Peer, sched.Span{Buf: sched.In, Len: op.Bytes}, w.last))
	}
	if s, ok := w.received[w.rank][i]; ok && s == w.section {
		ids = append(ids, w.receive(op))
	}
	if op.Starts {
		w.started[i] = w.b.Join(ids[1:]...)
		return nil
	}
	for _, k := range op.Completes {
		if id, ok := w.started[k]; ok {
			ids = append(ids, id)
		}
	}
	w.last = w.b.Join(ids...)
	if op.Kind == trace.OpOther && len(op.Completes) == 0 {
		w.compute(op.Took)
	}
	return nil
}

func (w *sectionBuilder) receive(op *trace.Op) sched.ID {
	w.stream(op.Comm.Context, op.FromTag)
	return w.b.Recv(op.From, sched.Span{Buf: sched.Out, Len: op.FromBytes}, w.last)
}

// stream selects the stream of a context and tag.
func (w *sectionBuilder) stream(context uint32, tag int) {
	k := stream{context, tag}
	n, ok := w.streams[k]
	if !ok {
		n = uint16(len(w.streams) % sched.Streams)
		w.streams[k] = n
	}
	w.b.Stream(int(n))
}

// compute adds computation.
func (w *sectionBuilder) compute(nanos int64) {
	const most = 1 << 30
	for ; nanos > 0; nanos -= most {
		n := int(min(nanos, most))
		w.last = w.b.Copy(sched.Span{Buf: sched.Tmp, Len: n}, sched.Span{Buf: sched.In, Len: n}, w.last)
	}
}

// partial adds a collective on some of the ranks.
func (w *sectionBuilder) partial(op *trace.Op) error {
	ranks := op.Comm.Ranks
	s := w.shapeOf(op, len(ranks))
	if s.Rank = slices.Index(ranks, w.rank); s.Rank < 0 {
		return fmt.Errorf("%s on a communicator that the rank is not in", op.Name)
	}
	if s.Kind.Rooted() {
		s.Root = max(slices.Index(ranks, op.Peer), 0)
	}
	if s.Size < 2 {
		return nil
	}
	choice, err := w.m.Choose(&s)
	if err != nil {
		return err
	}
	var inner sched.Builder
	g, err := choice.Algorithm.Graph(&inner, &s, choice.Params)
	if err == nil {
		g, err = g.Expand()
	}
	if err != nil {
		return err
	}
	w.inline(g, op.Comm)
	return nil
}

// inline adds the operations of a graph of some of the ranks.
func (w *sectionBuilder) inline(g *sched.Graph, c *trace.Comm) {
	before := make([][]sched.ID, len(g.Ops))
	ids := make([]sched.ID, len(g.Ops))
	ends := []sched.ID{w.last}
	for i := range g.Ops {
		op := &g.Ops[i]
		after := append(before[i], w.last)
		switch op.Kind {
		case sched.Send:
			w.stream(c.Context, -1-int(op.Stream))
			ids[i] = w.b.Send(c.Ranks[op.Peer], sched.Span{Buf: sched.In, Len: op.Src.Len}, after...)
		case sched.Recv:
			w.stream(c.Context, -1-int(op.Stream))
			ids[i] = w.b.Recv(c.Ranks[op.Peer], sched.Span{Buf: sched.Out, Len: op.Dst.Len}, after...)
		default:
			by := w.m.Copy
			if op.Kind == sched.Reduce {
				by = w.m.Reduce
			}
			n := max(int(by*float64(op.Dst.Len)), 1)
			ids[i] = w.b.Copy(sched.Span{Buf: sched.Tmp, Len: n}, sched.Span{Buf: sched.In, Len: n}, after...)
		}
		for _, next := range g.Successors(i) {
			before[next] = append(before[next], ids[i])
		}
		if len(g.Successors(i)) == 0 {
			ends = append(ends, ids[i])
		}
	}
	w.last = w.b.Join(ends...)
}
