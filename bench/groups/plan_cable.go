package groups

// The software network on cables of several kinds: without a limit and at 10 Gbit/s, with
// two rails, with loss, with a short queue in the switch; and its processor time. Two hosts,
// or four with four ranks each.

import (
	"fmt"
	"math"
	"time"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/bench/results"
)

func cablePlan() []*group {
	groups := []*group{
		cableBandwidth("cable-bw", "an unlimited cable", "", "hybrid", 20, 1.1, 1, 1, 1),
		cableBandwidth("cable-bw-rd", "an unlimited cable", "", "rd", 20, 1.1, 1, 1, 1),
		cableBandwidth("cable10-bw", "a cable of 10 Gbit/s", "10gbit", "hybrid", 10, 1, 1, 1, 1),
		cableBandwidth("cable10-bw-rd", "a cable of 10 Gbit/s", "10gbit", "rd", 10, 1, 1, 1, 1),
	}
	groups[0].claims = []results.Claim{{Text: "two hosts: bandwidth of unlimited cables and of 10 Gbit/s, also relative to bare UDP", Tables: "cable-bw,cable-bw-rd,cable10-bw,cable10-bw-rd"}}
	return groups
}

// railPlan is about processor time, rails, loss and queues.
func railPlan() []*group {
	one, both := twoRails("rails-bw", "one way", "bw"), twoRails("rails-bibw", "both ways", "bibw")
	one.claims = []results.Claim{{Text: "two hosts: bandwidth of two rails relative to one", Tables: "rails-bw,rails-bibw"}}
	return []*group{cpuOfMessage(), cpuOfAlltoall(), one, both, lossyBandwidth(), shortQueue(), reductionTail()}
}

// cableBandwidth compares one channel with the better peer, and with UDP driven bare.
func cableBandwidth(name, cable, rate, channel string, windows int, bounds ...float64) *group {
	sizes := []byteSize{size8K, size64K, size1M, size4M}
	g := onTwoHosts(group{
		name: name, title: fmt.Sprintf("Bandwidth between two hosts on %s, window of 64, channel %s", cable, channel), quantity: bandwidthMB,
	}.loop("bw", windows, bounds, sizes...))
	g.rate, g.channel, g.alone = rate, channel, true
	g.peers = append(g.peers, bareUDP)
	for i := range g.lines {
		g.lines[i].peers = []contender{openMPI, mpich}
	}
	for _, s := range sizes {
		g.lines = append(g.lines, line{title: s.title + ", against UDP", size: s.bytes, bound: 0.7, peers: []contender{bareUDP}})
	}
	g.note = "The hosts are network namespaces of this machine; both ranks share its cores. The peers use TCP. UDP bare is a program in C that sends and receives with segmentation offload, without headers, checksums or retransmission."
	return g
}

// cpuOfMessage compares processor time, which load on the machine hardly changes.
func cpuOfMessage() *group {
	g := onTwoHosts(group{
		name: "cpu", title: "Processor time of a message of 8 KB, sender and receiver, two hosts",
		quantity: quantity{metric: "cpu", unit: "us", scale: 1, shown: "µs"},
		claims:   []results.Claim{{Text: "two hosts: processor time of a message of 8 KB, also in alltoall", Tables: "cpu,cpu-alltoall"}},
	}.loop("cpu", 0, []float64{0.9}, size8K))
	g.rate, g.peers = "", []contender{openMPI}
	g.note = "User and system time of both processes. Polling and yielding are not work, and libraries differ in them, so no rank waits: the sender sends 16 messages and sleeps, the receiver sleeps until they have arrived, and the time of periods with one message is subtracted, because waking up is not work either. The cable is unlimited: then the kernel works for a message within calls of the two processes, and not in a timer of the cable."
	return g
}

// cpuOfAlltoall is the same for ranks that share cores and are in the library all the time.
func cpuOfAlltoall() *group {
	g := skewGroup("cpu-alltoall", "Processor time of a message of 8 KB in alltoall", nil, nil, nil, nil)
	g.args, g.ours, g.metric = "stalls -s 8192 -i 1000", "stalls --sizes 8192 --iterations 1000", "cpu"
	g.lines = []line{{title: "8 KB", size: 8 << 10, bound: 0.9}}
	g.note = onLabColl + " User and system time of all ranks, divided by the number of messages; a fifth of them stay within a host. A rank that waits yields to one that works, so little of the time is waiting."
	return g
}

// twoRails compares ours on two rails with ours on one.
func twoRails(name, ways, loop string) *group {
	sizes := []byteSize{size2K, size64K, size1M}
	g := onTwoHosts(&group{
		name: name, title: "Bandwidth of two rails relative to one, " + ways + ", two hosts, window of 64, 1 Gbit/s each", transport: transport{rails: 2},
		ours:     fmt.Sprintf("%s --sizes %s --iterations 16", loop, sizeList(sizes)),
		quantity: bandwidthMB, lines: sizeLines([]float64{1.9, 1.9, 1.9}, sizes...),
	})
	g.peers = []contender{oneRail}
	return g
}

// linkShare is the payload that a cable of 1 Gbit/s carries in packets of 1500 bytes, MB/s,
// and the share of it that must be reached with loss.
const (
	linkPayload = 125 * 1472.0 / 1538
	linkShare   = 0.9
)

func lossyBandwidth() *group {
	g := onTwoHosts(group{
		name: "loss-bw", title: "Bandwidth of reliable datagrams with 1 % loss, two hosts, window of 64, 1 Gbit/s", transport: transport{loss: 0.01}, beside: true,
		quantity: bandwidthMB,
		claims:   []results.Claim{{Text: "two hosts: bandwidth with 1 % loss, MB/s"}},
	}.loop("bw", 8, []float64{math.Floor(10*linkShare*linkPayload) / 10}, size1M))
	g.channel, g.peers = "rd", []contender{openMPI}
	g.note += fmt.Sprintf(" Packets are lost at random. The bound is %g of what the cable carries, %.1f MB/s.", linkShare, linkPayload)
	return g
}

// shortQueue is an incast: four hosts with a queue of 1 ms in front of each. It is to be
// compared with an earlier build (-before).
func shortQueue() *group {
	g := skewGroup("queue-allgather", "Time of allgather on one rail with a queue of 128 KB in the switch, from the last arrival to the last exit", []string{"allgather"}, []skewSize{skew1M}, []int{1}, []int{0})
	g.rails, g.queue, g.limit, g.beside = 1, 128<<10, 2*time.Minute, true
	g.lines = []line{{title: "1 MB", size: 1 << 20, metric: "allgather/mif-1/tail", bound: unbound}}
	return g
}

// reductionTail is the part of coll-lab-reduce and coll-lab-allreduce that is measured most
// often.
func reductionTail() *group {
	ops := []string{"reduce", "allreduce"}
	g := skewGroup("tail-reduce", "Time of reductions of 64 KB from the last arrival to the last exit", ops, []skewSize{skew64K}, []int{1}, []int{0})
	g.claims = []results.Claim{{Text: "four hosts: reductions of 64 KB after the last arrival"}}
	for _, op := range ops {
		g.lines = append(g.lines, line{title: op + " 64 KB, MIF 1", size: 64 << 10, metric: op + "/mif-1/tail", bound: 0.9})
	}
	return g
}

// stallPlan is about rounds that take much longer than the others. The three groups show
// figures of the same runs.
func stallPlan() []*group {
	const rounds = 10_000
	one := func(name, title, unit, shown string, lines ...line) *group {
		g := &group{
			name: name, title: title + fmt.Sprintf(", %d alltoalls of 8 KB, 16 ranks on 4 hosts, no loss", rounds), ranks: 16, transport: fourHosts(labRate),
			limit: 5 * time.Minute, rounds: 3, peers: []contender{openMPI}, beside: true,
			args: fmt.Sprintf("stalls -s 8192 -i %d", rounds), ours: fmt.Sprintf("stalls --sizes 8192 --iterations %d", rounds),
			quantity: quantity{unit: unit, scale: 1, shown: shown}, lines: lines,
			note: onLabColl + " The time of a round is that of the rank that is longest in it. Rounds of Muster that overlap a pause of a core are not judged but counted; all rounds of Open MPI are.",
		}
		for i := range g.lines {
			g.lines[i].size = 8 << 10
		}
		return g
	}
	count := one("stalls", "Stalled rounds", "rounds", "rounds",
		line{title: "above 5 × the median", metric: "stalled", bound: 10},
		line{title: "above 20 ms", metric: "above-limit", bound: unbound})
	times := one("stalls-time", "Times of rounds", "us", "µs",
		line{title: "median", metric: "round", bound: unbound},
		line{title: "p99", metric: "round-p99", bound: unbound},
		line{title: "maximum", metric: "round-max", bound: 20_000})
	causes := one("stalls-causes", "Counters of the causes of stalls, sum over ranks", "rounds", "events",
		line{title: "rounds not judged: a core paused", metric: "paused", bound: unbound},
		line{title: "of these above 5 × the median", metric: "paused-stalled", bound: unbound})
	causes.peers, causes.beside = nil, false
	count.claims = []results.Claim{{Text: "four hosts: stalled rounds among 10,000"}}
	times.claims = []results.Claim{{Text: "four hosts: longest of these rounds, µs"}}
	for _, name := range bench.StallCauses() {
		causes.lines = append(causes.lines, line{title: string(name), size: 8 << 10, metric: string(name), bound: unbound})
	}
	return []*group{count, times, causes}
}
