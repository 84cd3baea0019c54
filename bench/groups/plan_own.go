package groups

import (
	"fmt"
	"strings"
	"time"

	"github.com/muster-mpi/muster/bench/results"
	"github.com/muster-mpi/muster/prof"
)

// The groups of this file compare Muster with itself: with and without a technique, by
// one channel or another, by one algorithm or another. "muster bench" alternates
// between the settings within a run.

type byteSize struct {
	title string
	bytes int64
}

var (
	size4, size8, size16      = byteSize{"4 B", 4}, byteSize{"8 B", 8}, byteSize{"16 B", 16}
	size64, size256           = byteSize{"64 B", 64}, byteSize{"256 B", 256}
	size1K, size2K, size4K    = byteSize{"1 KB", 1 << 10}, byteSize{"2 KB", 2 << 10}, byteSize{"4 KB", 4 << 10}
	size8K, size16K, size32K  = byteSize{"8 KB", 8 << 10}, byteSize{"16 KB", 16 << 10}, byteSize{"32 KB", 32 << 10}
	size64K, size256K, size1M = byteSize{"64 KB", 64 << 10}, byteSize{"256 KB", 256 << 10}, byteSize{"1 MB", 1 << 20}
	size4M, size256M, size1G  = byteSize{"4 MB", 4 << 20}, byteSize{"256 MB", 256 << 20}, byteSize{"1 GB", 1 << 30}
)

// sizeList is for the flag --sizes.
func sizeList(sizes []byteSize) string {
	var bytes []int64
	for _, s := range sizes {
		bytes = append(bytes, s.bytes)
	}
	return listOf("%d", bytes)
}

// listOf returns values in a format, for a flag that takes a list.
func listOf[T any](format string, values []T) string {
	var list []string
	for _, v := range values {
		list = append(list, fmt.Sprintf(format, v))
	}
	return strings.Join(list, ",")
}

// speculationOverhead is T1 4.4.3 and the loop of CG in 4.4.2.
func speculationOverhead() *group {
	sizes := []byteSize{size1K, size8K, size64K, size256K, size1M}
	g := &group{
		name: "rndv-overhead", title: "Cost of speculation without benefit, relative to none, two ranks, shared memory", ranks: 2, direct: true,
		ours: "rndv-overhead --protocol off,auto,spec --rounds 1 --sizes " + sizeList(sizes), quantity: percent,
		note: "crossing: every RTR crosses an RTS and is unused. cg: the pattern of NAS CG. auto adapts, spec always speculates. control: all control packets of mixed messages, as a share of the data.",
		claims: []results.Claim{
			{Source: "t1", Where: "4.4.3", Text: "unused RTRs cost below 1 % (eager)", Rows: "^crossing, (1|8) KB, auto", Op: results.AtMost, Limit: 1},
			{Source: "t1", Where: "4.4.3", Text: "unused RTRs cost below 3 % (rendezvous, without adaptation)", Rows: "^crossing, (64|256|1) [KM]B, spec", Op: results.AtMost, Limit: 3},
			{Source: "t1", Where: "4.4.3", Text: "extra data below 0.04 %; here all control data", Rows: "^control", Op: results.AtMost, Limit: 0.04},
			{Source: "t1", Where: "4.4.2", Text: "CG, which never gains, loses 4 % with adaptation; here a loop", Rows: "^cg, .*auto", Op: results.AtMost, Limit: 4},
		},
	}
	for _, loop := range []string{"crossing", "cg"} {
		for _, s := range sizes {
			for _, protocol := range []string{"auto", "spec"} {
				g.lines = append(g.lines, line{title: fmt.Sprintf("%s, %s, %s", loop, s.title, protocol), size: s.bytes, metric: loop, protocol: protocol, against: "off"})
			}
		}
	}
	for _, protocol := range []string{"off", "auto", "spec"} {
		g.lines = append(g.lines, line{title: "control, " + protocol, metric: "mixed/control", protocol: protocol})
	}
	return g
}

// exchangeWithoutSpeculation is T1 figure 4.16: models 1 and 2 against the protocol
// without speculation.
func exchangeWithoutSpeculation() *group {
	g := &group{
		name: "exchange-get", title: "Change of the time of an iteration that produces, exchanges 128 KB and consumes, by speculation, two ranks, shared memory", ranks: 2, direct: true,
		ours: "exchange --protocol get,spec,auto --rounds 1 --sizes 131072 --ratios 0.2,0.5,0.8,1,2", quantity: percent,
		note: "Relative to --protocol get, a rendezvous without speculation. Ratios are communication to computation.",
		claims: []results.Claim{
			{Source: "t1", Where: "4.4.1", Text: "exchange model 1: up to 32 % faster than without speculation (without adaptation; the default reaches less)", Rows: "^model 1.*spec$", Op: results.AtMost, Limit: -32, Best: true},
			{Source: "t1", Where: "4.4.2", Text: "NAS BT, class A: 30 % less wait time", Reason: "not measured yet with NAS BT; the study of speculation has MG with its pattern"},
		},
	}
	for model := 1; model <= 2; model++ {
		for _, ratio := range []string{"0.2", "0.5", "0.8", "1", "2"} {
			for _, protocol := range []string{"spec", "auto"} {
				g.lines = append(g.lines, line{title: fmt.Sprintf("model %d, ratio %s, %s", model, ratio, protocol), metric: fmt.Sprintf("model-%d/%s", model, ratio), protocol: protocol, against: "get"})
			}
		}
	}
	return g
}

// saved bounds the gain from registering frequently used buffers.
const saved = "the copy that is saved costs 0.4 % of the latency at 8 KB and 4–6 % at 64 KB (rows theory of reuse): the device is software, and copies too"

// bufferReuse is T1 5.5.1 and P1 5.1.
func bufferReuse() *group {
	sizes := []byteSize{size1K, size8K, size64K}
	g := &group{
		name: "reuse", title: "Gain from registering frequently used buffers, two ranks, connections that check registration", ranks: 2, direct: true,
		ours: "reuse --device rc-strict --op eager,put,get --iterations 1000 --sizes " + sizeList(sizes), quantity: percentMore,
		note: "gain: one buffer used for all messages. theory: T1 equation 5.6. noise: a second world that copies, against the first. no reuse: every message from a new buffer.",
		claims: []results.Claim{
			{Source: "t1", Where: "5.5.1", Text: "eager sends: up to 14 % faster", Rows: "^eager, .* gain$", Op: results.AtLeast, Limit: 14, Best: true, Bound: saved},
			{Source: "t1", Where: "5.5.1", Text: "put: up to 20 % faster", Rows: "^put, .* gain$", Op: results.AtLeast, Limit: 20, Best: true, Bound: saved},
			{Source: "p1", Where: "7", Text: "get: up to 17 % faster", Rows: "^get, .* gain$", Op: results.AtLeast, Limit: 17, Best: true, Bound: saved},
			{Source: "t1", Where: "5.5.1", Text: "put and get of 64 KB: at least 90 % of what the copy costs (equation 5.6: 4.2 to 4.5 %)", Rows: "^(put|get), 64 KB, gain$", Op: results.AtLeast, Limit: 4},
			{Source: "t1", Where: "5.5.2", Text: "without reuse at most 2 % slower", Rows: "no reuse$", Op: results.AtLeast, Limit: -2},
		},
	}
	for _, call := range []string{"eager", "put", "get"} {
		metric := ""
		if call != "eager" {
			metric = call + "-"
		}
		for _, s := range sizes {
			for _, l := range []line{
				{title: "gain", metric: "reuse-100-gain", protocol: "frequent"},
				{title: "theory", metric: "reuse-100-theory", protocol: "frequent"},
				{title: "noise", metric: "reuse-100-gain", protocol: "copy again"},
				{title: "no reuse", metric: "reuse-0-gain", protocol: "frequent"},
			} {
				l.title, l.metric, l.size = fmt.Sprintf("%s, %s, %s", call, s.title, l.title), metric+l.metric, s.bytes
				g.lines = append(g.lines, l)
			}
		}
	}
	return g
}

// reuseUses is T1 table 5.3, from the runs of bufferReuse.
func reuseUses() *group {
	g := bufferReuse()
	g.name, g.title, g.note, g.claims = "reuse-uses", "Uses of a buffer from which registration pays, connections that check registration", "By the costs measured on the device. 0: never.", nil
	g.quantity, g.lines = quantity{unit: "uses", scale: 1, shown: "uses"}, nil
	for _, call := range []string{"eager", "put", "get"} {
		prefix := call + "-"
		if call == "eager" {
			prefix = ""
		}
		for _, s := range []byteSize{size1K, size8K, size64K} {
			g.lines = append(g.lines, line{title: call + ", " + s.title, size: s.bytes, metric: prefix + "reuse-100-uses", protocol: "frequent"})
		}
	}
	return g
}

// collectiveReuse is the broadcast of T1 5.5.1.
func collectiveReuse() *group {
	sizes := []byteSize{size1K, size2K, size4K, size8K}
	g := &group{
		name: "reuse-coll", title: "Gain of a broadcast and a scatter from registering frequently used buffers, four ranks, connections that check registration", ranks: 4, direct: true,
		ours: "reuse-coll --device rc-strict -n 4 --iterations 500 --sizes " + sizeList(sizes), quantity: percentMore,
		note: "The root sends from one buffer; a barrier follows each call.",
		claims: []results.Claim{
			{Source: "t1", Where: "5.5.1", Text: "broadcast: up to 25 % faster", Rows: "^bcast", Op: results.AtLeast, Limit: 25, Best: true, Bound: saved},
			{Source: "t1", Where: "5.5.2", Text: "MILC: send time −7 %", Reason: "needs MILC of SPEC MPI2007, which is not free"},
			{Source: "t1", Where: "5.5.2", Text: "AMG, which reuses few buffers: at most 2 % slower", Reason: "needs AMG2006; the rows without reuse above have its pattern"},
		},
	}
	for _, call := range []string{"bcast", "scatter"} {
		for _, s := range sizes {
			g.lines = append(g.lines, line{title: call + ", " + s.title, size: s.bytes, metric: call + "-gain", protocol: "frequent"})
		}
	}
	return g
}

// datagramLatency is T1 figure 6.4.
func datagramLatency() *group {
	sizes := []byteSize{size64, size256, size1K, size2K, size8K}
	g := &group{
		name: "dgram-latency", title: "Half round trip over datagrams relative to connections, two ranks, loopback", ranks: 2, direct: true,
		ours: "latency --device rc,rd,ud --rounds 1 --iterations 3000 --sizes " + sizeList(sizes), quantity: quantity{metric: "latency", unit: "us", scale: 1, shown: "ratio"},
		note: "rc: RDMA over TCP. rd: reliable datagrams. ud: unreliable datagrams with reliability above them.",
		claims: []results.Claim{
			{Source: "t1", Where: "6", Text: "MPI latency of UD up to 25 % lower than over connections", Rows: "ud over rc", Op: results.AtMost, Limit: 0.75, Best: true},
		},
	}
	g.claims = append(g.claims, results.Claim{Text: "the same of reliable datagrams", Rows: "rd over rc", Op: results.AtMost, Limit: 0.75, Best: true})
	for _, channel := range []string{"rd", "ud"} {
		for _, s := range sizes {
			g.lines = append(g.lines, line{title: fmt.Sprintf("%s, %s over rc", s.title, channel), size: s.bytes, protocol: channel, over: "rc"})
		}
	}
	return g
}

// datagramVerbs is T1 figure 6.3.
func datagramVerbs() *group {
	sizes := []byteSize{size64, size256, size1K, size2K}
	g := &group{
		name: "dgram-verbs", title: "Half round trip of unreliable datagrams relative to connections, devices without MPI, loopback", ranks: 2, direct: true,
		ours: "verbs-latency --device rc,ud --rounds 1 --time 300ms --sizes " + sizeList(sizes), quantity: quantity{metric: "latency", unit: "ratio", scale: 1, shown: "ratio"},
		claims: []results.Claim{
			{Source: "t1", Where: "6.6.1", Text: "verbs latency of UD below RC", Op: results.AtMost, Limit: 1},
		},
	}
	for _, s := range sizes {
		g.lines = append(g.lines, line{title: s.title, size: s.bytes, device: "ud", against: "rc"})
	}
	return g
}

// datagramBandwidth is T1 figure 6.5: two pairs in opposite directions.
func datagramBandwidth() *group {
	sizes := []byteSize{size64, size256, size2K, size8K, size64K, size1M}
	g := &group{
		name: "dgram-bibw", title: "Bandwidth of two pairs in both directions over datagrams relative to connections, loopback", ranks: 4, direct: true,
		ours: "multipair --ranks 4 --device rc,rd,ud --rounds 1 --iterations 30 --sizes " + sizeList(sizes), quantity: quantity{metric: "bandwidth", unit: "MB/s", scale: 1, shown: "ratio", largerBetter: true},
		claims: []results.Claim{
			{Source: "t1", Where: "6.6.1", Text: "bidirectional bandwidth of two pairs over UD: 40 % higher at 2 KB", Rows: "^2 KB, ud", Op: results.AtLeast, Limit: 1.4},
			{Source: "t1", Where: "6.6.1", Text: "the same, higher at most sizes (here: all)", Rows: "ud$", Op: results.AtLeast, Limit: 1},
			{Text: "the same of reliable datagrams: all sizes", Rows: "B$", Op: results.AtLeast, Limit: 1},
		},
		note: "rd, without a mark: reliable datagrams. ud: unreliable ones with reliability above them.",
	}
	for _, channel := range []struct{ name, mark string }{{"rd", ""}, {"ud", ", ud"}} {
		for _, s := range sizes {
			g.lines = append(g.lines, line{title: s.title + channel.mark, size: s.bytes, protocol: channel.name, over: "rc"})
		}
	}
	return g
}

// channelMemory is T1 table 6.1 without an application.
func channelMemory() *group {
	return &group{
		name: "channel-memory", title: "Communication memory of a rank on the hybrid channel relative to connections, 32 ranks, after each has sent to every other", ranks: 32, direct: true, rounds: 1,
		ours: "memory --ranks 32 --device rc,hybrid --rounds 1", quantity: quantity{metric: "memory", unit: "KiB", scale: 1, shown: "ratio"},
		note: "Of the rank that has most. Memory of the kernel is not included.",
		claims: []results.Claim{
			{Source: "t1", Where: "6.6.2", Text: "up to 30 % less memory (communication memory, 32 ranks)", Op: results.AtMost, Limit: 0.7},
			{Source: "t1", Where: "6.6.2", Text: "SMG2000: run time up to 45 % lower on 64 cores", Reason: "needs SMG2000 and a cluster of 64 cores with 10 Gbit/s Ethernet; the study of channels has radix sort"},
		},
		lines: []line{{title: "32 ranks, hybrid over rc", protocol: "hybrid", over: "rc"}},
	}
}

// eagerChannels are the eager channels of P3 on connections: a shared receive queue, rings for
// busy peers besides, and rings with receive buffers for each connection.
var eagerChannels = []struct{ title, device string }{{"shared queue", "rc"}, {"shared queue and rings", "rc-rings"}}

// eagerMemory is P3 section 5: receive buffers of the three channels. Rings are among them, as in
// P3 section 3.2. The shared queue that P3 describes has posted buffers; ours allocates them when
// messages wait in it, and so has a second row.
func eagerMemory() *group {
	g := &group{
		name: "eager-memory", title: "Memory of the eager channels relative to receive buffers for each connection, 64 ranks, after each has sent to every other", ranks: 64, direct: true, rounds: 1,
		ours: "memory --ranks 64 --device rc,rc-posted,rc-rings,rc-few --rounds 1", quantity: quantity{unit: "KiB", scale: 1, shown: "ratio"},
		note: "Of the rank that has most, relative to device rc-few (ARDMA-SR of P3). Memory of the kernel is not included. Each rank has 16 rings, as in rc-few. A shared queue has the buffers for the messages that waited in it at once, a posted one at least 63 of 16 KB.",
		claims: []results.Claim{
			{Source: "p3", Where: "5", Text: "receive buffers a tenth of those for each connection", Rows: "^receive buffers and rings, shared queue$", Op: results.AtMost, Limit: 0.1},
		},
	}
	posted := struct{ title, device string }{"posted shared queue", "rc-posted"}
	for _, c := range append([]struct{ title, device string }{posted}, eagerChannels...) {
		g.lines = append(g.lines, line{title: "receive buffers and rings, " + c.title, metric: "receive-and-rings", protocol: c.device, over: "rc-few"},
			line{title: "all, " + c.title, metric: "memory", protocol: c.device, over: "rc-few"})
	}
	return g
}

// eagerLatency compares the speed of the three channels.
func eagerLatency() *group {
	sizes := []byteSize{size64, size1K, size8K}
	g := &group{
		name: "eager-latency", title: "Half round trip over the eager channels relative to receive buffers for each connection, two ranks, loopback", ranks: 2, direct: true,
		ours: "latency --device rc,rc-rings,rc-few --rounds 1 --iterations 3000 --sizes " + sizeList(sizes), quantity: quantity{metric: "latency", unit: "us", scale: 1, shown: "ratio"},
		note: "Relative to device rc-few (ARDMA-SR of P3).",
		claims: []results.Claim{
			{Source: "p3", Where: "5", Text: "the same speed", Op: results.AtMost, Limit: 1.05},
			{Source: "p3", Where: "5", Text: "SuperLU, NAMD, HPL on up to 64 processes: as fast as with receive buffers for each peer", Reason: "needs these applications and a cluster; the study of eager channels has radix sort and CG"},
		},
	}
	for _, c := range eagerChannels {
		for _, s := range sizes {
			g.lines = append(g.lines, line{title: s.title + ", " + c.title, size: s.bytes, protocol: c.device, over: "rc-few"})
		}
	}
	return g
}

func idlePeer() *group {
	g := &group{
		name: "idle-peer", title: "Memory of an idle peer of a reliable datagram device relative to an idle connection", ranks: 2, direct: true, rounds: 1,
		ours: "verbs-memory --device rc,rd --peers 500 --rounds 3", quantity: quantity{unit: "ratio", scale: 1, shown: "ratio"},
		claims: []results.Claim{
			{Text: "an idle peer: reliable datagrams over connections", Rows: "^total", Op: results.AtMost, Limit: 0.05},
		},
	}
	for _, part := range []string{"total", "user", "kernel"} {
		g.lines = append(g.lines, line{title: part, metric: part, device: "rd", against: "rc"})
	}
	return g
}

// eagerPlan is P3, with its memory on four hosts.
func eagerPlan() []*group {
	groups := []*group{eagerMemory(), eagerLatency()}
	for _, ranks := range []int{16, 64} {
		groups = append(groups, &group{
			name: fmt.Sprintf("hosts-memory-%d", ranks), title: fmt.Sprintf("Communication memory of a rank, %d ranks on 4 hosts, after each has sent to every other", ranks),
			ranks: ranks, transport: transport{over: hosts, hosts: 4, channel: "hybrid"}, rounds: 1, limit: 2 * time.Minute,
			ours: "memory", quantity: quantity{unit: "KiB", scale: 1.0 / 1024, shown: "MiB"},
			note:  "Of the rank that has most, channel hybrid. Kernel: the limit of its socket buffers. The rows with a dot are the parts of the first.",
			lines: memoryLines(ranks),
		})
	}
	groups[2].claims = []results.Claim{{Source: "p3", Where: "5", Text: "5–10 MB of communication memory for each process (there constant; here less, and growing with the number of ranks)", Tables: "hosts-memory-*", Rows: "^memory, ", Op: results.AtMost, Limit: 10}}
	return append(groups, idlePeer())
}

// memoryLines has the total, what the kernel may hold, and the parts of the total.
func memoryLines(ranks int) []line {
	lines := []line{
		{title: fmt.Sprintf("memory, %d ranks", ranks), metric: "memory"},
		{title: "kernel", metric: "kernel"},
		{title: "with kernel", metric: "memory-and-kernel"},
	}
	for _, name := range prof.MemoryParts() {
		lines = append(lines, line{title: string(name), metric: string(name)})
	}
	return lines
}
