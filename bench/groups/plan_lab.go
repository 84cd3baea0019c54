package groups

// Hosts with slow cables: two for point-to-point messages, and four with two cables and
// four ranks each for collectives with process arrival patterns (T2 6.3, 6.5). The loops are
// those of loops/peers.c, rendezvous.c and skew.c.

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/muster-mpi/muster/bench/results"
)

const (
	labRate   = "1gbit"
	onLab     = "The hosts are network namespaces of this machine with cables of 1 Gbit/s; all ranks share its cores. The peers use TCP, and shared memory within a host; ours uses software iWARP by default."
	onLabColl = onLab + " Each host has two cables, and all libraries may use both. Open MPI runs with mpi_yield_when_idle. MPICH is left out: it does not yield, and takes a hundred times as long when ranks outnumber cores."
)

func labPlan() []*group {
	return []*group{
		onTwoHosts(group{
			name: "lab-latency", title: "Half round trip between two hosts, 1 Gbit/s",
			quantity: latencyMicros,
			claims:   []results.Claim{{Text: "two hosts: latency", Tables: "lab-latency,lab-latency-long"}},
		}.loop("latency", 10000, []float64{0.9, 1, 1}, size8, size1K, size8K)),
		onTwoHosts(group{
			name: "lab-latency-long", title: "Half round trip of long messages between two hosts, 1 Gbit/s",
			quantity: latencyMicros,
		}.loop("latency", 100, []float64{1, 1}, size64K, size1M)),
		onTwoHosts(group{
			name: "lab-bw", title: "Bandwidth between two hosts, window of 64, 1 Gbit/s",
			quantity: bandwidthMB,
			claims:   []results.Claim{{Text: "two hosts: bandwidth, both directions, two rails", Tables: "lab-bw,lab-bibw,lab-rails"}},
		}.loop("bw", 8, []float64{1, 1, 1}, size2K, size64K, size1M)),
		onTwoHosts(group{
			name: "lab-bibw", title: "Bandwidth in both directions between two hosts, window of 64, 1 Gbit/s",
			quantity: bandwidthMB,
		}.loop("bibw", 8, []float64{1, 1, 1}, size2K, size64K, size1M)),
		onTwoHosts(group{
			name: "lab-rails", title: "Bandwidth between two hosts with two cables, window of 64, 1 Gbit/s each", transport: transport{rails: 2},
			quantity: bandwidthMB,
		}.loop("bw", 8, []float64{1, 1, 1}, size2K, size64K, size1M)),
		onTwoHosts(&group{
			name: "lab-overlap", title: "Share of a transfer of 1 MB that a computation hides, two hosts, 1 Gbit/s", beside: true, protocols: true, rounds: 3, note: hiddenNote,
			args: "overlap -s 1048576 -i 5", ours: "overlap --sizes 1048576 --iterations 5",
			quantity: percentMore, lines: lengthLines(receiveLines(95)),
		}),
	}
}

func onTwoHosts(g *group) *group {
	g.ranks, g.over, g.hosts, g.rate, g.channel, g.limit = 2, hosts, 2, labRate, "hybrid", time.Minute
	g.peers, g.note, g.rails = []contender{openMPI, mpich}, strings.TrimSpace(onLab+" "+g.note), max(g.rails, 1)
	return g
}

// receiveLines returns a line for each timing scenario; those of the receive side have the
// bound.
func receiveLines(bound float64) []line {
	var lines []line
	for _, side := range overlapSides {
		l := line{title: side.title, size: 1 << 20, metric: side.metric, bound: unbound}
		if strings.HasPrefix(side.metric, "recv") {
			l.bound = bound
		}
		lines = append(lines, l)
	}
	return lines
}

// lengthLines adds the shorter computations and P2's growing one.
func lengthLines(lines []line) []line {
	for _, side := range overlapSides {
		for _, c := range []overlapSide{{"/hidden-25", "computation of 0.25"}, {"/hidden-50", "computation of 0.5"}, {"/growing", "growing"}} {
			lines = append(lines, line{title: side.title + ", " + c.title, size: 1 << 20, metric: side.metric + c.metric, bound: unbound})
		}
	}
	return lines
}

// skewSize is a size of collectives and the assumed time of its message, so that delays are
// the same for all libraries. The time is that of a cable of 1 Gbit/s: 30 µs and 8 ns per
// byte.
type skewSize struct {
	title   string
	bytes   int
	message int // µs
}

var (
	skew4B, skew256B  = skewSize{"4 B", 4, 30}, skewSize{"256 B", 256, 32}
	skew1K, skew8K    = skewSize{"1 KB", 1 << 10, 38}, skewSize{"8 KB", 8 << 10, 96}
	skew64K, skew256K = skewSize{"64 KB", 64 << 10, 554}, skewSize{"256 KB", 256 << 10, 2100}
	skew1M, skew4M    = skewSize{"1 MB", 1 << 20, 8400}, skewSize{"4 MB", 4 << 20, 33600}
)

// skewGroup returns a group of collectives with process arrival patterns; late is in percent,
// 0 for random arrivals.
func skewGroup(name, title string, ops []string, sizes []skewSize, mif, late []int) *group {
	var (
		bytes, times []int
		ourLate      []string
	)
	for _, s := range sizes {
		bytes, times = append(bytes, s.bytes), append(times, s.message)
	}
	for _, l := range late {
		if l == 0 {
			ourLate = append(ourLate, "random")
		} else {
			ourLate = append(ourLate, fmt.Sprintf("%d%%", l))
		}
	}
	return &group{
		name: name, title: title + ", 16 ranks on 4 hosts", ranks: 16, transport: fourHosts(labRate),
		limit: time.Minute, peers: []contender{openMPI},
		args:     fmt.Sprintf("coll -o %s -s %s -m %s -f %s -l %s -b 200 -a", strings.Join(ops, ","), listOf("%d", bytes), listOf("%d", times), listOf("%d", mif), listOf("%d", late)),
		ours:     fmt.Sprintf("coll --op %s --sizes %s --message %s --mif %s --late %s --budget 200ms --away sleep", strings.Join(ops, ","), listOf("%d", bytes), listOf("%dus", times), listOf("%d", mif), strings.Join(ourLate, ",")),
		quantity: micros, note: onLabColl + " Before each call, after a barrier, a rank sleeps for a random time of at most MIF times that of a message; the same for all libraries.",
	}
}

// skewPlan measures what T2 6.5 does: the mean time in the call, to which its factors
// apply; the time after the last arrival; and the mean relative to its lower bound.
func skewPlan() []*group {
	ops, sizes := []string{"alltoall", "allgather"}, []skewSize{skew4B, skew8K}
	tail := skewGroup("coll-mif-tail", "Time from the last arrival to the last exit", ops, sizes, []int{32, 512}, []int{0})
	mean := skewGroup("coll-mif-mean", "Mean time in the call", ops, sizes, []int{32, 512}, []int{0})
	bound := skewGroup("coll-mif-bound", "Mean time in the call relative to the mean wait for the last arrival", ops, sizes, []int{32, 512}, []int{0})
	late := skewGroup("coll-mif-late", "Time from the last arrival to the last exit when a share of the ranks is late", ops, sizes, []int{128}, []int{25, 75})
	bound.unit, bound.shown, bound.beside = "ratio", "ratio", true
	// T2's factors over MVAPICH, of the mean time (6.5.1, 6.5.2).
	factors := map[string]float64{
		"alltoall/mif-32 4": 3.5, "alltoall/mif-32 8192": 3.1, "alltoall/mif-512 4": 1.2, "alltoall/mif-512 8192": 1.5,
		"allgather/mif-32 4": 2.5, "allgather/mif-32 8192": 3.1, "allgather/mif-512 4": 1.2, "allgather/mif-512 8192": 1.3,
	}
	for _, op := range ops {
		for _, s := range sizes {
			for _, mif := range []int{32, 512} {
				pattern := fmt.Sprintf("%s/mif-%d", op, mif)
				l := line{title: fmt.Sprintf("%s %s, MIF %d", op, s.title, mif), size: int64(s.bytes), bound: 1}
				l.metric = pattern + "/tail"
				tail.lines = append(tail.lines, l)
				l.metric, l.bound = pattern+"/mean", math.Round(100/factors[fmt.Sprint(pattern, " ", s.bytes)])/100
				mean.lines = append(mean.lines, l)
				l.metric, l.bound = pattern+"/mean-by-bound", 1.15
				bound.lines = append(bound.lines, l)
			}
			for _, share := range []int{25, 75} {
				late.lines = append(late.lines, line{title: fmt.Sprintf("%s %s, MIF 128, %d %% late", op, s.title, share), size: int64(s.bytes),
					metric: fmt.Sprintf("%s/mif-128-late-%d/tail", op, share), bound: 1})
			}
		}
	}
	mean.claims = []results.Claim{
		{Source: "t2", Where: "6.5.1", Text: "alltoall, mean time: ×3.1 at 8 KB and ×3.5 at 4 B (MIF 32), ×1.5 and ×1.2 (MIF 512)", Rows: "^alltoall", Bound: lastArrival + ": at most ×1.6, ×1.3 and ×1.1, ×1.0 against Open MPI here"},
		{Source: "t2", Where: "6.5.2", Text: "allgather: ×3.1 at 8 KB and ×2.5 at 1 B (MIF 32), ×1.3 and ×1.2 (MIF 512)", Rows: "^allgather", Bound: lastArrival + ": at most ×1.7, ×1.8 and ×1.0, ×1.1 against Open MPI here"},
	}
	bound.claims = []results.Claim{{Text: "four hosts: mean time under arrival patterns relative to the wait for the last arrival"}}
	late.claims = []results.Claim{{Source: "t2", Where: "6.5.1", Text: "25 % or 75 % late: faster"}}
	return []*group{tail, mean, bound, late}
}
