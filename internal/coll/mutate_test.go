package coll

import (
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/internal/sched"
)

// Mutants: graphs with one fault inserted, of every kind that an algorithm could have.
// They do not depend on the algorithm.

// draft is a modifiable graph.
type draft struct {
	rank, size, tmp, shared int
	ops                     []sched.Op
	after                   [][]int // dependencies of each operation
}

func draftOf(g *sched.Graph) *draft {
	d := &draft{rank: g.Rank, size: g.Size, tmp: g.Tmp, shared: g.Shared, ops: slices.Clone(g.Ops), after: make([][]int, len(g.Ops))}
	for i := range g.Ops {
		for _, j := range g.Successors(i) {
			d.after[j] = append(d.after[j], i)
		}
	}
	return d
}

func (d *draft) clone() *draft {
	c := *d
	c.ops, c.after = slices.Clone(d.ops), make([][]int, len(d.after))
	for i := range d.after {
		c.after[i] = slices.Clone(d.after[i])
	}
	return &c
}

// graph builds the draft. The Builder itself rejects some faults.
func (d *draft) graph() (*sched.Graph, error) {
	var b sched.Builder
	b.Reset(d.rank, d.size)
	b.Tmp(d.tmp)
	b.AllocShared(d.shared)
	ids := make([]sched.ID, len(d.ops))
	for i, op := range d.ops {
		var after []sched.ID
		for _, j := range d.after[i] {
			after = append(after, ids[j])
		}
		b.Step(int(op.Step))
		b.Stream(int(op.Stream))
		switch op.Kind {
		case sched.Send:
			if op.HandOver {
				ids[i] = b.HandOver(int(op.Peer), op.Src, after...)
				continue
			}
			ids[i] = b.Send(int(op.Peer), op.Src, after...)
		case sched.Recv:
			if op.HandOver {
				ids[i] = b.TakeOver(int(op.Peer), op.Dst, after...)
				continue
			}
			ids[i] = b.Recv(int(op.Peer), op.Dst, after...)
		case sched.Copy:
			ids[i] = b.Copy(op.Dst, op.Src, after...)
		case sched.Reduce:
			ids[i] = b.Reduce(op.Dst, op.Src, after...)
		}
	}
	return b.Graph()
}

// insert adds an operation before operation i, with the same dependencies.
func (d *draft) insert(i int, op sched.Op) {
	d.ops = slices.Insert(d.ops, i, op)
	d.after = slices.Insert(d.after, i, slices.Clone(d.after[i]))
	for k := i + 1; k < len(d.after); k++ {
		for n, j := range d.after[k] {
			if j >= i {
				d.after[k][n]++
			}
		}
	}
}

// mutants calls try with every graph that differs from g by one fault.
func mutants(g *sched.Graph, elem int, try func(fault string, d *draft)) {
	whole := draftOf(g)
	change := func(fault string, do func(d *draft)) {
		d := whole.clone()
		do(d)
		try(fault, d)
	}
	for i := range whole.ops {
		op := &whole.ops[i]
		for n := range whole.after[i] {
			change("a dependency dropped", func(d *draft) { d.after[i] = slices.Delete(d.after[i], n, n+1) })
		}
		if op.Kind <= sched.Recv {
			change("another peer", func(d *draft) {
				p := &d.ops[i].Peer
				if *p = (*p + 1) % int32(g.Size); int(*p) == g.Rank {
					*p = (*p + 1) % int32(g.Size)
				}
			})
			if op.HandOver {
				change("a hand-over with data", func(d *draft) { d.ops[i].HandOver = false })
			}
			if next := g.NextPost(i); next >= 0 {
				change("two messages exchanged", func(d *draft) {
					a, b := &d.ops[i], &d.ops[next]
					a.Src, a.Dst, b.Src, b.Dst = b.Src, b.Dst, a.Src, a.Dst
				})
			}
		}
		if op.Src.Len+op.Dst.Len == 0 && op.Kind >= sched.Copy {
			continue // a Join has no data
		}
		change("an operation dropped", func(d *draft) { drop(d, i) })
		for _, shift := range []int{-elem, -1, 1, elem} {
			if op.Kind != sched.Recv && op.Src.Len > 0 {
				change("a source shifted", func(d *draft) { d.ops[i].Src.Off += shift })
			}
			if op.Kind != sched.Send && op.Dst.Len > 0 {
				change("a destination shifted", func(d *draft) { d.ops[i].Dst.Off += shift })
			}
		}
		for _, less := range []int{1, elem} {
			if max(op.Src.Len, op.Dst.Len) >= less {
				change("a length cut", func(d *draft) { shorten(&d.ops[i], less) })
			}
		}
		for _, buf := range []sched.Buf{sched.In, sched.Out, sched.Tmp, sched.Shared} {
			if op.Kind != sched.Recv && op.Src.Len > 0 && op.Src.Buf != buf {
				change("a source in another buffer", func(d *draft) { d.ops[i].Src.Buf = buf })
			}
			if op.Kind != sched.Send && op.Dst.Len > 0 && op.Dst.Buf != buf {
				change("a destination in another buffer", func(d *draft) { d.ops[i].Dst.Buf = buf })
			}
		}
		switch op.Kind {
		case sched.Reduce:
			change("a copy for a reduction", func(d *draft) { d.ops[i].Kind = sched.Copy })
			change("operands exchanged", func(d *draft) { exchangeOperands(d, i) })
			change("reduced twice", func(d *draft) {
				d.insert(i, d.ops[i])
				d.after[i+1] = append(d.after[i+1], i)
			})
		case sched.Copy:
			change("a reduction for a copy", func(d *draft) { d.ops[i].Kind = sched.Reduce })
		}
	}
}

// drop removes an operation; operations that depend on it inherit its dependencies.
func drop(d *draft, i int) {
	before := d.after[i]
	d.ops, d.after = slices.Delete(d.ops, i, i+1), slices.Delete(d.after, i, i+1)
	for k := range d.after {
		var now []int
		for _, j := range d.after[k] {
			switch {
			case j == i:
				now = append(now, before...)
			case j > i:
				now = append(now, j-1)
			default:
				now = append(now, j)
			}
		}
		d.after[k] = now
	}
}

func shorten(op *sched.Op, less int) {
	if op.Kind != sched.Recv {
		op.Src.Len -= less
	}
	if op.Kind != sched.Send {
		op.Dst.Len -= less
	}
}

// exchangeOperands makes Dst become Dst ∘ Src, with additional scratch.
func exchangeOperands(d *draft, i int) {
	op := d.ops[i]
	n := op.Src.Len
	room := sched.Span{Buf: sched.Tmp, Off: d.tmp, Len: n}
	d.tmp += n
	d.insert(i, sched.Op{Kind: sched.Copy, Src: op.Src, Dst: room})
	d.insert(i+1, sched.Op{Kind: sched.Reduce, Src: op.Dst, Dst: room})
	d.after[i+1] = append(d.after[i+1], i)
	d.ops[i+2] = sched.Op{Kind: sched.Copy, Src: room, Dst: op.Dst}
	d.after[i+2] = append(d.after[i+2], i+1)
}

func (d *draft) String() string {
	return fmt.Sprintf("rank %d of %d: %+v after %v", d.rank, d.size, d.ops, d.after)
}
