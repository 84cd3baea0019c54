package core

// Collectives that move data (MPI-4.1 sections 6.5 to 6.8). In package mpi a nil slice of
// data to send means that the call is in place.

import "github.com/muster-mpi/muster/mpi"

func (p *Process) gather(a *args, x *collCall) error {
	c, r := x.comm(7), x.role(6)
	if a.err != nil {
		return a.err
	}
	in, out := x.contribution(r, 0, 3), []byte(nil)
	if r.isRoot {
		out = x.buffer(x.result(0), 3, 4, 5, x.peers())
		x.distinct(0, 1, 2, 3, 4, 5, c.Rank())
		in = x.fit(in, out)
	}
	if a.err != nil {
		return a.err
	}
	return x.run(
		func() error { return mpi.Gather(c.Comm, in, out, r.root) },
		func() mpi.Request { return mpi.Igather(c.Comm, in, out, r.root) },
		func() *mpi.Persistent { return mpi.GatherInit(c.Comm, in, out, r.root) })
}

// fit returns memory of the length of a block of all, instead of the root's own block if that
// has another length. That is an error, but the other ranks make the call, and would wait for
// a root that does not.
func (x *collCall) fit(own, all []byte) []byte {
	if x.a.err != nil || own == nil || len(own)*x.peers() == len(all) {
		return own
	}
	block := make([]byte, len(all)/x.peers())
	x.late = errorf(errTruncate, "the root has blocks of %d bytes for the ranks, and %d bytes for itself", len(block), len(own))
	return block
}

func (p *Process) gatherv(a *args, x *collCall) error {
	c, r := x.comm(8), x.role(7)
	if a.err != nil {
		return a.err
	}
	in := x.contribution(r, 0, 3)
	var out []byte
	var lens, offs []int
	if r.isRoot {
		list := x.vector(3, 4, 5, 6, x.peers())
		out, lens, offs = x.blocks(x.result(0), list)
		x.distinctBlock(0, 1, list)
	}
	if a.err != nil {
		return a.err
	}
	return x.run(
		func() error { return mpi.Gatherv(c.Comm, in, out, lens, offs, r.root) },
		func() mpi.Request { return mpi.Igatherv(c.Comm, in, out, lens, offs, r.root) },
		func() *mpi.Persistent { return mpi.GathervInit(c.Comm, in, out, lens, offs, r.root) })
}

// contribution returns the data that a rank sends in a gather. It is nil at a root in place.
func (x *collCall) contribution(r role, addr, recv int) []byte {
	if !r.isOther || r.isRoot && x.a.addr(addr) == inPlace {
		return nil
	}
	return x.buffer(reads, addr, addr+1, addr+2, 1)
}

// result returns how a call uses the buffer of its result, given the position of the data
// to send: calls in place find a part of it there.
func (x *collCall) result(send int) use {
	if x.a.addr(send) == inPlace {
		return reads | writes
	}
	return writes
}

// distinct refuses a block of the one buffer that is the rank's block of the other: MPI
// forbids it, and it is a common error (MPI-4.1 section 6.5). Only calls with the same
// datatype and count are checked, as in MPICH.
func (x *collCall) distinct(addr, count, typ, many, manyCount, manyTyp, rank int) {
	a := x.a
	if a.err != nil || x.c.IsInter() || a.v[typ] != a.v[manyTyp] || a.v[count] != a.v[manyCount] || a.int(count) == 0 {
		return
	}
	if t := a.datatype(typ); t != nil {
		x.differ(a.addr(addr), a.addr(many)+uintptr(rank*a.int(count)*int(t.layout.Extent())))
	}
}

// distinctBlock is distinct for blocks that differ.
func (x *collCall) distinctBlock(addr, count int, list []block) {
	if x.a.err != nil || x.c.IsInter() {
		return
	}
	if mine := list[x.c.Rank()]; mine.count > 0 && x.a.int(count) > 0 {
		x.differ(x.a.addr(addr), mine.addr)
	}
}

func (x *collCall) differ(send, recv uintptr) {
	if send == recv && send != bottom {
		x.a.fail(errorf(errBuffer, "the buffers of sent and received data are the same: pass MPI_IN_PLACE"))
	}
}

func (p *Process) scatter(a *args, x *collCall) error {
	c, r := x.comm(7), x.role(6)
	if a.err != nil {
		return a.err
	}
	var in []byte
	if r.isRoot {
		in = x.buffer(reads, 0, 1, 2, x.peers())
		x.distinct(3, 4, 5, 0, 1, 2, c.Rank())
	}
	out := x.share(r, 3)
	if r.isRoot {
		out = x.fit(out, in)
	}
	if a.err != nil {
		return a.err
	}
	return x.run(
		func() error { return mpi.Scatter(c.Comm, in, out, r.root) },
		func() mpi.Request { return mpi.Iscatter(c.Comm, in, out, r.root) },
		func() *mpi.Persistent { return mpi.ScatterInit(c.Comm, in, out, r.root) })
}

func (p *Process) scatterv(a *args, x *collCall) error {
	c, r := x.comm(8), x.role(7)
	if a.err != nil {
		return a.err
	}
	var in []byte
	var lens, offs []int
	if r.isRoot {
		list := x.vector(0, 1, 2, 3, x.peers())
		in, lens, offs = x.blocks(reads, list)
		x.distinctBlock(4, 5, list)
	}
	out := x.share(r, 4)
	if a.err != nil {
		return a.err
	}
	return x.run(
		func() error { return mpi.Scatterv(c.Comm, in, lens, offs, out, r.root) },
		func() mpi.Request { return mpi.Iscatterv(c.Comm, in, lens, offs, out, r.root) },
		func() *mpi.Persistent { return mpi.ScattervInit(c.Comm, in, lens, offs, out, r.root) })
}

// share returns the memory for what a rank receives in a scatter. It is nil if the root's
// call is in place.
func (x *collCall) share(r role, addr int) []byte {
	if !r.isOther || r.isRoot && x.a.addr(addr) == inPlace {
		return nil
	}
	return x.buffer(writes, addr, addr+1, addr+2, 1)
}

func (p *Process) allgather(a *args, x *collCall) error {
	c := x.comm(6)
	if a.err != nil {
		return a.err
	}
	in := x.sendBlocks(0, 1)
	out := x.buffer(x.result(0), 3, 4, 5, x.peers())
	x.distinct(0, 1, 2, 3, 4, 5, c.Rank())
	if a.err != nil {
		return a.err
	}
	return x.run(
		func() error { return mpi.Allgather(c.Comm, in, out) },
		func() mpi.Request { return mpi.Iallgather(c.Comm, in, out) },
		func() *mpi.Persistent { return mpi.AllgatherInit(c.Comm, in, out) })
}

// sendBlocks returns the n blocks that a rank sends in a call without a root; nil in place.
func (x *collCall) sendBlocks(addr, n int) []byte {
	if x.a.addr(addr) == inPlace && !x.c.IsInter() {
		return nil
	}
	return x.buffer(reads, addr, addr+1, addr+2, n)
}

func (p *Process) allgatherv(a *args, x *collCall) error {
	c := x.comm(7)
	if a.err != nil {
		return a.err
	}
	in := x.sendBlocks(0, 1)
	list := x.vector(3, 4, 5, 6, x.peers())
	out, lens, offs := x.blocks(x.result(0), list)
	x.distinctBlock(0, 1, list)
	if a.err != nil {
		return a.err
	}
	return x.run(
		func() error { return mpi.Allgatherv(c.Comm, in, out, lens, offs) },
		func() mpi.Request { return mpi.Iallgatherv(c.Comm, in, out, lens, offs) },
		func() *mpi.Persistent { return mpi.AllgathervInit(c.Comm, in, out, lens, offs) })
}

func (p *Process) alltoall(a *args, x *collCall) error {
	c := x.comm(6)
	if a.err != nil {
		return a.err
	}
	in := x.sendBlocks(0, x.peers())
	out := x.buffer(x.result(0), 3, 4, 5, x.peers())
	x.distinct(0, 1, 2, 3, 4, 5, 0)
	if a.err != nil {
		return a.err
	}
	return x.run(
		func() error { return mpi.Alltoall(c.Comm, in, out) },
		func() mpi.Request { return mpi.Ialltoall(c.Comm, in, out) },
		func() *mpi.Persistent { return mpi.AlltoallInit(c.Comm, in, out) })
}

func (p *Process) alltoallv(a *args, x *collCall) error {
	c := x.comm(8)
	if a.err != nil {
		return a.err
	}
	n := x.peers()
	recvs := x.vector(4, 5, 6, 7, n)
	var sends []block
	if a.addr(0) != inPlace || c.IsInter() {
		sends = x.vector(0, 1, 2, 3, n)
	}
	return x.allToAll(sends, recvs)
}

func (p *Process) alltoallw(a *args, x *collCall) error {
	c := x.comm(8)
	if a.err != nil {
		return a.err
	}
	n := x.peers()
	recvs := x.various(4, 5, a.ints(6, n), 7, n)
	var sends []block
	if a.addr(0) != inPlace || c.IsInter() {
		sends = x.various(0, 1, a.ints(2, n), 3, n)
	}
	return x.allToAll(sends, recvs)
}

// allToAll exchanges blocks that differ. Without blocks to send it is in place.
func (x *collCall) allToAll(sends, recvs []block) error {
	a, c := x.a, x.c
	if a.err != nil {
		return a.err
	}
	out, rlens, roffs := x.blocks(x.result(0), recvs)
	var in []byte
	var slens, soffs []int
	if a.addr(0) != inPlace || c.IsInter() {
		in, slens, soffs = x.blocks(reads, sends)
		if same := a.addr(0) == a.addr(4) && len(in) > 0 && len(out) > 0; same && a.addr(0) != bottom && !c.IsInter() {
			x.differ(a.addr(0), a.addr(4))
		}
	}
	if a.err != nil {
		return a.err
	}
	return x.run(
		func() error { return mpi.Alltoallv(c.Comm, in, slens, soffs, out, rlens, roffs) },
		func() mpi.Request { return mpi.Ialltoallv(c.Comm, in, slens, soffs, out, rlens, roffs) },
		func() *mpi.Persistent { return mpi.AlltoallvInit(c.Comm, in, slens, soffs, out, rlens, roffs) })
}
