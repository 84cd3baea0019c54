package bench

import "github.com/muster-mpi/muster/mpi"

// neighborhoodBenchmarks returns those of neighborhood collectives (MPI-4.1 section 8.6) on a
// periodic grid of two dimensions, in which every rank has four neighbors.
func neighborhoodBenchmarks() []Benchmark {
	var list []Benchmark
	for _, k := range []struct {
		name, title string
		outgoing    int // blocks that a rank sends
		call        func(g *mpi.Cart, in, out []byte) error
	}{
		{"neighbor-allgather", "Neighborhood Allgather", 1, func(g *mpi.Cart, in, out []byte) error { return mpi.NeighborAllgather(g, in, out) }},
		{"neighbor-alltoall", "Neighborhood All-to-All", 4, func(g *mpi.Cart, in, out []byte) error { return mpi.NeighborAlltoall(g, in, out) }},
	} {
		list = append(list, Benchmark{Name: k.name, Title: k.title + " Latency Test", Doc: "time of " + k.name + " on a periodic grid of two dimensions, mean over ranks", Ranks: 4, AnyRanks: true, Devices: true,
			Sizes: powers[:21], Metric: "latency", Unit: "us", Column: "Latency (us)",
			Run: func(c *mpi.Comm, p *Params, emit func(Result)) error {
				dims, err := mpi.DimsCreate(c.Size(), []int{0, 0})
				if err != nil {
					return err
				}
				grid, err := c.CartCreate(dims, []bool{true, true}, nil)
				if err != nil {
					return err
				}
				defer grid.Free()
				for _, size := range p.Sizes {
					in, _ := buffers(k.outgoing * size)
					_, out := buffers(4 * size)
					r, err := timeCalls(c, p, size, func() error { return k.call(grid, in, out) })
					if err != nil {
						return err
					}
					emit(r)
				}
				return nil
			}})
	}
	return list
}
