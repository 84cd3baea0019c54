package sched

import (
	"cmp"
	"fmt"
	"slices"
)

// Races. A send reads its source, and a receive writes its destination, from the
// moment it is posted until it completes. Two operations of a rank that access the
// same bytes, at least one of them writing, must therefore be ordered: one must have
// completed before the other is posted. The order must follow from this rank's graph,
// because an executor sees nothing else:
//
//	i completes before j is posted if j waits for i;
//	then also before the post of all operations that wait for j to complete or to be posted.
//
// Posting order alone (nextPost) orders two posts, not a completion and a post. Two
// reductions into the same span need an order even if the operation commutes:
// otherwise the rounding of a result would depend on arrival order (MPI-4.1 6.9.1,
// advice to implementors).

// raceFinder holds memory that is reused from rank to rank.
type raceFinder struct {
	touched [Bufs][]access
	reach   []uint64 // n rows of bits: the operations posted after the post of i
	words   int
	known   bool // reach belongs to the current graph
}

type access struct {
	off, end int
	op       int32
	writes   bool
}

// find returns the first race of a graph.
func (f *raceFinder) find(g *Graph) *Fault {
	f.known = false
	for b := range f.touched {
		f.touched[b] = f.touched[b][:0]
	}
	for i := range g.Ops {
		op := &g.Ops[i]
		if op.Kind != Recv {
			f.touch(op.Src, i, false)
		}
		if op.Kind != Send {
			f.touch(op.Dst, i, true)
		}
	}
	for _, buf := range []Buf{Out, Tmp, Shared} { // the input is never written
		if a, b, found := f.sweep(g, f.touched[buf]); found {
			return &Fault{"race", g.Rank, int(b), fmt.Sprintf("%s and operation %d, %s, touch the same bytes, and no dependency orders them",
				describe(&g.Ops[b]), a, describe(&g.Ops[a]))}
		}
	}
	return nil
}

func (f *raceFinder) touch(s Span, op int, writes bool) {
	if s.Len > 0 {
		f.touched[s.Buf] = append(f.touched[s.Buf], access{s.Off, s.Off + s.Len, int32(op), writes})
	}
}

// sweep compares each access, in order of offsets, with the earlier ones that extend
// beyond its offset. It skips pairs of readers, which are many.
func (f *raceFinder) sweep(g *Graph, all []access) (a, b int32, found bool) {
	slices.SortFunc(all, func(x, y access) int { return cmp.Compare(x.off, y.off) })
	var open [2][]access // readers, writers
	for _, x := range all {
		for kind := range open {
			if kind == 0 && !x.writes {
				continue
			}
			kept := open[kind][:0]
			for _, y := range open[kind] {
				if y.end <= x.off {
					continue
				}
				kept = append(kept, y)
				first, second := min(x.op, y.op), max(x.op, y.op)
				if first != second && !f.ordered(g, first, second) {
					return first, second, true
				}
			}
			open[kind] = kept
		}
		if x.writes {
			open[1] = append(open[1], x)
		} else {
			open[0] = append(open[0], x)
		}
	}
	return 0, 0, false
}

// ordered reports whether i has completed when j is posted.
func (f *raceFinder) ordered(g *Graph, i, j int32) bool {
	after := g.Successors(int(i))
	if slices.Contains(after, j) {
		return true
	}
	if !f.known {
		f.reachability(g)
	}
	for _, k := range after {
		if f.reach[int(k)*f.words+int(j)/64]&(1<<(j%64)) != 0 {
			return true
		}
	}
	return false
}

// reachability fills reach, last operation first: the operations that wait for i to
// complete or to be posted, and all operations posted after those.
func (f *raceFinder) reachability(g *Graph) {
	n := len(g.Ops)
	f.words = (n + 63) / 64
	f.reach = slices.Grow(f.reach[:0], n*f.words)[:n*f.words]
	clear(f.reach)
	for i := n - 1; i >= 0; i-- {
		row := f.reach[i*f.words : (i+1)*f.words]
		for _, j := range g.Successors(i) {
			f.add(row, j)
		}
		if j := g.nextPost[i]; j >= 0 {
			f.add(row, j)
		}
	}
	f.known = true
}

func (f *raceFinder) add(row []uint64, j int32) {
	row[j/64] |= 1 << (j % 64)
	for k, bits := range f.reach[int(j)*f.words : (int(j)+1)*f.words] {
		row[k] |= bits
	}
}
