package program

import (
	"fmt"
	"math/rand/v2"

	"github.com/muster-mpi/muster/mpi"
)

// call is a collective call in its three forms, and the check of its result.
type call struct {
	name  string
	now   func() error
	start func() mpi.Request
	init  func() *mpi.Persistent
	check func() error
}

// collectives makes a few calls, some of them started before others have completed.
func (r *run) collectives(random *rand.Rand, g *group) error {
	own := rand.New(rand.NewPCG(random.Uint64(), uint64(r.key(g))))
	type started struct {
		c call
		q mpi.Request
	}
	var under []started
	for i := range 1 + own.IntN(4) {
		c := r.collective(own, g, i)
		form := own.IntN(4)
		r.at = fmt.Sprintf("%s on %s, form %d", c.name, g.comm.Name(), form)
		switch form {
		case 0:
			if err := c.now(); err != nil {
				return err
			}
			if err := c.check(); err != nil {
				return err
			}
		case 1:
			p := c.init()
			for range 2 {
				q := p.Start()
				r.pending = append(r.pending, q)
				if _, err := q.Wait(); err != nil {
					return err
				}
				if err := c.check(); err != nil {
					return err
				}
			}
		default:
			q := c.start()
			r.pending = append(r.pending, q)
			under = append(under, started{c, q})
		}
	}
	for _, s := range under {
		r.at = fmt.Sprintf("%s on %s, wait", s.c.name, g.comm.Name())
		if _, err := s.q.Wait(); err != nil {
			return err
		}
		if err := s.c.check(); err != nil {
			return err
		}
	}
	return nil
}

// overlap starts a collective on one group while a step runs on another.
func (r *run) overlap(random *rand.Rand, g *group) error {
	other := r.groups[random.IntN(len(r.groups))]
	own := rand.New(rand.NewPCG(random.Uint64(), uint64(r.key(other))))
	c := r.collective(own, other, 0)
	r.at = fmt.Sprintf("%s on %s beside messages", c.name, other.comm.Name())
	q := c.start()
	r.pending = append(r.pending, q)
	at := r.at
	if err := r.messages(random, g); err != nil {
		return err
	}
	r.at, r.on = at, other
	if _, err := q.Wait(); err != nil {
		return err
	}
	return c.check()
}

// collective returns the number-th random call of a step on a group.
func (r *run) collective(own *rand.Rand, g *group, number int) call {
	c, n, me := g.comm, g.comm.Size(), g.comm.Rank()
	key := int(mix(r.key(g), number) >> 1)
	root, kind := own.IntN(n), own.IntN(16)
	count := size(own, r.cfg.Largest) / 8 / max(1, n/2)
	counts, displs, total := make([]int, n), make([]int, n), 0
	for i := range counts {
		counts[i] = own.IntN(count + 1)
		displs[i] = total
		total += counts[i] + own.IntN(3)
	}
	op, combine := operation(own.IntN(3))
	reduced := func(upto int) func(i int) int64 {
		return func(i int) int64 {
			v := integer(key, 0, i)
			for k := 1; k < upto; k++ {
				v = combine(v, integer(key, k, i))
			}
			return v
		}
	}
	in := integers(key, me, count)
	check := func(out []int64, want func(i int) int64) func() error {
		return func() error { return checkIntegers(out, want, fmt.Sprintf("%d of %d ranks, root %d", me, n, root)) }
	}
	atRoot := func(f func() error) func() error {
		if me == root {
			return f
		}
		return func() error { return nil }
	}
	blocks := func(i int) int64 { return integer(key, i/max(count, 1), i%max(count, 1)) }
	switch kind {
	case 0:
		return call{"Barrier", func() error { return mpi.Barrier(c) }, func() mpi.Request { return mpi.Ibarrier(c) },
			func() *mpi.Persistent { return mpi.BarrierInit(c) }, func() error { return nil }}
	case 1:
		if me != root {
			clear(in)
		}
		return call{"Bcast", func() error { return mpi.Bcast(c, in, root) }, func() mpi.Request { return mpi.Ibcast(c, in, root) },
			func() *mpi.Persistent { return mpi.BcastInit(c, in, root) }, check(in, func(i int) int64 { return integer(key, root, i) })}
	case 2:
		var out []int64
		if me == root {
			out = make([]int64, count)
		}
		return call{"Reduce", func() error { return mpi.Reduce(c, in, out, op, root) }, func() mpi.Request { return mpi.Ireduce(c, in, out, op, root) },
			func() *mpi.Persistent { return mpi.ReduceInit(c, in, out, op, root) }, atRoot(check(out, reduced(n)))}
	case 3:
		var out []int64
		if me == root {
			out = make([]int64, count*n)
		}
		return call{"Gather", func() error { return mpi.Gather(c, in, out, root) }, func() mpi.Request { return mpi.Igather(c, in, out, root) },
			func() *mpi.Persistent { return mpi.GatherInit(c, in, out, root) }, atRoot(check(out, blocks))}
	case 4:
		var all []int64
		if me == root {
			all = integers(key, root, count*n)
		}
		out := make([]int64, count)
		return call{"Scatter", func() error { return mpi.Scatter(c, all, out, root) }, func() mpi.Request { return mpi.Iscatter(c, all, out, root) },
			func() *mpi.Persistent { return mpi.ScatterInit(c, all, out, root) }, check(out, func(i int) int64 { return integer(key, root, me*count+i) })}
	case 5:
		out := make([]int64, count*n)
		return call{"Allgather", func() error { return mpi.Allgather(c, in, out) }, func() mpi.Request { return mpi.Iallgather(c, in, out) },
			func() *mpi.Persistent { return mpi.AllgatherInit(c, in, out) }, check(out, blocks)}
	case 6:
		all, out := integers(key, me, count*n), make([]int64, count*n)
		return call{"Alltoall", func() error { return mpi.Alltoall(c, all, out) }, func() mpi.Request { return mpi.Ialltoall(c, all, out) },
			func() *mpi.Persistent { return mpi.AlltoallInit(c, all, out) }, check(out, func(i int) int64 { return integer(key, i/count, me*count+i%count) })}
	case 7:
		all, out := integers(key, me, count*n), make([]int64, count)
		return call{"ReduceScatterBlock", func() error { return mpi.ReduceScatterBlock(c, all, out, op) }, func() mpi.Request { return mpi.IreduceScatterBlock(c, all, out, op) },
			func() *mpi.Persistent { return mpi.ReduceScatterBlockInit(c, all, out, op) }, check(out, func(i int) int64 { return reduced(n)(me*count + i) })}
	case 8:
		out := make([]int64, count)
		return call{"Scan", func() error { return mpi.Scan(c, in, out, op) }, func() mpi.Request { return mpi.Iscan(c, in, out, op) },
			func() *mpi.Persistent { return mpi.ScanInit(c, in, out, op) }, check(out, reduced(me+1))}
	case 9:
		out := make([]int64, count)
		checked := check(out, reduced(me))
		if me == 0 {
			checked = func() error { return nil }
		}
		return call{"Exscan", func() error { return mpi.Exscan(c, in, out, op) }, func() mpi.Request { return mpi.Iexscan(c, in, out, op) },
			func() *mpi.Persistent { return mpi.ExscanInit(c, in, out, op) }, checked}
	case 10:
		mine, out := in[:counts[me]], make([]int64, total)
		return call{"Allgatherv", func() error { return mpi.Allgatherv(c, mine, out, counts, displs) }, func() mpi.Request { return mpi.Iallgatherv(c, mine, out, counts, displs) },
			func() *mpi.Persistent { return mpi.AllgathervInit(c, mine, out, counts, displs) }, check(out, unequal(key, counts, displs))}
	case 11:
		var out []int64
		if me == root {
			out = make([]int64, total)
		}
		mine := in[:counts[me]]
		return call{"Gatherv", func() error { return mpi.Gatherv(c, mine, out, counts, displs, root) }, func() mpi.Request { return mpi.Igatherv(c, mine, out, counts, displs, root) },
			func() *mpi.Persistent { return mpi.GathervInit(c, mine, out, counts, displs, root) }, atRoot(check(out, unequal(key, counts, displs)))}
	case 12:
		var all []int64
		if me == root {
			all = integers(key, root, total)
		}
		out := make([]int64, counts[me])
		return call{"Scatterv", func() error { return mpi.Scatterv(c, all, counts, displs, out, root) }, func() mpi.Request { return mpi.Iscatterv(c, all, counts, displs, out, root) },
			func() *mpi.Persistent { return mpi.ScattervInit(c, all, counts, displs, out, root) }, check(out, func(i int) int64 { return integer(key, root, displs[me]+i) })}
	case 13:
		return r.alltoallv(own, g, key, count)
	case 14:
		sum := 0
		starts := make([]int, n)
		for i, k := range counts {
			starts[i] = sum
			sum += k
		}
		all, out := integers(key, me, sum), make([]int64, counts[me])
		return call{"ReduceScatter", func() error { return mpi.ReduceScatter(c, all, out, counts, op) }, func() mpi.Request { return mpi.IreduceScatter(c, all, out, counts, op) },
			func() *mpi.Persistent { return mpi.ReduceScatterInit(c, all, out, counts, op) }, check(out, func(i int) int64 { return reduced(n)(starts[me] + i) })}
	}
	out := make([]int64, count)
	return call{"Allreduce", func() error { return mpi.Allreduce(c, in, out, op) }, func() mpi.Request { return mpi.Iallreduce(c, in, out, op) },
		func() *mpi.Persistent { return mpi.AllreduceInit(c, in, out, op) }, check(out, reduced(n))}
}

// alltoallv exchanges a different number of elements between each two ranks.
func (r *run) alltoallv(own *rand.Rand, g *group, key, count int) call {
	c, n, me := g.comm, g.comm.Size(), g.comm.Rank()
	table := make([]int, n*n)
	for i := range table {
		table[i] = own.IntN(count + 1)
	}
	sendCounts, sendDispls, recvCounts, recvDispls := make([]int, n), make([]int, n), make([]int, n), make([]int, n)
	sent, received := 0, 0
	for k := range n {
		sendCounts[k], sendDispls[k] = table[me*n+k], sent
		sent += sendCounts[k]
		recvCounts[k], recvDispls[k] = table[k*n+me], received
		received += recvCounts[k]
	}
	in, out := make([]int64, sent), make([]int64, received)
	for k := range n {
		for i := range sendCounts[k] {
			in[sendDispls[k]+i] = integer(key, me, k<<32|i)
		}
	}
	check := func() error {
		for k := range n {
			block := out[recvDispls[k]:][:recvCounts[k]]
			if err := checkIntegers(block, func(i int) int64 { return integer(key, k, me<<32|i) }, fmt.Sprintf("block of rank %d", k)); err != nil {
				return err
			}
		}
		return nil
	}
	return call{"Alltoallv",
		func() error { return mpi.Alltoallv(c, in, sendCounts, sendDispls, out, recvCounts, recvDispls) },
		func() mpi.Request { return mpi.Ialltoallv(c, in, sendCounts, sendDispls, out, recvCounts, recvDispls) },
		func() *mpi.Persistent {
			return mpi.AlltoallvInit(c, in, sendCounts, sendDispls, out, recvCounts, recvDispls)
		},
		check}
}

// unequal returns the elements of a buffer with a block of each rank, and zeros between.
func unequal(key int, counts, displs []int) func(i int) int64 {
	return func(i int) int64 {
		for k, d := range displs {
			if i >= d && i < d+counts[k] {
				return integer(key, k, i-d)
			}
		}
		return 0
	}
}

func operation(kind int) (mpi.Op[int64], func(a, b int64) int64) {
	switch kind {
	case 0:
		return mpi.Sum[int64](), func(a, b int64) int64 { return a + b }
	case 1:
		return mpi.Max[int64](), func(a, b int64) int64 { return max(a, b) }
	}
	return mpi.BitXor[int64](), func(a, b int64) int64 { return a ^ b }
}
