package mpi_test

// A table of every collective call in every form, with the expected results.
// coll_forms_test.go runs it.

import (
	"fmt"
	"slices"
	"testing"

	"github.com/muster-mpi/muster/mpi"
)

// collCase is a collective on the buffers of one rank. before fills them, check checks
// the result.
type collCase struct {
	name     string
	before   func()
	blocking func() error
	start    func() mpi.Request
	prepare  func() *mpi.Persistent
	check    func(t *testing.T, what string)
}

// unwritten marks elements of a buffer that must not be written.
const unwritten = int64(-77)

// collCases returns all cases for blocks of about n elements; key makes their values
// differ from those of other calls.
func collCases(c *mpi.Comm, n, key, root int) []collCase {
	return slices.Concat(rootedCases(c, n, key, root), exchangeCases(c, n, key), reductionCases(c, n, key, root))
}

// casesApart are collCases that share no buffers, to be under way together.
func casesApart(c *mpi.Comm, n, key, root int) []collCase {
	cases := collCases(c, n, key, root)
	for i := range cases {
		cases[i] = collCases(c, n, key, root)[i]
	}
	return cases
}

// from returns element i of the data of rank r for rank to.
func from(key, r, to, i int) int64 { return int64(key*1_000_000+r*10_000+to*1000) + int64(i%997) }

func fill(s []int64, v func(i int) int64) {
	for i := range s {
		s[i] = v(i)
	}
}

// wantIn checks a slice and reports the first wrong element.
func wantIn(t *testing.T, got []int64, want func(i int) int64, what string) {
	t.Helper()
	for i := range got {
		if got[i] != want(i) {
			t.Fatalf("%s: element %d of %d is %d, want %d", what, i, len(got), got[i], want(i))
		}
	}
}

func keep(i int) int64 { return unwritten }

// uneven returns blocks of different lengths, one of them empty, with gaps between them:
// lengths, displacements, and the total length.
func uneven(size, n int) (counts, displs []int, room int) {
	for r := range size {
		m := n + r
		if r == 1 {
			m = 0
		}
		counts = append(counts, m)
		displs = append(displs, room)
		room += m + 1
	}
	return counts, displs, room
}

func rootedCases(c *mpi.Comm, n, key, root int) []collCase {
	me, size := c.Rank(), c.Size()
	atRoot := me == root
	counts, displs, room := uneven(size, n)

	data := make([]int64, n)
	in, all, part := make([]int64, n), make([]int64, n*size), make([]int64, n)
	inv, allv, partv := make([]int64, counts[me]), make([]int64, room), make([]int64, counts[me])
	own := in
	stays := part
	if atRoot {
		own, stays = nil, nil
	}
	mine := func(i int) int64 { return from(key, me, 0, i) }
	forAll := func(i int) int64 { return from(key, root, i/max(n, 1), i) }
	fillBlocks := func() {
		for r := range size {
			fill(allv[displs[r]:displs[r]+counts[r]], func(i int) int64 { return from(key, root, r, i) })
		}
	}
	return []collCase{
		{
			name: "Barrier", before: func() {},
			blocking: c.Barrier,
			start:    c.Ibarrier,
			prepare:  c.BarrierInit,
			check:    func(*testing.T, string) {},
		}, {
			name: "Bcast",
			before: func() {
				fill(data, keep)
				if atRoot {
					fill(data, mine)
				}
			},
			blocking: func() error { return mpi.Bcast(c, data, root) },
			start:    func() mpi.Request { return mpi.Ibcast(c, data, root) },
			prepare:  func() *mpi.Persistent { return mpi.BcastInit(c, data, root) },
			check: func(t *testing.T, what string) {
				wantIn(t, data, func(i int) int64 { return from(key, root, 0, i) }, what)
			},
		}, {
			name:     "Gather",
			before:   func() { fill(in, mine); fill(all, keep) },
			blocking: func() error { return mpi.Gather(c, in, all, root) },
			start:    func() mpi.Request { return mpi.Igather(c, in, all, root) },
			prepare:  func() *mpi.Persistent { return mpi.GatherInit(c, in, all, root) },
			check: func(t *testing.T, what string) {
				if !atRoot {
					wantIn(t, all, keep, what+" away from the root")
					return
				}
				wantIn(t, all, func(i int) int64 { return from(key, i/n, 0, i%n) }, what)
			},
		}, {
			name: "Gather in place",
			before: func() {
				fill(in, mine)
				fill(all, keep)
				fill(all[me*n:(me+1)*n], mine)
			},
			blocking: func() error { return mpi.Gather(c, own, all, root) },
			start:    func() mpi.Request { return mpi.Igather(c, own, all, root) },
			prepare:  func() *mpi.Persistent { return mpi.GatherInit(c, own, all, root) },
			check: func(t *testing.T, what string) {
				if atRoot {
					wantIn(t, all, func(i int) int64 { return from(key, i/n, 0, i%n) }, what)
				}
			},
		}, {
			name:     "Gatherv",
			before:   func() { fill(inv, mine); fill(allv, keep) },
			blocking: func() error { return mpi.Gatherv(c, inv, allv, counts, displs, root) },
			start:    func() mpi.Request { return mpi.Igatherv(c, inv, allv, counts, displs, root) },
			prepare:  func() *mpi.Persistent { return mpi.GathervInit(c, inv, allv, counts, displs, root) },
			check: func(t *testing.T, what string) {
				if atRoot {
					wantBlocks(t, allv, counts, displs, func(r, i int) int64 { return from(key, r, 0, i) }, what)
				}
			},
		}, {
			name: "Scatter",
			before: func() {
				fill(part, keep)
				fill(all, keep)
				if atRoot {
					fill(all, forAll)
				}
			},
			blocking: func() error { return mpi.Scatter(c, all, part, root) },
			start:    func() mpi.Request { return mpi.Iscatter(c, all, part, root) },
			prepare:  func() *mpi.Persistent { return mpi.ScatterInit(c, all, part, root) },
			check: func(t *testing.T, what string) {
				wantIn(t, part, func(i int) int64 { return forAll(me*n + i) }, what)
			},
		}, {
			name:     "Scatter in place",
			before:   func() { fill(part, keep); fill(all, forAll) },
			blocking: func() error { return mpi.Scatter(c, all, stays, root) },
			start:    func() mpi.Request { return mpi.Iscatter(c, all, stays, root) },
			prepare:  func() *mpi.Persistent { return mpi.ScatterInit(c, all, stays, root) },
			check: func(t *testing.T, what string) {
				wantIn(t, all, forAll, what+": the root's data")
				if !atRoot {
					wantIn(t, part, func(i int) int64 { return forAll(me*n + i) }, what)
				}
			},
		}, {
			name: "Scatterv",
			before: func() {
				fill(partv, keep)
				fill(allv, keep)
				if atRoot {
					fillBlocks()
				}
			},
			blocking: func() error { return mpi.Scatterv(c, allv, counts, displs, partv, root) },
			start:    func() mpi.Request { return mpi.Iscatterv(c, allv, counts, displs, partv, root) },
			prepare:  func() *mpi.Persistent { return mpi.ScattervInit(c, allv, counts, displs, partv, root) },
			check: func(t *testing.T, what string) {
				wantIn(t, partv, func(i int) int64 { return from(key, root, me, i) }, what)
			},
		},
	}
}

// wantBlocks checks blocks, and that the gaps between them are unchanged.
func wantBlocks(t *testing.T, got []int64, counts, displs []int, want func(r, i int) int64, what string) {
	t.Helper()
	rest := slices.Clone(got)
	for r, m := range counts {
		wantIn(t, got[displs[r]:displs[r]+m], func(i int) int64 { return want(r, i) }, fmt.Sprintf("%s, block %d", what, r))
		fill(rest[displs[r]:displs[r]+m], keep)
	}
	wantIn(t, rest, keep, what+", between the blocks")
}

func exchangeCases(c *mpi.Comm, n, key int) []collCase {
	me, size := c.Rank(), c.Size()
	counts, displs, room := uneven(size, n)
	in, all := make([]int64, n), make([]int64, n*size)
	inv, allv := make([]int64, counts[me]), make([]int64, room)
	mine := func(i int) int64 { return from(key, me, 0, i) }

	to, got := make([]int64, n*size), make([]int64, n*size)
	toEach := func(i int) int64 { return from(key, me, i/n, i%n) }
	fromEach := func(i int) int64 { return from(key, i/n, me, i%n) }

	// In the v-variants the length of a block from rank a to rank b depends on both.
	sendCounts, sendDispls, sendRoom := make([]int, size), make([]int, size), 0
	for r := range size {
		sendCounts[r], sendDispls[r] = (n+me+r)%(n+3), sendRoom
		sendRoom += sendCounts[r] + 2
	}
	tov, gotv := make([]int64, sendRoom), make([]int64, sendRoom)
	fillTo := func(s []int64) {
		fill(s, keep)
		for r, m := range sendCounts {
			fill(s[sendDispls[r]:sendDispls[r]+m], func(i int) int64 { return from(key, me, r, i) })
		}
	}
	checkv := func(t *testing.T, what string) {
		wantBlocks(t, gotv, sendCounts, sendDispls, func(r, i int) int64 { return from(key, r, me, i) }, what)
	}

	// Columns of a matrix go to rows of another.
	columns, rows := make([]*mpi.Layout[int64], size), make([]*mpi.Layout[int64], size)
	for r := range size {
		columns[r] = must(mpi.Struct([]int{r}, []*mpi.Layout[int64]{must(mpi.Vector[int64](n, 1, size))}))
		rows[r] = must(mpi.Struct([]int{r * n}, []*mpi.Layout[int64]{must(mpi.Contiguous[int64](n))}))
	}

	return []collCase{
		{
			name:     "Allgather",
			before:   func() { fill(in, mine); fill(all, keep) },
			blocking: func() error { return mpi.Allgather(c, in, all) },
			start:    func() mpi.Request { return mpi.Iallgather(c, in, all) },
			prepare:  func() *mpi.Persistent { return mpi.AllgatherInit(c, in, all) },
			check: func(t *testing.T, what string) {
				wantIn(t, all, func(i int) int64 { return from(key, i/n, 0, i%n) }, what)
			},
		}, {
			name:     "Allgather in place",
			before:   func() { fill(all, keep); fill(all[me*n:(me+1)*n], mine) },
			blocking: func() error { return mpi.Allgather(c, nil, all) },
			start:    func() mpi.Request { return mpi.Iallgather(c, all[me*n:(me+1)*n], all) },
			prepare:  func() *mpi.Persistent { return mpi.AllgatherInit(c, nil, all) },
			check: func(t *testing.T, what string) {
				wantIn(t, all, func(i int) int64 { return from(key, i/n, 0, i%n) }, what)
			},
		}, {
			name:     "Allgatherv",
			before:   func() { fill(inv, mine); fill(allv, keep) },
			blocking: func() error { return mpi.Allgatherv(c, inv, allv, counts, displs) },
			start:    func() mpi.Request { return mpi.Iallgatherv(c, inv, allv, counts, displs) },
			prepare:  func() *mpi.Persistent { return mpi.AllgathervInit(c, inv, allv, counts, displs) },
			check: func(t *testing.T, what string) {
				wantBlocks(t, allv, counts, displs, func(r, i int) int64 { return from(key, r, 0, i) }, what)
			},
		}, {
			name:     "Alltoall",
			before:   func() { fill(to, toEach); fill(got, keep) },
			blocking: func() error { return mpi.Alltoall(c, to, got) },
			start:    func() mpi.Request { return mpi.Ialltoall(c, to, got) },
			prepare:  func() *mpi.Persistent { return mpi.AlltoallInit(c, to, got) },
			check:    func(t *testing.T, what string) { wantIn(t, got, fromEach, what) },
		}, {
			name:     "Alltoall in place",
			before:   func() { fill(got, toEach) },
			blocking: func() error { return mpi.Alltoall(c, nil, got) },
			start:    func() mpi.Request { return mpi.Ialltoall(c, got, got) },
			prepare:  func() *mpi.Persistent { return mpi.AlltoallInit(c, nil, got) },
			check:    func(t *testing.T, what string) { wantIn(t, got, fromEach, what) },
		}, {
			name:     "Alltoallv",
			before:   func() { fillTo(tov); fill(gotv, keep) },
			blocking: func() error { return mpi.Alltoallv(c, tov, sendCounts, sendDispls, gotv, sendCounts, sendDispls) },
			start: func() mpi.Request {
				return mpi.Ialltoallv(c, tov, sendCounts, sendDispls, gotv, sendCounts, sendDispls)
			},
			prepare: func() *mpi.Persistent {
				return mpi.AlltoallvInit(c, tov, sendCounts, sendDispls, gotv, sendCounts, sendDispls)
			},
			check: checkv,
		}, {
			name:     "Alltoallv in place",
			before:   func() { fillTo(gotv) },
			blocking: func() error { return mpi.Alltoallv(c, nil, nil, nil, gotv, sendCounts, sendDispls) },
			start:    func() mpi.Request { return mpi.Ialltoallv(c, nil, nil, nil, gotv, sendCounts, sendDispls) },
			prepare:  func() *mpi.Persistent { return mpi.AlltoallvInit(c, nil, nil, nil, gotv, sendCounts, sendDispls) },
			check:    checkv,
		}, {
			name: "Alltoallw",
			before: func() {
				fill(to, func(i int) int64 { return from(key, me, i%size, i/size) })
				fill(got, keep)
			},
			blocking: func() error { return mpi.Alltoallw(c, to, columns, got, rows) },
			start:    func() mpi.Request { return mpi.Ialltoallw(c, to, columns, got, rows) },
			prepare:  func() *mpi.Persistent { return mpi.AlltoallwInit(c, to, columns, got, rows) },
			check:    func(t *testing.T, what string) { wantIn(t, got, fromEach, what) },
		},
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
