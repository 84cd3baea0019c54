package sched

import "fmt"

// Generated graphs. Where every rank sends to every other, a graph has more operations
// than ranks: 10⁶ ranks would each hold 150 MB. A Generator makes the operations one by
// one while the graph runs, and the Run holds only a window of them: operation i is made
// when all operations up to i - Window have completed. A generated graph is thus the graph
// in which operation i also waits for those, and Expand returns that graph, for
// Validate, String and pictures.

// Generator makes the operations of a graph.
type Generator struct {
	Len      int // operations
	Receives int // of these
	Window   int // operations that a Run holds; a power of two
	// At returns operation i, with an absolute peer, and what it waits for. It returns the
	// same for the same i, and has no effect.
	At func(i int) (Op, Waits)
}

// Waits are the operations that a generated operation waits for. None stands for none.
type Waits struct {
	Ended  [3]ID // to complete
	Posted ID    // to be posted: the last one before it with the same peer, stream and kind
}

// WaitEnds returns the Waits for the completion of some operations, at most 3.
func WaitEnds(ids ...ID) Waits {
	w := Waits{Ended: [3]ID{None, None, None}, Posted: None}
	copy(w.Ended[:], ids)
	return w
}

// AndPosted adds the operation that must be posted before.
func (w Waits) AndPosted(posted ID) Waits {
	w.Posted = posted
	return w
}

// Nothing returns an operation without an effect, in place of an empty message.
func Nothing() Op { return Op{Kind: Copy, Src: Span{Buf: Tmp}, Dst: Span{Buf: Tmp}} }

// Generate makes the graph a generated one. The Builder must not have any operations.
func (b *Builder) Generate(g Generator) {
	switch {
	case len(b.ops) > 0:
		b.Fail("a generated graph with %d other operations", len(b.ops))
	case g.Window < 1 || g.Window&(g.Window-1) != 0:
		b.Fail("a window of %d operations; it must be a power of two", g.Window)
	default:
		b.generator = &g
	}
}

// Generated reports whether the operations of the graph are generated; Ops is then empty.
func (g *Graph) Generated() bool { return g.generator != nil }

// Len returns the number of operations.
func (g *Graph) Len() int {
	if g.generator != nil {
		return g.generator.Len
	}
	return len(g.Ops)
}

// Slots returns the number of operations that a Run holds at a time. The Run numbers
// operations from 0 to Slots - 1 (Port).
func (g *Graph) Slots() int {
	if g.generator != nil {
		return g.generator.Window
	}
	return len(g.Ops)
}

// Receives returns the number of receives.
func (g *Graph) Receives() (n int) {
	if g.generator != nil {
		return g.generator.Receives
	}
	for i := range g.Ops {
		if g.Ops[i].Kind == Recv {
			n++
		}
	}
	return n
}

// Bytes returns the memory of the graph.
func (g *Graph) Bytes() int {
	return graphBytes + opBytes*cap(g.Ops) + 4*(cap(g.first)+cap(g.after)+cap(g.nextPost)+cap(g.need))
}

// The sizes of a Graph, with its generator, and of an Op.
const (
	graphBytes = 256
	opBytes    = 64
)

// Expand returns a graph with all operations of a generated one, and otherwise g.
func (g *Graph) Expand() (*Graph, error) {
	if g.generator == nil {
		return g, nil
	}
	var b Builder
	b.Reset(g.Rank, g.Size)
	b.tmp, b.shared = g.Tmp, g.Shared
	n, window := g.generator.Len, g.generator.Window
	var after []ID
	posted := make([]ID, n)
	for i := range n {
		op, waits := g.generator.At(i)
		after = append(after[:0], waits.Ended[:]...)
		// Operation i - Window has itself waited for all up to i - 2·Window.
		for j := max(i-2*window+1, 0); j <= i-window; j++ {
			after = append(after, ID(j))
		}
		b.stream = op.Stream
		b.step = op.Step
		b.add(op, after)
		posted[i] = waits.Posted
	}
	all, err := b.Graph()
	if err != nil {
		return nil, err
	}
	for i := range n {
		next := all.NextPost(i)
		if next < 0 {
			continue
		}
		before := posted[next]
		for int(before) > i { // operations without an effect take the place of empty messages
			before = posted[before]
		}
		if before != ID(i) {
			return nil, fmt.Errorf("operation %d follows operation %d with the same peer, but does not wait for its post", next, i)
		}
	}
	return all, nil
}

// window is the part of a generated graph that a Run holds. Operation i is in slot
// i modulo the window.
type window struct {
	base, next int // operations below base have completed, those from next are not made
	mask       int
	state      []opState
	// Lists of the operations that wait for one to complete, and to be posted. An entry is
	// 4 × the slot of the waiting operation + the index of what it waits for, or -1.
	ended, posted []int32
	rest          [][4]int32 // the next entry of the list
}

type opState uint8

const (
	opWaits opState = iota
	opPosted
	opEnded
)

// startWindow prepares a run of a generated graph.
func (r *Run) startWindow() {
	n := r.Graph.generator.Window
	w := r.window
	if w == nil || w.mask != n-1 {
		w = &window{mask: n - 1, state: make([]opState, n), ended: make([]int32, n), posted: make([]int32, n), rest: make([][4]int32, n)}
		r.window, r.ops, r.need = w, make([]Op, n), make([]int32, n)
		r.ready = make([]int32, 0, n)
	}
	w.base, w.next = 0, 0
	r.left = r.Graph.generator.Len
}

// admit makes operations until one is ready. It reports false if none is: all have been
// made, or the window is full.
func (r *Run) admit() bool {
	w, g := r.window, r.Graph.generator
	for w.next < g.Len && w.next-w.base <= w.mask {
		i := w.next
		s := i & w.mask
		op, waits := g.At(i)
		r.ops[s], w.state[s], w.ended[s], w.posted[s], r.need[s] = op, opWaits, -1, -1, 0
		for k, id := range waits.Ended {
			if d := int(id) & w.mask; int(id) >= w.base && w.state[d] != opEnded {
				w.rest[s][k], w.ended[d] = w.ended[d], int32(4*s+k)
				r.need[s]++
			}
		}
		if d := int(waits.Posted) & w.mask; int(waits.Posted) >= w.base && w.state[d] == opWaits {
			w.rest[s][3], w.posted[d] = w.posted[d], int32(4*s+3)
			r.need[s]++
		}
		w.next++
		if r.need[s] == 0 {
			r.ready = append(r.ready, int32(s))
			return true
		}
	}
	return false
}

// continuePosted continues the operations that wait for the post of the one in slot s.
func (r *Run) continuePosted(s int32) {
	w := r.window
	w.state[s] = opPosted
	r.release(w.posted[s])
}

// continueEnded continues the operations that wait for the completion of the one in slot s.
func (r *Run) continueEnded(s int32) {
	w := r.window
	if w.state[s] == opWaits { // a copy
		r.release(w.posted[s])
	}
	w.state[s] = opEnded
	r.release(w.ended[s])
	for w.base < w.next && w.state[w.base&w.mask] == opEnded {
		w.base++
	}
}

func (r *Run) release(entry int32) {
	for entry >= 0 {
		next := r.window.rest[entry/4][entry%4]
		r.satisfy(entry / 4)
		entry = next
	}
}
