package sched

import (
	"fmt"
	"slices"
)

// Validate proves that the graphs of all ranks together perform a task. The checks
// rely on those before them:
//
//	form       every operation stays inside its buffers                this file
//	pairing    every send matches a receive of the same length         validate_pair.go
//	unordered  unordered sends complete in any order of arrival        validate_unordered.go
//	race       no two unordered operations access the same bytes       validate_race.go
//	blocking   all operations complete, even without buffering         validate_run.go
//	shared     no byte shared by a node is written twice               validate_shared.go
//	sync       if required, no rank ends before every rank has begun   validate_sync.go
//	value      every byte of every result is correct                   validate_value.go, validate_end.go
//
// Following a single execution is enough. The graphs alone determine which send
// matches which receive, and without races the result of an operation does not depend
// on the order of concurrent operations. All executions therefore transfer the same
// values, and one that buffers messages can only complete earlier.

// Task defines a collective: the contents of the buffers at the start, and the
// contents required at the end.
type Task struct {
	Elem     int  // element size in bytes; 0 means 1. Reductions must not split elements
	Commutes bool // operands of reductions may be combined in any order
	Agree    bool // all ranks must combine equal pieces in the same way, so that rounding is equal
	Sync     bool // no rank may end before every rank has begun
	Ranks    []Memory
	Node     []int // of each rank, for the buffer that a node shares; nil: all share one
}

// Memory describes the buffers of one rank. Bytes of In and Out outside the pieces of
// Start are undefined; bytes of Out outside the pieces of End must not change.
type Memory struct {
	In, Out    int // bytes
	Start, End []Piece
}

// Piece is a span with a known value: the data of ranks From to To-1, combined in
// this order, from offset At. Data of one rank has To = From+1.
type Piece struct {
	Span
	From, To, At int
	Free         bool // at the end: any value is allowed
}

// Fault is an error that Validate has found.
type Fault struct {
	Check string // form, pairing, unordered, race, shared, blocking, sync, value
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

// Validate returns nil or the first *Fault.
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
	if f := w.checkUnordered(); f != nil {
		return f
	}
	var race raceFinder
	for _, g := range graphs {
		if f := race.find(g); f != nil {
			return f
		}
	}
	shares := w.shares()
	if shares {
		if f := w.checkShared(t); f != nil {
			return f
		}
	}
	v := newValues(t, graphs)
	var k *knowledge
	if t.Sync || shares {
		k = newKnowledge(w)
	}
	if f := w.run(v, k); f != nil {
		return f
	}
	if f := k.check(w, t); f != nil {
		return f
	}
	return w.checkEnd(v)
}

// world holds the operations of all ranks. They are numbered consecutively: operation
// i of rank r is base[r]+i.
type world struct {
	graphs  []*Graph
	base    []int
	partner []int32 // the receive of a send, the send of a receive, otherwise -1
	state   []state
	order   []int32 // the order of completion
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

// locate returns the rank of an operation and its number in that rank's graph.
func (w *world) locate(id int32) (rank, op int) {
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
	r, i := w.locate(id)
	return &w.graphs[r].Ops[i]
}

// checkForm checks each graph alone.
func checkForm(graphs []*Graph, t *Task) *Fault {
	if len(graphs) != len(t.Ranks) {
		return &Fault{"form", 0, -1, fmt.Sprintf("%d graphs for a task of %d ranks", len(graphs), len(t.Ranks))}
	}
	for r, g := range graphs {
		if g == nil || g.Rank != r || g.Size != len(graphs) {
			return &Fault{"form", r, -1, fmt.Sprintf("its graph is not that of rank %d of %d", r, len(graphs))}
		}
		room := [Bufs]int{t.Ranks[r].In, t.Ranks[r].Out, g.Tmp, g.Shared}
		for i := range g.Ops {
			if text := opFault(g, i, &room, max(t.Elem, 1)); text != "" {
				return &Fault{"form", r, i, describe(&g.Ops[i]) + " " + text}
			}
		}
	}
	return nil
}

// opFault describes what is wrong with the form of an operation. It returns "" if
// nothing is.
func opFault(g *Graph, i int, room *[Bufs]int, elem int) string {
	op := &g.Ops[i]
	if op.Kind > Reduce {
		return "has an unknown kind"
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
		return "has a source and a destination of different lengths"
	}
	if op.Kind == Reduce {
		if op.Src.Len%elem != 0 {
			return fmt.Sprintf("splits an element of %d bytes", elem)
		}
		if overlap(op.Src, op.Dst) {
			return "has overlapping operands"
		}
	}
	for _, j := range g.Successors(i) {
		if int(j) <= i || int(j) >= len(g.Ops) {
			return fmt.Sprintf("is a dependency of operation %d, which does not come after it", j)
		}
	}
	return ""
}

func inside(s Span, room *[Bufs]int) bool {
	return s.Buf < Bufs && s.Off >= 0 && s.Len >= 0 && s.Off <= room[s.Buf]-s.Len
}

func overlap(a, b Span) bool {
	return a.Buf == b.Buf && a.Len > 0 && b.Len > 0 && a.Off < b.Off+b.Len && b.Off < a.Off+a.Len
}

// describe returns a description of an operation for error texts.
func describe(op *Op) string {
	switch op.Kind {
	case Send:
		if op.HandOver {
			return fmt.Sprintf("hand over %s to rank %d", spanText(op.Src), op.Peer)
		}
		return fmt.Sprintf("send %s to rank %d", spanText(op.Src), op.Peer)
	case Recv:
		if op.HandOver {
			return fmt.Sprintf("take over %s from rank %d", spanText(op.Dst), op.Peer)
		}
		return fmt.Sprintf("recv %s from rank %d", spanText(op.Dst), op.Peer)
	case Copy:
		return fmt.Sprintf("copy %s to %s", spanText(op.Src), spanText(op.Dst))
	case Reduce:
		return fmt.Sprintf("reduce %s into %s", spanText(op.Src), spanText(op.Dst))
	}
	return fmt.Sprintf("operation of kind %d", op.Kind)
}

func spanText(s Span) string {
	if s.Buf >= Bufs {
		return fmt.Sprintf("buffer %d", s.Buf)
	}
	return fmt.Sprintf("%s[%d:%d)", s.Buf, s.Off, s.Off+s.Len)
}
