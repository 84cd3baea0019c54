package coll

import "github.com/muster-mpi/muster/internal/sched"

// The k-nomial spanning tree, with binomial (k = 2) as its best known case. Ranks
// are counted from the root. Written to the base k, the parent of a rank has its
// lowest digit that is not zero set to zero; what is below a rank whose digit i is
// that one are the k^i ranks from it on, as far as there are so many. T2 3.4.1
// calls it the (k+1)-ary spanning tree of k ports: k here is one more than there.

type tree struct {
	parent   int // counted from the root; -1: none
	step     int // in which it hears from the parent, on the way down
	span     int // ranks below and including it
	children []child
}

type child struct{ rank, span, step int }

// knomial is the place of a rank in the tree of n ranks, children with the most
// below them first, as they must be served.
func knomial(b *sched.Builder, rank, n, radix int) (t tree, ok bool) {
	if radix < 2 {
		b.Fail("a tree of radix %d cannot be; the least is 2", radix)
		return tree{}, false
	}
	t.parent, t.span, t.step = -1, n, -1
	steps := log(n, radix)
	below := 1 // radix^i
	i := 0
	for ; below < n && rank/below%radix == 0; i++ {
		below *= radix
	}
	if rank > 0 {
		t.parent = rank - rank/below%radix*below
		t.span = min(below, n-rank)
		t.step = steps - 1 - i
	}
	for i--; i >= 0; i-- {
		below /= radix
		for j := 1; j < radix && rank+j*below < n; j++ {
			c := rank + j*below
			t.children = append(t.children, child{c, min(below, n-c), steps - 1 - i})
		}
	}
	return t, true
}

// around counts a tree's ranks from the root instead of from rank 0.
func (t tree) around(root, n int) tree {
	if t.parent >= 0 {
		t.parent = around(t.parent+root, n)
	}
	for i := range t.children {
		t.children[i].rank = around(t.children[i].rank+root, n)
	}
	return t
}

func radixParam(values ...int) Param {
	return Param{Name: "radix", Values: values, About: "ranks that know after the first step, per rank that knew before"}
}

// knomialCost is the time until all n ranks have bytes from the root.
func knomialCost(n int, m *Model, radix int, bytes float64) float64 {
	return spreadCost(n, m, radix, func(int) float64 { return m.together(1, bytes) })
}

// spreadCost is the time until all n ranks have heard from the root. A message to
// a rank with so many ranks from it on takes message(below); ports of them
// are under way at a time, those for the most ranks first.
func spreadCost(n int, m *Model, radix int, message func(below int) float64) float64 {
	var level [64]float64 // the time below a rank with radix^i ranks
	below, i := 1, 0
	for ; below < n; i++ {
		sent, t := 0.0, 0.0 // how far the sends have come, and what is below them
		ahead := 0          // that have a port before this one
		for l, b := i, below; l >= 0; l, b = l-1, b/radix {
			children := radix - 1
			if l == i {
				children = min(children, (n-1)/below)
			}
			each := message(b)
			for ; children > 0; children-- {
				if ahead%max(m.Ports, 1) == 0 {
					sent += each
				}
				ahead++
				t = max(t, sent+level[l])
			}
		}
		level[i+1] = t
		below *= radix
	}
	return level[i]
}
