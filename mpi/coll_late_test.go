package mpi

// Calls of all kinds with arrival-aware algorithms, and their expected results: with
// blocks of equal or different lengths; blocking, nonblocking and persistent.

import (
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/internal/coll"
)

// papKinds have arrival-aware forms.
var papKinds = []coll.Kind{coll.Alltoall, coll.Allgather, coll.Bcast, coll.Reduce, coll.Allreduce}

// lateForm is a form of a call.
type lateForm struct {
	kind coll.Kind
	v    bool   // lengths differ
	way  string // "": it waits; "I": it does not; "Init": it is prepared, and started again and again
}

func (f lateForm) String() string {
	name := f.way + " " + f.kind.String()
	if f.v {
		name += "v"
	}
	return name
}

// lateForms returns every form of the kinds.
func lateForms() (all []lateForm) {
	for _, way := range []string{"", "I", "Init"} {
		for _, kind := range papKinds {
			if all = append(all, lateForm{kind, false, way}); kind == coll.Alltoall || kind == coll.Allgather {
				all = append(all, lateForm{kind, true, way})
			}
		}
	}
	return all
}

// lateCall makes one blocking call.
func lateCall(c *Comm, kind coll.Kind, n, root int) error {
	return newLateCall(c, lateForm{kind: kind}, n, root).run()
}

// preparedCall is a call that can be repeated.
type preparedCall struct {
	in, out, want []int64
	first         []int64 // what is in out before the call; nil: anything
	wait          func() error
	start         func() Request
	init          func() *Persistent
	way           string
	persistent    *Persistent
}

// newLateCall returns a call of n elements, or about n if lengths differ. Element i of the
// data of rank a for rank b is a function of the three.
func newLateCall(c *Comm, form lateForm, n, root int) *preparedCall {
	p := &preparedCall{way: form.way}
	switch form.kind {
	case coll.Alltoall:
		p.alltoall(c, form.v, n)
	case coll.Allgather:
		p.allgather(c, form.v, n)
	case coll.Bcast:
		p.first, p.out, p.want = lateBlock(c.rank, 0, n), make([]int64, n), lateBlock(root, 0, n)
		p.wait = func() error { return Bcast(c, p.out, root) }
		p.start = func() Request { return Ibcast(c, p.out, root) }
		p.init = func() *Persistent { return BcastInit(c, p.out, root) }
	default:
		p.reduce(c, form.kind == coll.Allreduce, n, root)
	}
	return p
}

func lateItem(a, b, i int) int64 { return int64(a)<<40 + int64(b)<<20 + int64(i) }

func lateBlock(a, b, n int) []int64 {
	s := make([]int64, n)
	for i := range s {
		s[i] = lateItem(a, b, i)
	}
	return s
}

// lateBlocks returns the blocks from rank from(r) to rank to(r), for all r. If lengths
// differ, some are empty, and they are in reverse order.
func lateBlocks(c *Comm, v bool, n int, block func(r int) (from, to int)) (all []int64, counts, displs []int) {
	counts, displs = make([]int, c.size), make([]int, c.size)
	for i := range c.size {
		r, length := i, n
		from, to := block(r)
		if v {
			r = c.size - 1 - i
			from, to = block(r)
			length = []int{n, 2 * n, 0, n / 2, n + 3}[(3*from+to)%5]
		}
		counts[r], displs[r] = length, len(all)
		all = append(all, lateBlock(from, to, length)...)
	}
	return all, counts, displs
}

func (p *preparedCall) alltoall(c *Comm, v bool, n int) {
	in, sends, sendAt := lateBlocks(c, v, n, func(r int) (int, int) { return c.rank, r })
	want, recvs, recvAt := lateBlocks(c, v, n, func(r int) (int, int) { return r, c.rank })
	p.in, p.out, p.want = in, make([]int64, len(want)), want
	if v {
		p.wait = func() error { return Alltoallv(c, p.in, sends, sendAt, p.out, recvs, recvAt) }
		p.start = func() Request { return Ialltoallv(c, p.in, sends, sendAt, p.out, recvs, recvAt) }
		p.init = func() *Persistent { return AlltoallvInit(c, p.in, sends, sendAt, p.out, recvs, recvAt) }
		return
	}
	p.wait = func() error { return Alltoall(c, p.in, p.out) }
	p.start = func() Request { return Ialltoall(c, p.in, p.out) }
	p.init = func() *Persistent { return AlltoallInit(c, p.in, p.out) }
}

func (p *preparedCall) allgather(c *Comm, v bool, n int) {
	want, counts, displs := lateBlocks(c, v, n, func(r int) (int, int) { return r, 0 })
	p.in, p.out, p.want = lateBlock(c.rank, 0, counts[c.rank]), make([]int64, len(want)), want
	if v {
		p.wait = func() error { return Allgatherv(c, p.in, p.out, counts, displs) }
		p.start = func() Request { return Iallgatherv(c, p.in, p.out, counts, displs) }
		p.init = func() *Persistent { return AllgathervInit(c, p.in, p.out, counts, displs) }
		return
	}
	p.wait = func() error { return Allgather(c, p.in, p.out) }
	p.start = func() Request { return Iallgather(c, p.in, p.out) }
	p.init = func() *Persistent { return AllgatherInit(c, p.in, p.out) }
}

func (p *preparedCall) reduce(c *Comm, all bool, n, root int) {
	sum := Sum[int64]
	p.in, p.out = lateBlock(c.rank, 0, n), make([]int64, n)
	if all || c.rank == root { // others get nothing
		for i := range n {
			p.want = append(p.want, lateItem(c.size*(c.size-1)/2, 0, i*c.size))
		}
	}
	if all {
		p.wait = func() error { return Allreduce(c, p.in, p.out, sum) }
		p.start = func() Request { return Iallreduce(c, p.in, p.out, sum) }
		p.init = func() *Persistent { return AllreduceInit(c, p.in, p.out, sum) }
		return
	}
	p.wait = func() error { return Reduce(c, p.in, p.out, sum, root) }
	p.start = func() Request { return Ireduce(c, p.in, p.out, sum, root) }
	p.init = func() *Persistent { return ReduceInit(c, p.in, p.out, sum, root) }
}

// run makes the call and compares the result with its definition.
func (p *preparedCall) run() (err error) {
	clear(p.out)
	copy(p.out, p.first)
	switch p.way {
	case "":
		err = p.wait()
	case "I":
		_, err = p.start().Wait()
	default:
		if p.persistent == nil {
			p.persistent = p.init()
		}
		_, err = p.persistent.Start().Wait()
	}
	if err != nil || p.want == nil || slices.Equal(p.out, p.want) {
		return err
	}
	at := 0
	for p.out[at] == p.want[at] {
		at++
	}
	return fmt.Errorf("element %d of %d is %#x, must be %#x", at, len(p.want), p.out[at], p.want[at])
}
