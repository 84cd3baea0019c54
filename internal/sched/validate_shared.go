package sched

import (
	"cmp"
	"fmt"
	"slices"
)

// The shared buffer. The other checks give each rank its own memory for Shared, in which
// a hand-over is a message like any other: so they prove the execution with messages.
// The execution in a segment has one memory for each node. It is correct as well if,
// in addition,
//
//	a hand-over is between ranks of a node, with the same span at both ends;
//	no byte of a node's buffer is written twice, by whichever rank;
//	no rank reads a byte that it has neither written nor taken over;
//	no rank ends before all ranks of its node have begun (validate_sync.go).
//
// A rank then reads a byte after the only operation that writes it: every hand-over
// waits for the bytes to be there, in its own rank's graph, because otherwise there
// would be a race. So the byte has the same value as with messages. The next run but
// one may use the memory again: when it begins on a rank, that rank has ended the next
// run, so all have begun the next run, and have ended this one.

// shares reports whether any rank has a shared buffer.
func (w *world) shares() bool {
	return slices.ContainsFunc(w.graphs, func(g *Graph) bool { return g.Shared > 0 })
}

// checkShared checks the first two conditions; run checks the third.
func (w *world) checkShared(t *Task) *Fault {
	var writes []sharedWrite
	sizes := map[int]int{}
	for r, g := range w.graphs {
		node := t.nodeOf(r)
		if size, known := sizes[node]; known && size != g.Shared {
			return &Fault{"shared", r, -1, fmt.Sprintf("it has a shared buffer of %d bytes, another rank of its node one of %d", g.Shared, size)}
		}
		sizes[node] = g.Shared
		for i := range g.Ops {
			op := &g.Ops[i]
			if op.Kind <= Recv {
				if text := w.handOverFault(t, r, i); text != "" {
					return &Fault{"shared", r, i, describe(op) + " " + text}
				}
			}
			if op.Kind != Send && !op.HandOver && op.Dst.Buf == Shared && op.Dst.Len > 0 {
				writes = append(writes, sharedWrite{node, r, i, op.Dst.Off, op.Dst.Off + op.Dst.Len})
			}
		}
	}
	slices.SortFunc(writes, func(a, b sharedWrite) int { return cmp.Or(a.node-b.node, a.off-b.off) })
	for k := 1; k < len(writes); k++ {
		if a, b := writes[k-1], writes[k]; a.node == b.node && b.off < a.end {
			return &Fault{"shared", b.rank, b.op, fmt.Sprintf("%s writes bytes that operation %d of rank %d, %s, writes too",
				describe(&w.graphs[b.rank].Ops[b.op]), a.op, a.rank, describe(&w.graphs[a.rank].Ops[a.op]))}
		}
	}
	return nil
}

// sharedWrite is an operation that writes bytes off to end of a node's shared buffer.
type sharedWrite struct{ node, rank, op, off, end int }

// handOverFault describes what is wrong with a message as a hand-over. It returns "" if
// nothing is.
func (w *world) handOverFault(t *Task, r, i int) string {
	op := &w.graphs[r].Ops[i]
	other := w.op(w.partner[w.base[r]+i])
	switch {
	case !op.HandOver && !other.HandOver:
		return ""
	case op.HandOver != other.HandOver:
		return fmt.Sprintf("matches %s: only one of them is a hand-over", describe(other))
	case op.data() != other.data():
		return fmt.Sprintf("matches %s, which is another span", describe(other))
	case !t.sameNode(r, int(op.Peer)):
		return "names a rank of another node"
	}
	return ""
}

// unseen reports whether a rank reads bytes of Shared that it has neither written nor
// taken over.
func (v *values) unseen(rank int, s Span) bool {
	if s.Buf != Shared {
		return false
	}
	v.src = v.read(v.src[:0], rank, s)
	return slices.ContainsFunc(v.src, func(x run) bool { return x.term == int32(2*v.ranks+rank) })
}

// nodeOf returns the node of a rank.
func (t *Task) nodeOf(rank int) int {
	if t.Node == nil {
		return 0
	}
	return t.Node[rank]
}

func (t *Task) sameNode(a, b int) bool { return t.nodeOf(a) == t.nodeOf(b) }
