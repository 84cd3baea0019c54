package groups

// Collectives: five of them on two ranks with a core each, four on sixteen ranks that share
// the cores, and the overlap of two non-blocking ones. The loops are those of
// loops/collective.c and of `muster bench`.

import "fmt"

func collectivePlan() []*group {
	var groups []*group
	for _, name := range []string{"barrier", "bcast", "allreduce", "allgather", "alltoall"} {
		two := collectiveGroup(name, 2, []contender{openMPI, mpich}, 1)
		groups = append(groups, two)
		if name == "barrier" {
			continue // group barrier has 16 ranks
		}
		many := collectiveGroup(name, 16, []contender{openMPI}, 0.5)
		many.note = "Open MPI runs with mpi_yield_when_idle. MPICH is left out: it does not yield."
		groups = append(groups, many)
	}
	for _, name := range []string{"iallreduce", "iallgather"} {
		groups = append(groups, &group{
			name: "coll-" + name, title: "Share of a non-blocking " + name[1:] + " of 1 MB that a computation of its length hides, two ranks, shared memory", ranks: 2,
			peers: []contender{openMPI, mpich}, beside: true, note: "By OSU's definition: 100 − 100 × (overall − computation) / alone, not below 0.",
			args: name + " -s 1048576", ours: name + " --sizes 1048576",
			metric: "overlap", unit: "%", scale: 1, shown: "%", largerBetter: true,
			lines: []line{{title: "1 MB", size: 1 << 20, bound: unbound}},
		})
	}
	return groups
}

// collectiveGroup returns the group of one blocking collective.
func collectiveGroup(name string, ranks int, peers []contender, bound float64) *group {
	g := &group{
		name: fmt.Sprintf("coll-%s-%d", name, ranks), title: fmt.Sprintf("Time of %s, %d ranks, shared memory", name, ranks), ranks: ranks, peers: peers,
		args: name, ours: name, metric: "latency", unit: "us", scale: 1, shown: "µs",
	}
	if name == "barrier" {
		g.lines = []line{{title: "barrier", size: 0, bound: bound}}
		return g
	}
	g.lines = []line{{title: "8 B", size: 8, bound: bound}, {title: "8 KB", size: 8 << 10, bound: bound}}
	sizes := "8,8192"
	if ranks == 2 {
		g.lines = append(g.lines, line{title: "1 MB", size: 1 << 20, bound: bound})
		sizes += ",1048576"
	}
	g.args += " -s " + sizes
	g.ours += " --sizes " + sizes
	return g
}
