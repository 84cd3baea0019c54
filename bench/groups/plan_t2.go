package groups

// The tables of T2, chapters 3 to 6: its algorithms against its own baselines in our library.
// They are about the network, so the cables have 100 Mbit/s: with faster ones the ranks of
// four hosts on one machine wait for its cores instead.

import (
	"fmt"
	"strings"
	"time"

	"github.com/muster-mpi/muster/bench/results"
)

const (
	wireRate = "100mbit"
	onWire   = "The hosts are network namespaces of this machine with two cables of 100 Mbit/s; all ranks share its cores. The algorithms alternate call by call. Figures are ratios of times; below 1 the algorithm is faster than its baseline."
)

func t2Plan() []*group {
	ports := []*group{ // chapter 3, with one rank a host: its ports are rails
		oneAHost("ports-gather", "Gather with two ports relative to the binomial tree", "gather", []byteSize{size1K, size4K, size16K},
			choice{"tree:ports=2", "binomial", "2-port tree"}, choice{"direct:ports=2", "binomial", "2-port Direct"}),
		oneAHost("ports-scatter", "Scatter with two ports relative to the binomial tree", "scatter", []byteSize{size1K, size4K, size16K},
			choice{"tree:ports=2", "binomial", "2-port tree"}, choice{"direct:ports=2", "binomial", "2-port Direct"}),
		oneAHost("ports-allgather", "Allgather with two ports relative to the ring", "allgather", []byteSize{size4K, size32K},
			choice{"direct:ports=2", "ring", "2-port Direct"}, choice{"standard-exchange:ports=2", "ring", "2-port Standard Exchange"}, choice{"bruck:ports=2", "ring", "2-port Bruck"}),
		oneAHost("ports-alltoall", "Alltoall with two ports relative to pairwise exchange", "alltoall", []byteSize{size256, size2K, size16K},
			choice{"direct:ports=2", "pairwise", "2-port Direct"}, choice{"standard-exchange:ports=2", "pairwise", "2-port Standard Exchange"}, choice{"bruck:ports=2", "pairwise", "2-port Bruck"}),
		twoRailsCollective("rails-allgather", "allgather", size256K, size1M), twoRailsCollective("rails-alltoall", "alltoall", size64K, size256K),
		twoRailsCollective("rails-bcast", "bcast", size256K, size1M), twoRailsCollective("rails-gather", "gather", size256K, size1M), twoRailsCollective("rails-scatter", "scatter", size256K, size1M),
	}
	const bound = "four ranks need as many steps with two ports as T2's equations 3.1 to 3.3 count, which allow ×%s"
	ports[0].claims = []results.Claim{{Source: "t2", Where: "3.6.2", Text: "multi-port gather ×2.15 at 4 KB", Rows: "^4 KB, 2-port tree", Op: results.AtMost, Limit: 0.465, Bound: fmt.Sprintf(bound, "2.0")}}
	ports[2].claims = []results.Claim{{Source: "t2", Where: "3.6.3", Text: "multi-port Direct allgather ×1.49 at 32 KB", Rows: "^32 KB, 2-port Direct", Op: results.AtMost, Limit: 0.671, Bound: fmt.Sprintf(bound, "1.5")}}
	ports[3].claims = []results.Claim{{Source: "t2", Where: "3.6.4", Text: "multi-port Direct alltoall ×2.26 at 2 KB", Rows: "^2 KB, 2-port Direct", Op: results.AtMost, Limit: 0.442, Bound: fmt.Sprintf(bound, "1.5")}}
	bruck := algorithms("node-bruck", "Node-aware Bruck relative to Bruck, allgather", "allgather", []byteSize{size1K, size4K, size8K}, nil, nil, // chapter 4
		choice{"node-bruck", "bruck", "node-aware Bruck"})
	bruck.bind("4 KB, node-aware Bruck", 0.4)
	bruck.claims = []results.Claim{{Source: "t2", Where: "4.5", Text: "node-aware Bruck allgather ×1.96 at 4 KB", Rows: "^4 KB", Op: results.AtMost, Limit: 0.51}}
	groups := algorithms("node-groups", "Multi-group allgather relative to a single group, to Bruck and to the default", "allgather", []byteSize{size16, size1K, size16K}, nil, nil, // chapter 5
		choice{"node-spread", "node-groups:groups=1", "gather-based"}, choice{"node-groups:groups=2", "node-groups:groups=1", "two groups"}, choice{"node-groups:groups=4", "node-groups:groups=1", "four groups"},
		choice{"node-groups:groups=1", "bruck", "one group over Bruck"}, choice{"default", "node-groups:groups=1", "default over one group"})
	const cores = "16 ranks have two cores, and the gain comes from a core for each: simulated (sim-groups), gather-based is faster"
	groups.claims = []results.Claim{
		{Source: "t2", Where: "5.6", Text: "gather-based faster than one group up to 32 B", Rows: "^16 B, gather-based", Op: results.AtMost, Limit: 1, Bound: cores},
		{Source: "t2", Where: "5.6", Text: "one group faster than the others at 64 B–2 KB", Rows: "^1 KB, (gather-based|two groups|four groups)", Op: results.AtLeast, Limit: 1},
		{Source: "t2", Where: "5.6", Text: "two groups faster than one at 4–64 KB", Rows: "^16 KB, two groups", Op: results.AtMost, Limit: 1},
	}
	return append(append(ports, bruck, groups), arrivalPlan()...)
}

// arrivalPlan is chapter 6. The factors are those of the mean time over MVAPICH (6.5.1,
// 6.5.2), whose algorithms were pairwise exchange, Bruck and recursive doubling.
func arrivalPlan() []*group {
	sizes, late := []byteSize{size4, size8K}, []int{25, 75}
	alltoall := []choice{
		{"pap_direct", "pairwise", "pap_direct over pairwise"}, {"pap_direct", "bruck", "pap_direct over Bruck"}, {"pap_direct", "direct", "pap_direct over direct"},
		{"pap_shm_direct", "pairwise", "pap_shm_direct over pairwise"}, {"pap_shm_direct", "bruck", "pap_shm_direct over Bruck"},
	}
	allgather := []choice{
		{"pap_direct", "recursive-doubling", "pap_direct over recursive doubling"}, {"pap_direct", "ring", "pap_direct over ring"}, {"pap_direct", "direct", "pap_direct over direct"},
		{"pap_shm_direct", "recursive-doubling", "pap_shm_direct over recursive doubling"}, {"pap_shm_direct", "bruck", "pap_shm_direct over Bruck"}, {"pap_shm_direct", "ring", "pap_shm_direct over ring"},
	}
	one := algorithms("aware-alltoall", "Arrival-aware alltoall relative to T2's baselines", "alltoall", sizes, []int{0, 1, 32, 128, 512}, nil, alltoall...)
	one.bind("8 KB, pap_direct over pairwise, MIF 32", 0.32)
	one.bind("4 B, pap_shm_direct over pairwise, MIF 32", 0.29)
	two := algorithms("aware-allgather", "Arrival-aware allgather relative to T2's baselines", "allgather", sizes, []int{0, 1, 32, 128, 512}, nil, allgather...)
	two.bind("8 KB, pap_direct over recursive doubling, MIF 32", 0.32)
	two.bind("4 B, pap_shm_direct over recursive doubling, MIF 32", 0.4)
	one.claims = []results.Claim{
		{Source: "t2", Where: "6.5.1", Text: "arrival-aware alltoall ×3.1 at 8 KB, MIF 32", Rows: "^8 KB, pap_direct over pairwise, MIF 32$", Op: results.AtMost, Limit: 0.32, Bound: lastArrival},
		{Source: "t2", Where: "6.5.1", Text: "arrival- and node-aware alltoall ×3.5 at 4 B, MIF 32", Rows: "^4 B, pap_shm_direct over pairwise, MIF 32$", Op: results.AtMost, Limit: 0.29, Bound: lastArrival},
	}
	two.claims = []results.Claim{{Source: "t2", Where: "6.5.2", Text: "arrival- and node-aware allgather ×2.5 at 4 B, MIF 32", Rows: "^4 B, pap_shm_direct over recursive doubling, MIF 32$", Op: results.AtMost, Limit: 0.4, Bound: lastArrival}}
	unawareAlltoall, unawareAllgather := unawareGroup("alltoall"), unawareGroup("allgather")
	unawareAlltoall.claims = []results.Claim{{Source: "t2", Where: "6.5", Text: "arrival-aware faster than Direct, which sends by rendezvous to one rank at a time", Tables: "unaware-*", Rows: "MIF (32|128|512)$", Op: results.AtMost, Limit: 1}}
	for _, g := range []*group{one, two} { // nobody is late
		g.bind("4 B, pap_direct over direct, MIF 0", 1.02)
		g.bind("8 KB, pap_direct over direct, MIF 0", 1.02)
	}
	return []*group{one, two, unawareAlltoall, unawareAllgather,
		algorithms("late-alltoall", "Arrival-aware alltoall relative to T2's baselines when a share of the ranks is late", "alltoall", sizes, []int{128}, late, alltoall...),
		algorithms("late-allgather", "Arrival-aware allgather relative to T2's baselines when a share of the ranks is late", "allgather", sizes, []int{128}, late, allgather...),
	}
}

// lastArrival bounds the mean time in a call under an arrival pattern.
const lastArrival = "a rank waits for the last one in any algorithm, and mean times contain that (coll-mif-bound)"

// unawareGroup compares with T2's Direct, in which a send waits until its receiver has arrived. Our
// direct starts all messages at once, and short messages do not wait for a receiver.
func unawareGroup(op string) *group {
	g := algorithms("unaware-"+op, "Arrival-aware "+op+" by rendezvous relative to Direct with one message at a time", op, []byteSize{size8K}, []int{0, 32, 128, 512}, nil,
		choice{"pap_direct", "direct:ports=1", "pap_direct over one-port Direct"})
	g.env = []string{"MUSTER_EAGER_LIMIT=1024"}
	g.note += " Messages above 1 KB are sent by rendezvous."
	return g
}

// twoRailsCollective compares a collective of long messages on two rails with one (T2 3.6).
func twoRailsCollective(name, op string, sizes ...byteSize) *group {
	g := &group{
		name: name, title: "Time of " + op + " on two rails relative to one, 16 ranks on 4 hosts, 100 Mbit/s each", ranks: 16, transport: fourHosts(wireRate), limit: 3 * time.Minute,
		peers: []contender{oneRail}, ours: fmt.Sprintf("coll --op %s --sizes %s --mif 0 --iterations 5 --away sleep", op, sizeList(sizes)),
		quantity: quantity{unit: "us", scale: 1e-3, shown: "ms"}, note: onWire,
	}
	for _, s := range sizes {
		g.lines = append(g.lines, line{title: s.title, size: s.bytes, metric: op + "/mif-0/mean", bound: 0.556})
	}
	return g
}

// choice is an algorithm, the one that it is compared with, and its name in the table.
type choice struct{ algorithm, over, title string }

// algorithms is a group about the mean time of one collective by several algorithms, under
// arrival patterns if there are factors. late are shares of the ranks in percent; none: random
// arrivals.
func algorithms(name, title, op string, sizes []byteSize, factors, late []int, choices ...choice) *group {
	var names []string
	seen := map[string]bool{}
	for _, c := range choices {
		for _, a := range []string{c.over, c.algorithm} {
			if !seen[a] {
				names, seen[a] = append(names, a), true
			}
		}
	}
	patterns, flags := [][2]string{{"mif-0", ""}}, "--mif 0"
	if len(factors) > 0 {
		patterns, flags = nil, "--mif "+listOf("%d", factors)
		for _, f := range factors {
			if len(late) == 0 {
				patterns = append(patterns, [2]string{fmt.Sprintf("mif-%d", f), fmt.Sprintf(", MIF %d", f)})
			}
			for _, share := range late {
				patterns = append(patterns, [2]string{fmt.Sprintf("mif-%d-late-%d", f, share), fmt.Sprintf(", MIF %d, %d %% late", f, share)})
			}
		}
	}
	if len(late) > 0 {
		flags += " --late " + listOf("%d%%", late)
	}
	g := &group{
		name: name, title: title + ", mean time, 16 ranks on 4 hosts, 100 Mbit/s", ranks: 16, transport: fourHosts(wireRate), limit: 3 * time.Minute,
		ours:     fmt.Sprintf("coll --op %s --sizes %s %s --algorithm %s --budget 200ms --away sleep", op, sizeList(sizes), flags, strings.Join(names, ",")),
		quantity: quantity{unit: "us", scale: 1, shown: "ratio"}, note: onWire,
	}
	for _, p := range patterns {
		for _, s := range sizes {
			for _, c := range choices {
				g.lines = append(g.lines, line{title: s.title + ", " + c.title + p[1], size: s.bytes, metric: fmt.Sprintf("%s/%s/mean", op, p[0]), protocol: c.algorithm, over: c.over})
			}
		}
	}
	return g
}

// oneAHost is a group like those of algorithms, with four ranks.
func oneAHost(name, title, op string, sizes []byteSize, choices ...choice) *group {
	g := algorithms(name, title, op, sizes, nil, nil, choices...)
	g.ranks, g.title = 4, title+", mean time, 4 ranks on 4 hosts, 100 Mbit/s"
	return g
}

// bind sets the bound of a line.
func (g *group) bind(title string, bound float64) {
	for i := range g.lines {
		if g.lines[i].title == title {
			g.lines[i].bound = bound
			return
		}
	}
	panic(fmt.Sprintf("%s has no line %q", g.name, title))
}
