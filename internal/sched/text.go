package sched

// The text of a graph: a header line that names the rank, and a line for each
// operation. The tests read it back to the same graph.
//
//	rank 1 of 3, scratch 64
//	0 step 0: copy in[0:8] to out[8:16]
//	1 step 1: send out[8:16] to 0 after 0
//	2 step 1: recv tmp[0:8] from 2
//	3 step 1: reduce tmp[0:8] into out[8:16] after 1 2
//
// The header of a graph with unordered sends gives the number of ports. Messages in
// streams other than 0 name their stream:
//
//	rank 0 of 3, scratch 0, ports 4
//	0 step 0: send unordered in[0:8] to 1
//	1 step 0: recv out[8:16] from 1 stream 2
//
// A graph with a shared buffer gives its size, and hands spans of it over:
//
//	rank 0 of 3, scratch 0, shared 64
//	0 step 0: copy in[0:8] to shared[0:8]
//	1 step 0: hand over shared[0:8] to 1 after 0
//	2 step 0: take over shared[8:16] from 1
//
// "after" lists the operations that must have completed. The order of sends to one
// peer is not written: it follows from the order of the lines.

import (
	"fmt"
	"strings"
)

func (s Span) String() string { return fmt.Sprintf("%s[%d:%d]", s.Buf, s.Off, s.Off+s.Len) }

func (op Op) String() string {
	switch op.Kind {
	case Send:
		if op.HandOver {
			return fmt.Sprintf("hand over %v to %d%s", op.Src, op.Peer, op.stream())
		}
		if op.Unordered {
			return fmt.Sprintf("send unordered %v to %d%s", op.Src, op.Peer, op.stream())
		}
		return fmt.Sprintf("send %v to %d%s", op.Src, op.Peer, op.stream())
	case Recv:
		if op.HandOver {
			return fmt.Sprintf("take over %v from %d%s", op.Dst, op.Peer, op.stream())
		}
		return fmt.Sprintf("recv %v from %d%s", op.Dst, op.Peer, op.stream())
	case Copy:
		return fmt.Sprintf("copy %v to %v", op.Src, op.Dst)
	}
	return fmt.Sprintf("reduce %v into %v", op.Src, op.Dst)
}

func (op *Op) stream() string {
	if op.Stream == 0 {
		return ""
	}
	return fmt.Sprintf(" stream %d", op.Stream)
}

// String returns the text of the graph.
func (g *Graph) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rank %d of %d, scratch %d", g.Rank, g.Size, g.Tmp)
	if g.Shared > 0 {
		fmt.Fprintf(&b, ", shared %d", g.Shared)
	}
	if g.Ports > 0 {
		fmt.Fprintf(&b, ", ports %d", g.Ports)
	}
	b.WriteByte('\n')
	before := g.predecessors()
	for i, op := range g.Ops {
		fmt.Fprintf(&b, "%d step %d: %v", i, op.Step, op)
		for k, d := range before[i] {
			if k == 0 {
				b.WriteString(" after")
			}
			fmt.Fprintf(&b, " %d", d)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// predecessors returns the inverse of After: for each operation, those that must have
// completed.
func (g *Graph) predecessors() [][]int32 {
	before := make([][]int32, len(g.Ops))
	for i := range g.Ops {
		for _, j := range g.Successors(i) {
			before[j] = append(before[j], int32(i))
		}
	}
	return before
}
