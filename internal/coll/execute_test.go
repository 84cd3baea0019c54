package coll

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// Execution of every algorithm: sched.Run runs the graphs of all ranks over a network in
// memory, with random bytes, and the results are compared with the plain definition of
// the collective. The validator proves the same symbolically; this test checks that the
// executor and the definition agree with it. One goroutine drives all ranks and picks
// the next message at random.

// network transfers the messages of one collective.
type network struct {
	runs     []*sched.Run
	rank     map[*sched.Run]int
	eager    bool // sends complete when posted
	late     bool // ranks begin at random times
	begun    []bool
	rng      *rand.Rand
	commutes bool
	queues   map[strand]*queue
	moved    []strand // strands with both a send and a receive

	delivered func(pair strand, to *sched.Run) // called for each message, if not nil
}

// strand is a stream between two ranks.
type strand struct{ from, to, stream int }

// Arrived reports at random that a peer has begun.
func (w *network) Arrived(_ *sched.Run, _ int, op *sched.Op) bool {
	return w.begun[op.Peer] && w.rng.Intn(3) > 0
}

type queue struct {
	sends, recvs []posted
}

type posted struct {
	id int
	b  []byte
}

func (w *network) Post(r *sched.Run, id int, op *sched.Op, b []byte) (bool, error) {
	me, peer := w.rank[r], int(op.Peer)
	pair := strand{me, peer, int(op.Stream)}
	if op.Kind == sched.Recv {
		pair.from, pair.to = peer, me
	}
	q := w.queues[pair]
	if q == nil {
		q = &queue{}
		w.queues[pair] = q
	}
	switch {
	case op.Kind == sched.Recv:
		q.recvs = append(q.recvs, posted{id, b})
	case w.eager:
		q.sends = append(q.sends, posted{-1, bytes.Clone(b)})
	default:
		q.sends = append(q.sends, posted{id, b})
	}
	if op.Kind == sched.Recv && len(q.sends) >= len(q.recvs) || op.Kind == sched.Send && len(q.recvs) >= len(q.sends) {
		w.moved = append(w.moved, pair)
	}
	return op.Kind == sched.Send && w.eager, nil
}

// Reduce adds bytes, or, if order matters, composes pairs of bytes (a, b) as functions
// x → a·x+b.
func (w *network) Reduce(_ *sched.Run, inout, in []byte) { combine(w.commutes, inout, in) }

func combine(commutes bool, inout, in []byte) {
	if commutes {
		for i := range inout {
			inout[i] += in[i]
		}
		return
	}
	for i := 0; i < len(inout); i += 2 {
		inout[i], inout[i+1] = in[i]*inout[i], in[i]*inout[i+1]+in[i+1]
	}
}

// run executes all graphs.
func (w *network) run(rng *rand.Rand) error {
	w.begun, w.rng = make([]bool, len(w.runs)), rng
	waiting := rng.Perm(len(w.runs))
	for len(w.moved)+len(waiting) > 0 {
		if len(waiting) > 0 && (len(w.moved) == 0 || !w.late || rng.Intn(4) == 0) {
			next := waiting[0]
			waiting = waiting[1:]
			w.begun[next] = true
			w.runs[next].Start()
			continue
		}
		if w.late {
			w.runs[rng.Intn(len(w.runs))].Serve()
		}
		if err := w.deliver(rng.Intn(len(w.moved))); err != nil {
			return err
		}
	}
	for i, r := range w.runs {
		if !r.Done() || r.Err() != nil {
			return fmt.Errorf("rank %d is stuck (%v):\n%v", i, r.Err(), r.Graph)
		}
	}
	for pair, q := range w.queues {
		if len(q.sends)+len(q.recvs) > 0 {
			return fmt.Errorf("from rank %d to %d: %d sends and %d receives are left", pair.from, pair.to, len(q.sends), len(q.recvs))
		}
	}
	return nil
}

// deliver delivers the first message of strand i of moved.
func (w *network) deliver(i int) error {
	pair := w.moved[i]
	w.moved[i] = w.moved[len(w.moved)-1]
	w.moved = w.moved[:len(w.moved)-1]
	q := w.queues[pair]
	s, r := q.sends[0], q.recvs[0]
	q.sends, q.recvs = q.sends[1:], q.recvs[1:]
	if len(s.b) != len(r.b) {
		return fmt.Errorf("rank %d sends %d bytes, rank %d receives %d", pair.from, len(s.b), pair.to, len(r.b))
	}
	copy(r.b, s.b)
	if w.delivered != nil {
		w.delivered(pair, w.runs[pair.to])
	}
	w.runs[pair.to].HandleEnd(r.id, nil)
	if s.id >= 0 {
		w.runs[pair.from].HandleEnd(s.id, nil)
	}
	return nil
}

// call is the memory of one rank in one collective.
type call struct{ in, out, want []byte }

// execute builds and runs one case.
func execute(a *Algorithm, shapes []Shape, params []int, rng *rand.Rand) error {
	calls := defineCalls(shapes, rng)
	w := &network{rank: map[*sched.Run]int{}, eager: rng.Intn(2) == 0, late: rng.Intn(2) == 0, commutes: shapes[0].Commutes, queues: map[strand]*queue{}}
	graphs := make([]*sched.Graph, len(shapes))
	for i := range shapes {
		var b sched.Builder
		b.Reset(i, len(shapes))
		a.Build(&b, &shapes[i], params)
		g, err := b.Graph()
		if err != nil {
			return fmt.Errorf("rank %d: %w", i, err)
		}
		graphs[i] = g
	}
	inSegment := rng.Intn(2) == 0
	seg := newSegments(graphs, shapes, inSegment, rng)
	for i, g := range graphs {
		r := &sched.Run{Graph: g, Port: w, Arrivals: w, InSegment: inSegment,
			Mem: [sched.Bufs][]byte{calls[i].in, calls[i].out, random(rng, g.Tmp), seg[i]}}
		w.runs = append(w.runs, r)
		w.rank[r] = i
	}
	if err := w.run(rng); err != nil {
		return err
	}
	for i, c := range calls {
		if !bytes.Equal(c.out, c.want) {
			return fmt.Errorf("rank %d has\n%v, must have\n%v:\n%v", i, c.out, c.want, w.runs[i].Graph)
		}
	}
	return nil
}

// newSegments returns the memory of each rank for the shared buffer: the same for all
// ranks of a node, or different ones.
func newSegments(graphs []*sched.Graph, shapes []Shape, inSegment bool, rng *rand.Rand) [][]byte {
	seg := make([][]byte, len(graphs))
	for r, g := range graphs {
		first := 0
		if nodes := shapes[0].Nodes; nodes != nil {
			first = nodes.leader(nodes.NodeOf(r))
		}
		if inSegment && r != first {
			seg[r] = seg[first]
		} else {
			seg[r] = random(rng, g.Shared)
		}
	}
	return seg
}

func random(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	rng.Read(b)
	return b
}

// defineCalls makes random inputs and outputs for all ranks, and what must be in
// the outputs by the definition of the collective.
func defineCalls(shapes []Shape, rng *rand.Rand) []call {
	n := len(shapes)
	if shapes[0].Kind > Neighbors {
		return defineByTask(shapes, rng)
	}
	root := shapes[0].Root
	data := make([][]byte, n) // what each rank gives
	calls := make([]call, n)
	for i := range shapes {
		s := &shapes[i]
		in, out := naiveSizes(s)
		calls[i].in, calls[i].out = random(rng, in), random(rng, out)
		data[i] = calls[i].in
		if s.InPlace && s.Kind != Scatter {
			data[i] = calls[i].out
			if s.Kind == Gather || s.Kind == Allgather {
				off, k := s.Recv.Block(i)
				data[i] = calls[i].out[off : off+k]
			}
		}
		data[i] = bytes.Clone(data[i])
	}
	// fold is the result over ranks from to to-1.
	fold := func(from, to int) []byte {
		acc := bytes.Clone(data[to-1])
		for i := to - 2; i >= from; i-- {
			combine(shapes[0].Commutes, acc, data[i])
		}
		return acc
	}
	for i := range shapes {
		s, c := &shapes[i], &calls[i]
		c.want = bytes.Clone(c.out)
		switch s.Kind {
		case Bcast:
			copy(c.want, calls[root].out)
		case Gather, Allgather:
			for j := range n {
				if s.Kind == Allgather || i == root {
					off, k := s.Recv.Block(j)
					copy(c.want[off:off+k], data[j])
				}
			}
		case Scatter:
			if !s.InPlace {
				off, k := shapes[root].Send.Block(i)
				copy(c.want, calls[root].in[off:off+k])
			}
		case Alltoall:
			for j := range n {
				from, k := shapes[j].outgoing(i)
				to, _ := s.Recv.Block(j)
				copy(c.want[to:to+k], data[j][from:])
			}
		case Reduce:
			if i == root {
				c.want = fold(0, n)
			}
		case Allreduce:
			c.want = fold(0, n)
		case ReduceScatter:
			off, k := s.Send.Block(i)
			copy(c.want[:k], fold(0, n)[off:])
		case Scan:
			c.want = fold(0, i+1)
		case Exscan:
			if i > 0 {
				c.want = fold(0, i)
			}
		}
	}
	return calls
}

// defineByTask is defineCalls for kinds that have only the definition of their row.
func defineByTask(shapes []Shape, rng *rand.Rand) []call {
	task := Task(shapes)
	calls, data := make([]call, len(shapes)), make([][]byte, len(shapes))
	for i, m := range task.Ranks {
		calls[i].in, calls[i].out = random(rng, m.In), random(rng, m.Out)
		for _, p := range m.Start {
			from := calls[i].in
			if p.Buf == sched.Out {
				from = calls[i].out
			}
			data[i] = append(data[i], make([]byte, max(0, p.At+p.Len-len(data[i])))...)
			copy(data[i][p.At:], from[p.Off:p.Off+p.Len])
		}
	}
	for i, m := range task.Ranks {
		calls[i].want = bytes.Clone(calls[i].out)
		for _, p := range m.End {
			part := calls[i].want[p.Off : p.Off+p.Len]
			copy(part, data[p.To-1][p.At:])
			for from := p.To - 2; from >= p.From; from-- {
				combine(task.Commutes, part, data[from][p.At:p.At+p.Len])
			}
		}
	}
	return calls
}

// naiveSizes is how long In and Out of a rank are.
func naiveSizes(s *Shape) (in, out int) {
	extent := func(b *Blocks) (end int) {
		for i := range s.Size {
			off, n := b.Block(i)
			end = max(end, off+n)
		}
		return end
	}
	_, own := s.Send.Block(s.Rank)
	_, mine := s.Recv.Block(s.Rank)
	atRoot := s.Rank == s.Root
	switch s.Kind {
	case Bcast:
		return 0, s.Bytes
	case Gather:
		in = mine
		if atRoot {
			out = extent(&s.Recv)
		}
	case Scatter:
		out = own
		if atRoot {
			in = extent(&s.Send)
			if s.InPlace {
				out = 0
			}
		}
		return in, out
	case Allgather:
		in, out = mine, extent(&s.Recv)
	case Alltoall:
		in, out = extent(&s.Send), extent(&s.Recv)
	case Reduce:
		in = s.Bytes
		if atRoot {
			out = s.Bytes
		}
	case Allreduce, Scan, Exscan:
		in, out = s.Bytes, s.Bytes
	case ReduceScatter:
		in, out = extent(&s.Send), own
		if s.InPlace {
			out = in
		}
	}
	if s.InPlace {
		in = 0
	}
	return in, out
}

// cases gives the shapes of all ranks for each case of one algorithm.
func cases(a *Algorithm, ranks int, rng *rand.Rand, try func(name string, shapes []Shape)) {
	casesOf(a, ranks, []int{0, 1, 3, 37}, rng, try)
}

func casesOf(a *Algorithm, ranks int, counts []int, rng *rand.Rand, try func(name string, shapes []Shape)) {
	if a.Kind == Barrier {
		counts = counts[:1]
	}
	for _, count := range counts {
		for variant := range 8 {
			irregular, inPlace, commutes := variant&1 != 0, variant&2 != 0, variant&4 == 0
			if irregular && !hasBlocks(a.Kind) || inPlace && (a.Kind == Bcast || a.Kind == Barrier) || !commutes && !a.Kind.Combines() {
				continue
			}
			if irregular && a.Needs.Regular || inPlace && a.Needs.NotInPlace || !commutes && a.Needs.Commutes ||
				ranks < a.Needs.MinRanks || a.Needs.Nodes && ranks < 2 || a.Needs.Even && ranks%2 != 0 || a.Needs.WholeBlocks && count < ranks {
				continue
			}
			roots := 1
			if a.Kind.Rooted() {
				roots = ranks
			}
			for root := range roots {
				shapes := make([]Shape, ranks)
				for i := range shapes {
					shapes[i] = Shape{Kind: a.Kind, Rank: i, Size: ranks, Root: root, Elem: 2, Commutes: commutes,
						InPlace: inPlace && (i == root || !a.Kind.Rooted()), Bytes: 2 * count}
				}
				if a.Needs.Nodes {
					nodes := drawNodes(ranks, rng)
					if nodes == nil {
						continue
					}
					for i := range shapes {
						shapes[i].Nodes = nodes
					}
				}
				layBlocks(shapes, 2*count, irregular, rng)
				if irregular && a.Needs.Lengths {
					exchangeLengths(shapes)
				}
				try(fmt.Sprintf("%d ranks, %d elements, root %d, irregular %v, in place %v, commutes %v",
					ranks, count, root, irregular, inPlace, commutes), shapes)
			}
		}
	}
}

func hasBlocks(k Kind) bool {
	return (k.Input() == AllBlocks || k.Output() == AllBlocks) && !k.Near()
}

// layBlocks gives the shapes their blocks, irregular ones with gaps and not in
// order.
func layBlocks(shapes []Shape, each int, irregular bool, rng *rand.Rand) {
	n := len(shapes)
	kind, root := shapes[0].Kind, shapes[0].Root
	lay := func(lens []int) Blocks {
		b := Blocks{Lens: lens, Offs: make([]int, n), Irregular: true}
		at := 0
		for _, i := range rng.Perm(n) {
			at += 2 * rng.Intn(2)
			b.Offs[i] = at
			at += lens[i]
		}
		return b
	}
	draw := func() []int {
		lens := make([]int, n)
		for i := range lens {
			lens[i] = 2 * rng.Intn(each/2+3)
		}
		return lens
	}
	if !irregular {
		for i := range shapes {
			shapes[i].Send.Each, shapes[i].Recv.Each = each, each
		}
		return
	}
	switch kind {
	case Alltoall:
		table := make([][]int, n)
		for i := range n {
			table[i] = draw()
			if shapes[0].InPlace { // the same length both ways
				for j := range i {
					table[i][j] = table[j][i]
				}
			}
		}
		for i := range n {
			column := make([]int, n)
			for j := range n {
				column[j] = table[j][i]
			}
			shapes[i].Send, shapes[i].Recv = lay(table[i]), lay(column)
			if shapes[0].InPlace {
				shapes[i].Send = shapes[i].Recv
			}
		}
	default:
		b := lay(draw())
		for i := range shapes {
			mine := b
			if kind.Rooted() && i != root {
				mine = Blocks{Each: b.Lens[i], Irregular: true}
			}
			if kind == Gather || kind == Allgather {
				shapes[i].Recv = mine
			} else {
				shapes[i].Send = mine
			}
		}
	}
}

func TestExecute(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	total := 0
	for _, a := range allForms(Algorithms()) {
		if a.Kind == Neighbors { // have a test of their own
			continue
		}
		t.Run(fmt.Sprintf("%s/%s", a.Kind, a.Name), func(t *testing.T) {
			for ranks := 1; ranks <= 9; ranks++ {
				for _, params := range allParams(a.Params) {
					cases(&a, ranks, rng, func(name string, shapes []Shape) {
						total++
						if err := execute(&a, shapes, params, rng); err != nil {
							t.Fatalf("%v, %s: %v", params, name, err)
						}
					})
				}
			}
		})
	}
	t.Logf("%d cases executed", total)
}

// TestExecuteLong has data that is too long for scratch of its own for every
// receive, and long enough for pipelines to be cut into several segments. The
// matrix of proofs has short data only, so they are proved here too.
func TestExecuteLong(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	for _, a := range Algorithms() {
		if a.Kind != Bcast && !a.Kind.Combines() {
			continue
		}
		t.Run(fmt.Sprintf("%s/%s", a.Kind, a.Name), func(t *testing.T) {
			for _, ranks := range []int{2, 5, 8} {
				for _, params := range [][]int{a.Default(), last(a.Params)} {
					casesOf(&a, ranks, []int{7001}, rng, func(name string, shapes []Shape) {
						if root := shapes[0].Root; root != 0 && root != ranks/2 && root != ranks-1 {
							return
						}
						if err := execute(&a, shapes, params, rng); err != nil {
							t.Fatalf("%v, %s: %.2000v", params, name, err)
						}
						if err := a.prove(shapes, params); err != nil {
							t.Fatalf("%v, %s: %v", params, name, err)
						}
					})
				}
			}
		})
	}
}

// last is the last value of every parameter, for pipelines a short segment.
func last(params []Param) (values []int) {
	for _, p := range params {
		v := p.Values[len(p.Values)-1]
		if p.Name == "segment" {
			v = 1000 // several in all tests
		}
		values = append(values, v)
	}
	return values
}

// allParams is every combination of the values worth trying.
func allParams(params []Param) [][]int {
	all := [][]int{nil}
	for _, p := range params {
		var longer [][]int
		for _, before := range all {
			values := p.Values
			if p.Name == "segment" {
				values = append(values[:len(values):len(values)], 8) // short enough for the data of this test
			}
			for _, v := range values {
				longer = append(longer, append(before[:len(before):len(before)], v))
			}
		}
		all = longer
	}
	return all
}

// TestBarrierWaits omits one rank: no other may leave the barrier.
func TestBarrierWaits(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for _, a := range slices.Concat(barrierAlgorithms(), nodesSpreadAlgorithms()[:1]) {
		for _, params := range allParams(a.Params) {
			for ranks := 2; ranks <= 20; ranks++ {
				for late := range ranks {
					w := &network{rank: map[*sched.Run]int{}, eager: true, queues: map[strand]*queue{}}
					for i := range ranks {
						var b sched.Builder
						b.Reset(i, ranks)
						a.Build(&b, &Shape{Kind: Barrier, Rank: i, Size: ranks, Nodes: put(&a, ranks)}, params)
						g, err := b.Graph()
						if err != nil {
							t.Fatal(err)
						}
						if i == late {
							g = &sched.Graph{} // never enters
						}
						r := &sched.Run{Graph: g, Port: w}
						w.runs = append(w.runs, r)
						w.rank[r] = i
					}
					if err := w.run(rng); err == nil {
						t.Fatalf("%s %v: %d ranks, without rank %d: all leave", a.Name, params, ranks, late)
					}
					for i, r := range w.runs {
						if i != late && r.Done() {
							t.Fatalf("%s %v: %d ranks: rank %d leaves without rank %d:\n%v", a.Name, params, ranks, i, late, r.Graph)
						}
					}
				}
			}
		}
	}
}
