package sched

import (
	"fmt"
	"slices"
)

// Validate proves that the graphs of all ranks together do a task. The checks
// stand in the order in which they rely on each other:
//
//	form      every operation stays inside its buffers            (this file)
//	pairing   every send meets a receive of its length             validate_pair.go
//	loose     whoever arrives first, a loose send ends             validate_unordered.go
//	race      no two operations without order touch the same bytes validate_race.go
//	blocking  all operations end, though nothing is buffered       validate_run.go
//	sync      no rank ends before every rank has begun, if asked   validate_sync.go
//	value     every byte of every result is what it must be        validate_value.go, validate_end.go
//
// One execution is followed, and that is enough. Which send meets which receive
// is fixed by the graphs, and without races no operation can tell in which order
// those beside it ran. So all executions move the same values, and an execution
// that buffers messages can only end earlier.

// Task says what a collective must do: what lies where at the start, and what
// must lie where at the end.
type Task struct {
	Elem     int  // bytes of an element; 0 counts as 1. Reductions cut between elements only
	Commutes bool // operands of reductions may come in any order
	Agree    bool // equal pieces must be combined alike on all ranks, so that rounding is alike too
	Sync     bool // no rank may end before every rank has begun
	Ranks    []Memory
}

// Memory is the buffers of one rank. Bytes of In and Out that no piece of Start
// names are of no use to anybody; bytes of Out that no piece of End names must
// stay as they are.
type Memory struct {
	In, Out    int // bytes
	Start, End []Piece
}

// Piece is bytes with a known value: the data of ranks From to To-1, combined in
// this order, from the offset At on. Data of one rank has To = From+1.
type Piece struct {
	Span
	From, To, At int
	Free         bool // at the end: anything may be there
}

// Fault is what Validate has found.
type Fault struct {
	Check string // form, pairing, loose, race, blocking, sync, value
	Rank  int
	Op    int // or -1
	Text  string
}

func (f *Fault) Error() string {
	if f.Op < 0 {
		return fmt.Sprintf("%s: rank %d: %s", f.Check, f.Rank, f.Text)
	}
	return fmt.Sprintf("%s: rank %d, operation %d: %s", f.Check, f.Rank, f.Op, f.Text)
}

// Validate gives nil, or the first *Fault.
func Validate(graphs []*Graph, t *Task) error {
	if f := validate(graphs, t); f != nil {
		return f
	}
	return nil
}

func validate(graphs []*Graph, t *Task) *Fault {
	if f := checkForm(graphs, t); f != nil {
		return f
	}
	w := newWorld(graphs)
	if f := w.pair(); f != nil {
		return f
	}
	if f := w.checkLoose(); f != nil {
		return f
	}
	var race raceFinder
	for _, g := range graphs {
		if f := race.find(g); f != nil {
			return f
		}
	}
	v := newValues(t, graphs)
	var k *knowledge
	if t.Sync {
		k = newKnowledge(w)
	}
	if f := w.run(v, k); f != nil {
		return f
	}
	if f := k.check(w); f != nil {
		return f
	}
	return w.checkEnd(v)
}

// world is all operations of all ranks. They are numbered through: operation i of
// rank r is base[r]+i here.
type world struct {
	graphs  []*Graph
	base    []int
	partner []int32 // of a send its receive, of a receive its send, else -1
	state   []state // what has become of each
	order   []int32 // how they ended
}

type state uint8

const (
	waiting state = iota
	posted
	ended
)

func newWorld(graphs []*Graph) *world {
	w := &world{graphs: graphs, base: make([]int, len(graphs)+1)}
	for r, g := range graphs {
		w.base[r+1] = w.base[r] + len(g.Ops)
	}
	n := w.base[len(graphs)]
	w.partner, w.state, w.order = make([]int32, n), make([]state, n), make([]int32, 0, n)
	return w
}

// who gives rank and number of an operation.
func (w *world) who(id int32) (rank, op int) {
	rank, found := slices.BinarySearch(w.base, int(id))
	if !found {
		rank--
	}
	for w.base[rank+1] == w.base[rank] { // ranks without operations share a base
		rank++
	}
	return rank, int(id) - w.base[rank]
}

func (w *world) op(id int32) *Op {
	r, i := w.who(id)
	return &w.graphs[r].Ops[i]
}

// checkForm looks at each graph alone.
func checkForm(graphs []*Graph, t *Task) *Fault {
	if len(graphs) != len(t.Ranks) {
		return &Fault{"form", 0, -1, fmt.Sprintf("%d graphs for a task of %d ranks", len(graphs), len(t.Ranks))}
	}
	for r, g := range graphs {
		if g == nil || g.Rank != r || g.Size != len(graphs) {
			return &Fault{"form", r, -1, fmt.Sprintf("the graph in its place is not that of rank %d of %d", r, len(graphs))}
		}
		room := [3]int{t.Ranks[r].In, t.Ranks[r].Out, g.Tmp}
		for i := range g.Ops {
			if text := opFault(g, i, &room, max(t.Elem, 1)); text != "" {
				return &Fault{"form", r, i, describe(&g.Ops[i]) + " " + text}
			}
		}
	}
	return nil
}

// opFault says what is wrong with the form of an operation, or nothing.
func opFault(g *Graph, i int, room *[3]int, elem int) string {
	op := &g.Ops[i]
	if op.Kind > Reduce {
		return "is of no kind that there is"
	}
	if op.Kind <= Recv && (op.Peer < 0 || int(op.Peer) >= g.Size || int(op.Peer) == g.Rank) {
		return fmt.Sprintf("names a peer that is not another of the %d ranks", g.Size)
	}
	if op.Kind != Recv && !inside(op.Src, room) {
		return fmt.Sprintf("reads beyond the %d bytes of %s", room[op.Src.Buf], op.Src.Buf)
	}
	if op.Kind != Send {
		if !inside(op.Dst, room) {
			return fmt.Sprintf("writes beyond the %d bytes of %s", room[op.Dst.Buf], op.Dst.Buf)
		}
		if op.Dst.Buf == In {
			return "writes into the input"
		}
	}
	if op.Kind >= Copy && op.Src.Len != op.Dst.Len {
		return "has two lengths"
	}
	if op.Kind == Reduce {
		if op.Src.Len%elem != 0 {
			return fmt.Sprintf("cuts an element of %d bytes", elem)
		}
		if overlap(op.Src, op.Dst) {
			return "has operands that overlap"
		}
	}
	for _, j := range g.After(i) {
		if int(j) <= i || int(j) >= len(g.Ops) {
			return fmt.Sprintf("lets operation %d wait, which does not come after it", j)
		}
	}
	return ""
}

func inside(s Span, room *[3]int) bool {
	return s.Buf <= Tmp && s.Off >= 0 && s.Len >= 0 && s.Off <= room[s.Buf]-s.Len
}

func overlap(a, b Span) bool {
	return a.Buf == b.Buf && a.Len > 0 && b.Len > 0 && a.Off < b.Off+b.Len && b.Off < a.Off+a.Len
}

// describe names an operation in words.
func describe(op *Op) string {
	switch op.Kind {
	case Send:
		return fmt.Sprintf("send %s to rank %d", place(op.Src), op.Peer)
	case Recv:
		return fmt.Sprintf("recv %s from rank %d", place(op.Dst), op.Peer)
	case Copy:
		return fmt.Sprintf("copy %s to %s", place(op.Src), place(op.Dst))
	case Reduce:
		return fmt.Sprintf("reduce %s into %s", place(op.Src), place(op.Dst))
	}
	return fmt.Sprintf("operation of kind %d", op.Kind)
}

func place(s Span) string {
	if s.Buf > Tmp {
		return fmt.Sprintf("buffer %d", s.Buf)
	}
	return fmt.Sprintf("%s[%d:%d)", s.Buf, s.Off, s.Off+s.Len)
}
