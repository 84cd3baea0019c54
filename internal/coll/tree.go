package coll

import "github.com/muster-mpi/muster/internal/sched"

// The k-nomial spanning tree; binomial (k = 2) is its best known case. Ranks are counted
// from the root. To the base k, the parent of a rank has the rank's lowest non-zero digit
// set to zero. If that is digit i, the subtree of the rank is the k^i ranks from it, as
// far as they exist. T2 3.4.1 calls it the (k+1)-ary spanning tree of k ports: k here is
// one more than there.

type tree struct {
	parent   int // counted from the root, or -1
	step     int // in which it receives from the parent, on the way down
	span     int // ranks of its subtree, including itself
	children []child
}

type child struct{ rank, span, step int }

// knomial returns the position of a rank in the tree of n ranks. The children are sorted
// by the size of their subtrees, largest first, as they must be served.
func knomial(b *sched.Builder, rank, n, radix int) (t tree, ok bool) {
	if radix < 2 {
		b.Fail("invalid tree radix %d; the minimum is 2", radix)
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

// rotate converts ranks counted from the root to real ranks.
func (t tree) rotate(root, n int) tree {
	if t.parent >= 0 {
		t.parent = wrap(t.parent+root, n)
	}
	for i := range t.children {
		t.children[i].rank = wrap(t.children[i].rank+root, n)
	}
	return t
}

func radixParam(values ...int) Param {
	return Param{Name: "radix", Values: values, About: "ranks that have the data after a step, per rank that had it before"}
}

// knomialCost returns the time until all n ranks have bytes from the root.
func knomialCost(n int, m *Model, radix int, bytes float64) float64 {
	if m.Starts == 0 {
		return spreadCost(n, m, radix, 0, func(int) float64 { return m.together(1, bytes) })
	}
	ports, start := *m, m.startup(bytes)
	if m.TimeSlices && m.Cable > 0 { // receivers of several messages need their time once
		ports.TimeSlices = false
		start += bytes * m.PerByte
	}
	each := ports.bytes(1, 1, bytes)
	if m.striped(bytes) { // a message uses all ports
		ports.Ports = 1
	}
	return spreadCost(n, &ports, radix, start, func(int) float64 { return each })
}

// spreadCost returns the time until all n ranks have received from the root. A message
// to a rank with a subtree of below ranks takes message(below), and start more for those
// that a rank sends together; as many as there are ports are under way at a time, those
// for the largest subtrees first.
func spreadCost(n int, m *Model, radix int, start float64, message func(below int) float64) float64 {
	var level [64]float64 // the time of a subtree of radix^i ranks
	below, i := 1, 0
	for ; below < n; i++ {
		sent, t := 0.0, 0.0 // time of the sends so far, and including subtrees
		ahead := 0          // sends that get a port first
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
				t = max(t, start+sent+level[l])
			}
		}
		level[i+1] = t
		below *= radix
	}
	return level[i]
}
