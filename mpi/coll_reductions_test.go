package mpi_test

// The reductions of the table of collective calls (coll_cases_test.go).

import (
	"testing"

	"github.com/muster-mpi/muster/mpi"
)

// affine is a function x ↦ ax + b modulo a small prime. To compose functions is
// associative and does not commute.
type affine struct{ a, b int32 }

const prime = 9973

func compose(first, then affine) affine {
	return affine{first.a * then.a % prime, (then.a*first.b + then.b) % prime}
}

var composition = (&mpi.UserOp[affine]{Name: "composition", NonCommutative: true, Combine: func(inout, in []affine) {
	for i := range inout {
		inout[i] = compose(in[i], inout[i])
	}
}}).Op

func reductionCases(c *mpi.Comm, n, key, root int) []collCase {
	me, size := c.Rank(), c.Size()
	sum := mpi.Sum[int64]
	mine := func(i int) int64 { return from(key, me, 0, i) }
	over := func(lo, hi int) func(i int) int64 { // the sum over some ranks
		return func(i int) (s int64) {
			for r := lo; r < hi; r++ {
				s += from(key, r, 0, i)
			}
			return s
		}
	}
	in, out := make([]int64, n), make([]int64, n)
	own := in
	if me == root {
		own = nil
	}
	before := func() { fill(in, mine); fill(out, keep) }
	inPlace := func() { fill(in, mine); fill(out, mine) }
	checkRoot := func(t *testing.T, what string) {
		if me == root {
			wantIn(t, out, over(0, size), what)
		}
	}
	checkAll := func(t *testing.T, what string) { wantIn(t, out, over(0, size), what) }
	checkBefore := func(t *testing.T, what string) {
		if me > 0 {
			wantIn(t, out, over(0, me), what)
		}
	}

	blocks, part := make([]int64, n*size), make([]int64, n)
	counts, total, at := make([]int, size), 0, 0
	for r := range size {
		counts[r] = (n + 2*r) % (n + 3)
		total += counts[r]
		if r < me {
			at += counts[r]
		}
	}
	blocksv, partv, inPlacev := make([]int64, total), make([]int64, counts[me]), make([]int64, total)

	funcs, composed := make([]affine, n), make([]affine, n)
	function := func(r, i int) affine { return affine{int32(r*7+i%50) + 2, int32(key*3+r+i%90) % prime} }

	return []collCase{
		{
			name: "Reduce", before: before, check: checkRoot,
			blocking: func() error { return mpi.Reduce(c, in, out, sum, root) },
			start:    func() mpi.Request { return mpi.Ireduce(c, in, out, sum, root) },
			prepare:  func() *mpi.Persistent { return mpi.ReduceInit(c, in, out, sum, root) },
		}, {
			name: "Reduce in place", before: inPlace, check: checkRoot,
			blocking: func() error { return mpi.Reduce(c, own, out, sum, root) },
			start:    func() mpi.Request { return mpi.Ireduce(c, own, out, sum, root) },
			prepare:  func() *mpi.Persistent { return mpi.ReduceInit(c, out, out, sum, root) },
		}, {
			name: "Allreduce", before: before, check: checkAll,
			blocking: func() error { return mpi.Allreduce(c, in, out, sum) },
			start:    func() mpi.Request { return mpi.Iallreduce(c, in, out, sum) },
			prepare:  func() *mpi.Persistent { return mpi.AllreduceInit(c, in, out, sum) },
		}, {
			name: "Allreduce in place", before: inPlace, check: checkAll,
			blocking: func() error { return mpi.Allreduce(c, nil, out, sum) },
			start:    func() mpi.Request { return mpi.Iallreduce(c, out, out, sum) },
			prepare:  func() *mpi.Persistent { return mpi.AllreduceInit(c, nil, out, sum) },
		}, {
			name: "Allreduce in place on some ranks", before: inPlace, check: checkAll,
			blocking: func() error { return mpi.Allreduce(c, [][]int64{in, out}[me%2], out, sum) },
			start:    func() mpi.Request { return mpi.Iallreduce(c, [][]int64{in, out}[me%2], out, sum) },
			prepare:  func() *mpi.Persistent { return mpi.AllreduceInit(c, [][]int64{in, out}[me%2], out, sum) },
		}, {
			name: "Allreduce in the order of ranks",
			before: func() {
				for i := range funcs {
					funcs[i], composed[i] = function(me, i), affine{}
				}
			},
			blocking: func() error { return mpi.Allreduce(c, funcs, composed, composition) },
			start:    func() mpi.Request { return mpi.Iallreduce(c, funcs, composed, composition) },
			prepare:  func() *mpi.Persistent { return mpi.AllreduceInit(c, funcs, composed, composition) },
			check: func(t *testing.T, what string) {
				for i := range composed {
					want := function(0, i)
					for r := 1; r < size; r++ {
						want = compose(want, function(r, i))
					}
					if composed[i] != want {
						t.Fatalf("%s: element %d is %v, want %v", what, i, composed[i], want)
					}
				}
			},
		}, {
			name:     "ReduceScatterBlock",
			before:   func() { fill(blocks, mine); fill(part, keep) },
			blocking: func() error { return mpi.ReduceScatterBlock(c, blocks, part, sum) },
			start:    func() mpi.Request { return mpi.IreduceScatterBlock(c, blocks, part, sum) },
			prepare:  func() *mpi.Persistent { return mpi.ReduceScatterBlockInit(c, blocks, part, sum) },
			check: func(t *testing.T, what string) {
				wantIn(t, part, func(i int) int64 { return over(0, size)(me*n + i) }, what)
			},
		}, {
			name:     "ReduceScatterBlock in place",
			before:   func() { fill(blocks, mine) },
			blocking: func() error { return mpi.ReduceScatterBlock(c, nil, blocks, sum) },
			start:    func() mpi.Request { return mpi.IreduceScatterBlock(c, blocks, blocks, sum) },
			prepare:  func() *mpi.Persistent { return mpi.ReduceScatterBlockInit(c, nil, blocks, sum) },
			check: func(t *testing.T, what string) {
				wantIn(t, blocks[:n], func(i int) int64 { return over(0, size)(me*n + i) }, what)
			},
		}, {
			name:     "ReduceScatter",
			before:   func() { fill(blocksv, mine); fill(partv, keep) },
			blocking: func() error { return mpi.ReduceScatter(c, blocksv, partv, counts, sum) },
			start:    func() mpi.Request { return mpi.IreduceScatter(c, blocksv, partv, counts, sum) },
			prepare:  func() *mpi.Persistent { return mpi.ReduceScatterInit(c, blocksv, partv, counts, sum) },
			check: func(t *testing.T, what string) {
				wantIn(t, partv, func(i int) int64 { return over(0, size)(at + i) }, what)
			},
		}, {
			name:     "ReduceScatter in place",
			before:   func() { fill(inPlacev, mine) },
			blocking: func() error { return mpi.ReduceScatter(c, nil, inPlacev, counts, sum) },
			start:    func() mpi.Request { return mpi.IreduceScatter(c, nil, inPlacev, counts, sum) },
			prepare:  func() *mpi.Persistent { return mpi.ReduceScatterInit(c, inPlacev, inPlacev, counts, sum) },
			check: func(t *testing.T, what string) {
				wantIn(t, inPlacev[:counts[me]], func(i int) int64 { return over(0, size)(at + i) }, what)
			},
		}, {
			name: "Scan", before: before,
			blocking: func() error { return mpi.Scan(c, in, out, sum) },
			start:    func() mpi.Request { return mpi.Iscan(c, in, out, sum) },
			prepare:  func() *mpi.Persistent { return mpi.ScanInit(c, in, out, sum) },
			check:    func(t *testing.T, what string) { wantIn(t, out, over(0, me+1), what) },
		}, {
			name: "Scan in place", before: inPlace,
			blocking: func() error { return mpi.Scan(c, nil, out, sum) },
			start:    func() mpi.Request { return mpi.Iscan(c, nil, out, sum) },
			prepare:  func() *mpi.Persistent { return mpi.ScanInit(c, out, out, sum) },
			check:    func(t *testing.T, what string) { wantIn(t, out, over(0, me+1), what) },
		}, {
			name: "Exscan", before: before,
			blocking: func() error { return mpi.Exscan(c, in, out, sum) },
			start:    func() mpi.Request { return mpi.Iexscan(c, in, out, sum) },
			prepare:  func() *mpi.Persistent { return mpi.ExscanInit(c, in, out, sum) },
			check: func(t *testing.T, what string) {
				checkBefore(t, what)
				if me == 0 {
					wantIn(t, out, keep, what+": the out of rank 0")
				}
			},
		}, {
			name: "Exscan in place", before: inPlace, check: checkBefore,
			blocking: func() error { return mpi.Exscan(c, nil, out, sum) },
			start:    func() mpi.Request { return mpi.Iexscan(c, nil, out, sum) },
			prepare:  func() *mpi.Persistent { return mpi.ExscanInit(c, out, out, sum) },
		},
	}
}
