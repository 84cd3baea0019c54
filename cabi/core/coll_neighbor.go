package core

// Neighborhood collectives (MPI-4.1 section 8.6). They are never in place. Blocks of
// neighbors that are MPI_PROC_NULL stay as they are, so copies of the received data begin
// with what is in the buffer.

import "github.com/muster-mpi/muster/mpi"

func neighborhoods() []collective {
	return []collective{
		{"Neighbor_allgather", 7, (*Process).neighborAllgather},
		{"Neighbor_allgatherv", 8, (*Process).neighborAllgatherv},
		{"Neighbor_alltoall", 7, (*Process).neighborAlltoall},
		{"Neighbor_alltoallv", 9, (*Process).neighborAlltoallv},
		{"Neighbor_alltoallw", 9, (*Process).neighborAlltoallw},
	}
}

// neighbors decodes the communicator, and returns its topology and the numbers of neighbors
// that the rank receives from and sends to.
func (x *collCall) neighbors(i int) (t mpi.Topology, sources, dests int) {
	c := x.comm(i)
	if c == nil {
		return nil, 0, 0
	}
	if c.topo == nil {
		x.a.fail(errorf(errTopology, "the communicator has no topology"))
		return nil, 0, 0
	}
	from, to := c.topo.Neighborhood()
	return c.topo, len(from), len(to)
}

func (p *Process) neighborAllgather(a *args, x *collCall) error {
	t, sources, _ := x.neighbors(6)
	in := x.buffer(reads, 0, 1, 2, 1)
	out := x.buffer(reads|writes, 3, 4, 5, sources)
	if a.err != nil {
		return a.err
	}
	return x.run(
		func() error { return mpi.NeighborAllgather(t, in, out) },
		func() mpi.Request { return mpi.IneighborAllgather(t, in, out) },
		func() *mpi.Persistent { return mpi.NeighborAllgatherInit(t, in, out) })
}

func (p *Process) neighborAllgatherv(a *args, x *collCall) error {
	t, sources, _ := x.neighbors(7)
	in := x.buffer(reads, 0, 1, 2, 1)
	out, lens, offs := x.blocks(reads|writes, x.vector(3, 4, 5, 6, sources))
	if a.err != nil {
		return a.err
	}
	return x.run(
		func() error { return mpi.NeighborAllgatherv(t, in, out, lens, offs) },
		func() mpi.Request { return mpi.IneighborAllgatherv(t, in, out, lens, offs) },
		func() *mpi.Persistent { return mpi.NeighborAllgathervInit(t, in, out, lens, offs) })
}

func (p *Process) neighborAlltoall(a *args, x *collCall) error {
	t, sources, dests := x.neighbors(6)
	in := x.buffer(reads, 0, 1, 2, dests)
	out := x.buffer(reads|writes, 3, 4, 5, sources)
	if a.err != nil {
		return a.err
	}
	return x.run(
		func() error { return mpi.NeighborAlltoall(t, in, out) },
		func() mpi.Request { return mpi.IneighborAlltoall(t, in, out) },
		func() *mpi.Persistent { return mpi.NeighborAlltoallInit(t, in, out) })
}

func (p *Process) neighborAlltoallv(a *args, x *collCall) error {
	t, sources, dests := x.neighbors(8)
	return x.neighborBlocks(t, x.vector(0, 1, 2, 3, dests), x.vector(4, 5, 6, 7, sources))
}

// neighborAlltoallw is MPI_Neighbor_alltoallw, whose displacements are MPI_Aint.
func (p *Process) neighborAlltoallw(a *args, x *collCall) error {
	t, sources, dests := x.neighbors(8)
	return x.neighborBlocks(t, x.various(0, 1, a.longs(2, dests), 3, dests), x.various(4, 5, a.longs(6, sources), 7, sources))
}

// neighborBlocks exchanges blocks that differ.
func (x *collCall) neighborBlocks(t mpi.Topology, sends, recvs []block) error {
	in, slens, soffs := x.blocks(reads, sends)
	out, rlens, roffs := x.blocks(reads|writes, recvs)
	if x.a.err != nil {
		return x.a.err
	}
	return x.run(
		func() error { return mpi.NeighborAlltoallv(t, in, slens, soffs, out, rlens, roffs) },
		func() mpi.Request { return mpi.IneighborAlltoallv(t, in, slens, soffs, out, rlens, roffs) },
		func() *mpi.Persistent { return mpi.NeighborAlltoallvInit(t, in, slens, soffs, out, rlens, roffs) })
}
