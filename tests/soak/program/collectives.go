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

// operands are the values of a random call: the same at all ranks, but for the data.
type operands struct {
	c              *mpi.Comm
	own            *rand.Rand
	n, me, root    int
	key, count     int
	counts, displs []int // blocks of different lengths, with gaps
	total          int   // length of a buffer of these blocks
	op             func() mpi.Op[int64]
	combine        func(a, b int64) int64
	in             []int64
}

// collective returns the number-th random call of a step on a group.
func (r *run) collective(own *rand.Rand, g *group, number int) call {
	calls := [...]func(*operands) call{
		(*operands).barrier, (*operands).bcast, (*operands).reduce, (*operands).gather,
		(*operands).scatter, (*operands).allgather, (*operands).alltoall, (*operands).reduceScatterBlock,
		(*operands).scan, (*operands).exscan, (*operands).allgatherv, (*operands).gatherv,
		(*operands).scatterv, (*operands).alltoallv, (*operands).reduceScatter, (*operands).allreduce,
	}
	n, me := g.comm.Size(), g.comm.Rank()
	o := &operands{c: g.comm, own: own, n: n, me: me, key: int(mix(r.key(g), number) >> 1), root: own.IntN(n)}
	kind := own.IntN(len(calls))
	o.count = size(own, r.cfg.Largest) / 8 / max(1, n/2)
	o.counts, o.displs = make([]int, n), make([]int, n)
	for i := range o.counts {
		o.counts[i], o.displs[i] = own.IntN(o.count+1), o.total
		o.total += o.counts[i] + own.IntN(3)
	}
	o.op, o.combine = operation(own.IntN(3))
	o.in = integers(o.key, me, o.count)
	return calls[kind](o)
}

// check compares a result with the elements that it must have.
func (o *operands) check(out []int64, want func(i int) int64) func() error {
	return func() error {
		return checkIntegers(out, want, fmt.Sprintf("%d of %d ranks, root %d", o.me, o.n, o.root))
	}
}

// atRoot returns a check at the root, and none at other ranks.
func (o *operands) atRoot(check func() error) func() error {
	if o.me == o.root {
		return check
	}
	return func() error { return nil }
}

// newAtRoot returns a buffer at the root, and none at other ranks.
func (o *operands) newAtRoot(length int) []int64 {
	if o.me == o.root {
		return make([]int64, length)
	}
	return nil
}

// blocks are the elements of a buffer with an equal block of each rank.
func (o *operands) blocks(i int) int64 {
	return integer(o.key, i/max(o.count, 1), i%max(o.count, 1))
}

// reduction has the elements that the first ranks have reduced.
func (o *operands) reduction(ranks int) func(i int) int64 {
	return func(i int) int64 {
		v := integer(o.key, 0, i)
		for k := 1; k < ranks; k++ {
			v = o.combine(v, integer(o.key, k, i))
		}
		return v
	}
}

func (o *operands) barrier() call {
	return call{"Barrier", o.c.Barrier, o.c.Ibarrier,
		o.c.BarrierInit, func() error { return nil }}
}

func (o *operands) bcast() call {
	if o.me != o.root {
		clear(o.in)
	}
	return call{"Bcast", func() error { return mpi.Bcast(o.c, o.in, o.root) }, func() mpi.Request { return mpi.Ibcast(o.c, o.in, o.root) },
		func() *mpi.Persistent { return mpi.BcastInit(o.c, o.in, o.root) }, o.check(o.in, func(i int) int64 { return integer(o.key, o.root, i) })}
}

func (o *operands) reduce() call {
	out := o.newAtRoot(o.count)
	return call{"Reduce", func() error { return mpi.Reduce(o.c, o.in, out, o.op, o.root) }, func() mpi.Request { return mpi.Ireduce(o.c, o.in, out, o.op, o.root) },
		func() *mpi.Persistent { return mpi.ReduceInit(o.c, o.in, out, o.op, o.root) }, o.atRoot(o.check(out, o.reduction(o.n)))}
}

func (o *operands) gather() call {
	out := o.newAtRoot(o.count * o.n)
	return call{"Gather", func() error { return mpi.Gather(o.c, o.in, out, o.root) }, func() mpi.Request { return mpi.Igather(o.c, o.in, out, o.root) },
		func() *mpi.Persistent { return mpi.GatherInit(o.c, o.in, out, o.root) }, o.atRoot(o.check(out, o.blocks))}
}

func (o *operands) scatter() call {
	var all []int64
	if o.me == o.root {
		all = integers(o.key, o.root, o.count*o.n)
	}
	out := make([]int64, o.count)
	return call{"Scatter", func() error { return mpi.Scatter(o.c, all, out, o.root) }, func() mpi.Request { return mpi.Iscatter(o.c, all, out, o.root) },
		func() *mpi.Persistent { return mpi.ScatterInit(o.c, all, out, o.root) }, o.check(out, func(i int) int64 { return integer(o.key, o.root, o.me*o.count+i) })}
}

func (o *operands) allgather() call {
	out := make([]int64, o.count*o.n)
	return call{"Allgather", func() error { return mpi.Allgather(o.c, o.in, out) }, func() mpi.Request { return mpi.Iallgather(o.c, o.in, out) },
		func() *mpi.Persistent { return mpi.AllgatherInit(o.c, o.in, out) }, o.check(out, o.blocks)}
}

func (o *operands) alltoall() call {
	all, out := integers(o.key, o.me, o.count*o.n), make([]int64, o.count*o.n)
	return call{"Alltoall", func() error { return mpi.Alltoall(o.c, all, out) }, func() mpi.Request { return mpi.Ialltoall(o.c, all, out) },
		func() *mpi.Persistent { return mpi.AlltoallInit(o.c, all, out) }, o.check(out, func(i int) int64 { return integer(o.key, i/o.count, o.me*o.count+i%o.count) })}
}

func (o *operands) reduceScatterBlock() call {
	all, out := integers(o.key, o.me, o.count*o.n), make([]int64, o.count)
	return call{"ReduceScatterBlock", func() error { return mpi.ReduceScatterBlock(o.c, all, out, o.op) }, func() mpi.Request { return mpi.IreduceScatterBlock(o.c, all, out, o.op) },
		func() *mpi.Persistent { return mpi.ReduceScatterBlockInit(o.c, all, out, o.op) }, o.check(out, func(i int) int64 { return o.reduction(o.n)(o.me*o.count + i) })}
}

func (o *operands) scan() call {
	out := make([]int64, o.count)
	return call{"Scan", func() error { return mpi.Scan(o.c, o.in, out, o.op) }, func() mpi.Request { return mpi.Iscan(o.c, o.in, out, o.op) },
		func() *mpi.Persistent { return mpi.ScanInit(o.c, o.in, out, o.op) }, o.check(out, o.reduction(o.me+1))}
}

func (o *operands) exscan() call {
	out := make([]int64, o.count)
	checked := o.check(out, o.reduction(o.me))
	if o.me == 0 {
		checked = func() error { return nil }
	}
	return call{"Exscan", func() error { return mpi.Exscan(o.c, o.in, out, o.op) }, func() mpi.Request { return mpi.Iexscan(o.c, o.in, out, o.op) },
		func() *mpi.Persistent { return mpi.ExscanInit(o.c, o.in, out, o.op) }, checked}
}

func (o *operands) allgatherv() call {
	mine, out := o.in[:o.counts[o.me]], make([]int64, o.total)
	return call{"Allgatherv", func() error { return mpi.Allgatherv(o.c, mine, out, o.counts, o.displs) }, func() mpi.Request { return mpi.Iallgatherv(o.c, mine, out, o.counts, o.displs) },
		func() *mpi.Persistent { return mpi.AllgathervInit(o.c, mine, out, o.counts, o.displs) }, o.check(out, unequal(o.key, o.counts, o.displs))}
}

func (o *operands) gatherv() call {
	out := o.newAtRoot(o.total)
	mine := o.in[:o.counts[o.me]]
	return call{"Gatherv", func() error { return mpi.Gatherv(o.c, mine, out, o.counts, o.displs, o.root) }, func() mpi.Request { return mpi.Igatherv(o.c, mine, out, o.counts, o.displs, o.root) },
		func() *mpi.Persistent { return mpi.GathervInit(o.c, mine, out, o.counts, o.displs, o.root) }, o.atRoot(o.check(out, unequal(o.key, o.counts, o.displs)))}
}

func (o *operands) scatterv() call {
	var all []int64
	if o.me == o.root {
		all = integers(o.key, o.root, o.total)
	}
	out := make([]int64, o.counts[o.me])
	return call{"Scatterv", func() error { return mpi.Scatterv(o.c, all, o.counts, o.displs, out, o.root) }, func() mpi.Request { return mpi.Iscatterv(o.c, all, o.counts, o.displs, out, o.root) },
		func() *mpi.Persistent { return mpi.ScattervInit(o.c, all, o.counts, o.displs, out, o.root) }, o.check(out, func(i int) int64 { return integer(o.key, o.root, o.displs[o.me]+i) })}
}

func (o *operands) reduceScatter() call {
	sum := 0
	starts := make([]int, o.n)
	for i, k := range o.counts {
		starts[i] = sum
		sum += k
	}
	all, out := integers(o.key, o.me, sum), make([]int64, o.counts[o.me])
	return call{"ReduceScatter", func() error { return mpi.ReduceScatter(o.c, all, out, o.counts, o.op) }, func() mpi.Request { return mpi.IreduceScatter(o.c, all, out, o.counts, o.op) },
		func() *mpi.Persistent { return mpi.ReduceScatterInit(o.c, all, out, o.counts, o.op) }, o.check(out, func(i int) int64 { return o.reduction(o.n)(starts[o.me] + i) })}
}

func (o *operands) allreduce() call {
	out := make([]int64, o.count)
	return call{"Allreduce", func() error { return mpi.Allreduce(o.c, o.in, out, o.op) }, func() mpi.Request { return mpi.Iallreduce(o.c, o.in, out, o.op) },
		func() *mpi.Persistent { return mpi.AllreduceInit(o.c, o.in, out, o.op) }, o.check(out, o.reduction(o.n))}
}

// alltoallv exchanges a different number of elements between each two ranks.
func (o *operands) alltoallv() call {
	c, n, me, key := o.c, o.n, o.me, o.key
	table := make([]int, n*n)
	for i := range table {
		table[i] = o.own.IntN(o.count + 1)
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

func operation(kind int) (func() mpi.Op[int64], func(a, b int64) int64) {
	switch kind {
	case 0:
		return mpi.Sum[int64], func(a, b int64) int64 { return a + b }
	case 1:
		return mpi.Max[int64], func(a, b int64) int64 { return max(a, b) }
	}
	return mpi.BitXor[int64], func(a, b int64) int64 { return a ^ b }
}
