package groups

// T2's collectives in the simulator, on the machines that T2 used: with a core for each rank, two
// rails that a message of 4 KB is long for, and more ranks than this machine can run.

import (
	"fmt"
	"slices"
	"strings"
)

// simulatedPlan is T2 chapters 3 to 6.
func simulatedPlan() (groups []*group) {
	ports := []byteSize{size256, size1K, size2K, size4K, size16K, size32K, size64K}
	for _, op := range []struct {
		name    string
		choices []choice
	}{
		{"scatter", []choice{{"tree:ports=2", "binomial", "2-port tree"}, {"direct:ports=2", "binomial", "2-port Direct"}}},
		{"gather", []choice{{"tree:ports=2", "binomial", "2-port tree"}, {"direct:ports=2", "binomial", "2-port Direct"}}},
		{"allgather", []choice{{"direct:ports=2", "ring", "2-port Direct"}, {"standard-exchange:ports=2", "ring", "2-port Standard Exchange"}, {"bruck:ports=2", "ring", "2-port Bruck"}}},
		{"alltoall", []choice{{"direct:ports=2", "pairwise", "2-port Direct"}, {"standard-exchange:ports=2", "pairwise", "2-port Standard Exchange"}, {"bruck:ports=2", "pairwise", "2-port Bruck"}}},
	} {
		for _, nodes := range []int{16, 4} {
			groups = append(groups, simulatedGroup(fmt.Sprintf("sim-ports-%s-%d", op.name, nodes), "Multi-port "+op.name+" on two rails relative to one port", "qsnet2", op.name, 16, nodes, "", ports, op.choices...))
		}
	}
	for _, ranks := range []int{4, 8, 16} {
		groups = append(groups, simulatedGroup(fmt.Sprintf("sim-node-allgather-%d", ranks), "Node-aware allgather relative to Bruck", "qsnet2", "allgather", ranks, 4, "", []byteSize{size64, size256, size1K, size4K, size8K, size32K},
			choice{"node-gather-bcast", "bruck", "Gather and Broadcast"}, choice{"node-groups:groups=1", "bruck", "node-aware Direct"}, choice{"node-bruck", "bruck", "node-aware Bruck"}).withRanks())
	}
	groups = append(groups, simulatedGroup("sim-groups", "Multi-group allgather relative to a single group with several connections, and that to one connection", "connectx", "allgather", 16, 4, "", []byteSize{size16, size64, size256, size1K, size4K, size16K, size64K, size256K},
		choice{"node-spread", "node-groups:groups=1:ports=16", "gather-based"}, choice{"node-groups:groups=2", "node-groups:groups=1:ports=16", "two groups"},
		choice{"node-groups:groups=4", "node-groups:groups=1:ports=16", "four groups"}, choice{"node-groups:groups=1:ports=16", "bruck", "one group over Bruck"}))
	return append(groups, simulatedArrivals()...)
}

// simulatedArrivals is T2 figures 6.5 and 6.8: random arrivals within MIF times the time of a
// message on the machine, also of more ranks than T2 had.
func simulatedArrivals() (groups []*group) {
	alltoall := []choice{{"pap_direct", "pairwise", "pap_direct over pairwise"}, {"pap_direct", "direct:ports=1", "pap_direct over one-port Direct"}, {"pap_shm_direct", "pairwise", "pap_shm_direct over pairwise"}}
	allgather := []choice{{"pap_direct", "recursive-doubling", "pap_direct over recursive doubling"}, {"pap_direct", "direct:ports=1", "pap_direct over one-port Direct"}, {"pap_shm_direct", "recursive-doubling", "pap_shm_direct over recursive doubling"}}
	for _, ranks := range []int{4, 8, 16, 64, 1024} {
		nodes := max(ranks/4, 4)
		const arrival = "--arrival spread:201us" // MIF 32: a message of 8 KB takes 6.3 µs
		for op, choices := range map[string][]choice{"alltoall": alltoall, "allgather": allgather} {
			g := simulatedGroup(fmt.Sprintf("sim-%s-mif-32-%d", op, ranks), "Arrival-aware "+op+" under MIF 32", "connectx", op, ranks, nodes, arrival, []byteSize{size8K}, choices...)
			groups = append(groups, g.withRanks())
		}
	}
	slices.SortFunc(groups, func(a, b *group) int { return strings.Compare(a.title, b.title) })
	return groups
}

// withRanks adds the number of ranks to the titles of the lines.
func (g *group) withRanks() *group {
	for i := range g.lines {
		g.lines[i].title += fmt.Sprintf(", %d ranks", g.ranks)
	}
	return g
}

// requestedName returns the algorithm of the group that the simulator has printed with all of its
// parameters.
func (g *group) requestedName(algorithm string) string {
	for _, l := range g.lines {
		for _, name := range []string{l.protocol, l.over} {
			if name != "" && (algorithm == name || strings.HasPrefix(algorithm, name+":")) {
				return name
			}
		}
	}
	return algorithm
}

// simulatedGroup is a group of one collective by several algorithms in the simulator; sizes are
// those of a block. The machine is one of muster sim.
func simulatedGroup(name, title, machine, op string, ranks, nodes int, more string, sizes []byteSize, choices ...choice) *group {
	var names []string
	for _, c := range choices {
		for _, a := range []string{c.over, c.algorithm} {
			if !strings.Contains(","+strings.Join(names, ",")+",", ","+a+",") {
				names = append(names, a)
			}
		}
	}
	g := &group{
		name: name, title: fmt.Sprintf("%s, simulated, %d ranks on %d nodes, machine %s", title, ranks, nodes, machine), ranks: ranks, simulated: true, direct: true, rounds: 1,
		ours:     strings.TrimSpace(fmt.Sprintf("%s --machine %s --ranks %d --nodes %d --algorithm %s --sizes %s %s", op, machine, ranks, nodes, strings.Join(names, ","), sizeList(sizes), more)),
		quantity: quantity{metric: op, unit: "us", scale: 1, shown: "ratio"},
		note:     "The simulator of Muster (docs/guide/scale.md), on a machine as far as the document describes it. Every rank has a core. Times are means of the ranks, of gather and scatter the time of the last. Figures are ratios of times; below 1 the algorithm is faster than its baseline.",
	}
	for _, s := range sizes {
		for _, c := range choices {
			g.lines = append(g.lines, line{title: s.title + ", " + c.title, size: s.bytes, protocol: c.algorithm, over: c.over})
		}
	}
	return g
}
