package coll

import "github.com/muster-mpi/muster/internal/sched"

// Allreduces of a part of the data among a group of ranks, for algorithms that consist
// of several phases. A reduce-scatter is followed by an allgather of as many rounds.

// group is the index of a rank among the ranks that the builder is restricted to, their
// number, and the element size of the data.
type group struct{ rank, size, elem int }

// span returns parts i to j-1 of some data that is divided into a part for each rank.
func (g group) span(data sched.Span, i, j int) sched.Span {
	from, _ := part(data.Len, g.elem, i, g.size)
	last, n := part(data.Len, g.elem, j-1, g.size)
	return data.At(from, last+n-from)
}

// groupAllreduce is an allreduce of the value own, with the result in out, which may be the
// same span. rounds is the number of rounds of its reduce-scatter; halves means that
// each has half the bytes of the one before.
type groupAllreduce struct {
	halves bool
	rounds func(size int) int
	build  func(f *flow, g group, own, out sched.Span)
}

var (
	halvingExchange = groupAllreduce{true, func(size int) int { return log(size, 2) }, halvingAmong}
	ringExchange    = groupAllreduce{false, func(size int) int { return size - 1 }, ringAmong}
)

// halvingAmong exchanges halves, then quarters and so on. Unlike the halving of
// Rabenseifner's algorithm it begins with the most distant ranks, so that the parts are
// in the order of the ranks. If their number is no power of two, the distances are
// Träff's.
func halvingAmong(f *flow, g group, own, out sched.Span) {
	if power(g.size) != g.size {
		circulantAmong(f, g, own, out)
		return
	}
	if g.size == 1 {
		f.copy(out, own)
	}
	round, from, to := 0, 0, g.size
	for d := g.size / 2; d > 0; d /= 2 {
		f.Step(round)
		round++
		keep, end, give, stop := from, from+d, from+d, to
		if g.rank&d != 0 {
			keep, end, give, stop = give, stop, keep, end
		}
		f.send(g.rank^d, g.span(own, give, stop))
		combineInto(f, g.rank^d, g.span(out, keep, end), g.span(own, keep, end))
		own, from, to = out, keep, end
	}
	for d := 1; d < g.size; d *= 2 {
		f.Step(round)
		round++
		first := g.rank &^ (2*d - 1) // of the ranks whose parts the two have together
		mine, other := first+g.rank&d, first+g.rank&d^d
		f.send(g.rank^d, g.span(out, mine, mine+d))
		f.recv(g.rank^d, g.span(out, other, other+d))
	}
}

// ringAmong: part i starts at rank i, is combined at every rank of the ring, and is
// complete after N-1 rounds. N-1 more rounds distribute the results.
func ringAmong(f *flow, g group, own, out sched.Span) {
	n := g.size
	next, before := wrap(g.rank+1, n), wrap(g.rank-1, n)
	at := func(data sched.Span, i int) sched.Span { return g.span(data, wrap(i, n), wrap(i, n)+1) }
	for i := range n - 1 {
		f.Step(i)
		from := out
		if i == 0 {
			from = own
		}
		f.send(next, at(from, g.rank-i))
		combineInto(f, before, at(out, g.rank-i-1), at(own, g.rank-i-1))
	}
	for i := range n - 1 {
		f.Step(n - 1 + i)
		f.send(next, at(out, g.rank+1-i))
		f.recv(before, at(out, g.rank-i))
	}
	if n == 1 {
		f.copy(out, own)
	}
}
