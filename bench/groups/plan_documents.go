package groups

// Figures of the documents that no claim is about (bench/documents): the layers below MPI, with
// connections, registration and reuse of buffers (T1 chapters 3 and 5).

import (
	"fmt"
	"strings"
	"time"
)

// shownRatio is a figure that is a ratio already.
var shownRatio = quantity{unit: "ratio", scale: 1, shown: "ratio"}

// layerPlan is T1 chapter 3 and T1 5.1, 5.3.3 and 5.5.1.
func layerPlan() []*group {
	groups := []*group{userLatency(), userBandwidth(), deviceOverhead(), channelLatency()}
	for _, pairs := range []int{1, 2, 4, 8} {
		groups = append(groups, pairsLatency(pairs), pairsBandwidth(pairs))
	}
	return append(groups, connections("connections-latency", "Normalized latency", "latency", latencyMicros), connections("connections-throughput", "Aggregate throughput both ways", "throughput", bandwidthMB),
		registration(), registrationCache(), reuseRatio(), spectrum(), useTable(), concurrentCopies(), concurrentAllgathers())
}

// userLatency is T1 figure 3.1 and T2 figure 4.1: devices without MPI.
func userLatency() *group {
	sizes, devices := []byteSize{size8, size64, size1K, size8K}, []string{"shm", "rd", "ud", "rc", "tcp"}
	return &group{
		name: "user-latency", title: "Half round trip over devices without MPI, two processes, loopback", ranks: 2, direct: true,
		ours: "verbs-latency --device " + strings.Join(devices, ",") + " --rounds 1 --time 200ms --sizes " + sizeList(sizes), quantity: latencyMicros,
		note:  "shm: shared memory. rd, ud: datagrams. rc: RDMA over TCP. tcp: a bare socket.",
		lines: deviceLines(sizes, devices),
	}
}

// userBandwidth is T1 figure 3.2.
func userBandwidth() *group {
	sizes, devices := []byteSize{size1K, size8K, size32K}, []string{"rd", "rc", "rc-nocrc", "tcp"}
	return &group{
		name: "user-bibw", title: "Bandwidth both ways over devices without MPI, window of 64, two processes, loopback", ranks: 2, direct: true,
		ours: "verbs-bibw --device " + strings.Join(devices, ",") + " --rounds 1 --time 300ms --sizes " + sizeList(sizes), quantity: bandwidthMB,
		note:  "Messages that a device sends in one piece; both directions are counted.",
		lines: deviceLines(sizes, devices),
	}
}

// deviceLines are the lines of devices that one command compares.
func deviceLines(sizes []byteSize, devices []string) (lines []line) {
	for _, s := range sizes {
		for _, d := range devices {
			lines = append(lines, line{title: s.title + ", " + d, size: s.bytes, device: d})
		}
	}
	return lines
}

// deviceOverhead is T1 figure 3.3 (b).
func deviceOverhead() *group {
	sizes := []byteSize{size8, size64, size256, size1K}
	g := &group{
		name: "device-overhead", title: "Half round trip of messages relative to the bare device, two ranks, shared memory", ranks: 2,
		note: "Both alternate within one run.", ours: "device-latency --sizes " + sizeList(sizes), quantity: shownRatio,
	}
	for _, s := range sizes {
		g.lines = append(g.lines, line{title: s.title, size: s.bytes, metric: "mpi/device"})
	}
	return g
}

// channelLatency is T1 figure 3.3 (a).
func channelLatency() *group {
	sizes, devices := []byteSize{size8, size64, size1K, size8K}, []string{"shm", "hybrid", "rd", "ud", "rc"}
	g := &group{
		name: "channel-latency", title: "Half round trip by channel, two ranks, loopback", ranks: 2, direct: true,
		ours: "latency --device " + strings.Join(devices, ",") + " --rounds 1 --iterations 3000 --sizes " + sizeList(sizes), quantity: latencyMicros,
	}
	for _, s := range sizes {
		for _, d := range devices {
			g.lines = append(g.lines, line{title: s.title + ", " + d, size: s.bytes, protocol: d})
		}
	}
	return g
}

func pairsName(pairs int) string {
	if pairs == 1 {
		return "1 pair"
	}
	return fmt.Sprintf("%d pairs", pairs)
}

const pairsNote = "One rank of each pair on each of two hosts, network namespaces of this machine with an unlimited cable. All ranks share its two cores: beyond one pair they have time slices."

// betweenHosts makes a group one of ranks on two hosts with an unlimited cable.
func betweenHosts(g *group, ranks int) *group {
	g.ranks, g.transport, g.limit = ranks, transport{over: hosts, hosts: 2, rails: 1, channel: "hybrid"}, time.Minute
	return g
}

// pairsLatency is T1 figure 3.8.
func pairsLatency(pairs int) *group {
	sizes := []byteSize{size64, size1K, size8K}
	g := betweenHosts(&group{
		name: fmt.Sprintf("pairs-latency-%d", pairs), title: "Half round trip of " + pairsName(pairs) + " at once, divided by the number of pairs, two hosts",
		ours: "multipair-latency --iterations 2000 --sizes " + sizeList(sizes), note: pairsNote,
		quantity: quantity{metric: "latency", unit: "us", scale: 1 / float64(pairs), shown: "µs"},
	}, 2*pairs)
	for _, s := range sizes {
		g.lines = append(g.lines, line{title: s.title + ", " + pairsName(pairs), size: s.bytes})
	}
	return g
}

// pairsBandwidth is T1 figure 3.9.
func pairsBandwidth(pairs int) *group {
	sizes := []byteSize{size2K, size64K, size256K}
	g := betweenHosts(&group{
		name: fmt.Sprintf("pairs-bibw-%d", pairs), title: "Bandwidth both ways of " + pairsName(pairs) + " at once, two hosts",
		ours: "multipair --iterations 16 --sizes " + sizeList(sizes), note: pairsNote, quantity: bandwidthMB,
	}, 2*pairs)
	for _, s := range sizes {
		g.lines = append(g.lines, line{title: s.title + ", " + pairsName(pairs), size: s.bytes})
	}
	return g
}

// connections is T1 figures 3.6 and 3.7, and T2 figure 5.1. The two groups show figures of the
// same runs.
func connections(name, title, metric string, q quantity) *group {
	sizes, counts := []byteSize{size8, size1K, size8K}, []int{1, 2, 4, 8, 16, 64, 256}
	q.metric = metric
	g := &group{
		name: name, title: title + " over several connections between two processes, devices without MPI, loopback", ranks: 2, direct: true, limit: 2 * time.Minute,
		ours: fmt.Sprintf("verbs-connections --device rc,rd --rounds 1 --time 100ms --sizes %s --connections %s", sizeList(sizes), listOf("%d", counts)), quantity: q,
		note: "A message on every connection and one back on each: half of the time divided by the number of connections.",
	}
	for _, s := range sizes {
		for _, d := range []string{"rc", "rd"} {
			for _, n := range counts {
				g.lines = append(g.lines, line{title: fmt.Sprintf("%s, %s, %d connections", s.title, d, n), size: s.bytes, device: d, connections: n})
			}
		}
	}
	return g
}

// registration is T1 figure 3.10, and the cost of a copy of figure 5.1.
func registration() *group {
	sizes := []byteSize{size1K, size4K, size16K, size64K, size256K, size1M}
	g := &group{
		name: "registration", title: "Registration of memory, its end, both from the cache, and a copy of as many bytes", ranks: 2, direct: true,
		ours: "reg --device rc-strict --rounds 1 --iterations 300 --sizes " + sizeList(sizes), quantity: micros,
	}
	for _, s := range sizes {
		for _, metric := range []string{"register", "deregister", "from-cache", "copy"} {
			g.lines = append(g.lines, line{title: s.title + ", " + metric, size: s.bytes, metric: metric})
		}
	}
	return g
}

// registrationCache is T1 figure 3.11.
func registrationCache() *group {
	sizes := []byteSize{{"128 KB", 128 << 10}, {"512 KB", 512 << 10}, {"2 MB", 2 << 20}}
	g := &group{
		name: "regcache", title: "Change of latency and bandwidth of long messages from one buffer by the registration cache", ranks: 2, direct: true,
		ours: "regcache --device rc-strict --iterations 50 --sizes " + sizeList(sizes), quantity: percent, note: "Relative to registering for each message; below 0 the latency is shorter, above 0 the bandwidth is larger.",
	}
	for _, metric := range []string{"latency", "bandwidth"} {
		for _, s := range sizes {
			g.lines = append(g.lines, line{title: metric + ", " + s.title, size: s.bytes, metric: metric + "-change", protocol: "cache"})
		}
	}
	return g
}

// reuseRatio is T1 figure 3.12.
func reuseRatio() *group {
	sizes := []byteSize{{"512 B", 512}, size8K, size16K, size64K, size1M}
	g := &group{
		name: "reuse-ratio", title: "Half round trip with a new buffer for each message relative to one buffer, two ranks, connections that check registration", ranks: 2, direct: true, limit: 2 * time.Minute,
		ours: "reuse --device rc-strict --op eager --iterations 500 --sizes " + sizeList(sizes), quantity: shownRatio,
		note: "Without registration of frequently used buffers (MUSTER_FREQUENT=never).",
	}
	for _, s := range sizes {
		g.lines = append(g.lines, line{title: s.title, size: s.bytes, metric: "none/full", protocol: "copy"})
	}
	return g
}

// spectrum is T1 figures 5.6 and 5.8.
func spectrum() *group {
	sizes := []byteSize{size1K, size4K, size8K}
	g := &group{
		name: "spectrum", title: "Gain from registering frequently used buffers if the i-th of 200 buffers is used i times, two ranks, connections that check registration", ranks: 2, direct: true, limit: 5 * time.Minute,
		ours: "spectrum --device rc-strict --op eager,put,get --iterations 200 --sizes " + sizeList(sizes), quantity: percentMore,
		note: "packed: the buffers follow each other. paged: each begins at a page boundary.",
	}
	for _, call := range []string{"eager", "put", "get"} {
		prefix := ""
		if call != "eager" {
			prefix = call + "-"
		}
		for _, layout := range []string{"packed", "paged"} {
			for _, s := range sizes {
				g.lines = append(g.lines, line{title: fmt.Sprintf("%s, %s, %s", call, layout, s.title), size: s.bytes, metric: prefix + layout + "-gain", protocol: "frequent"})
			}
		}
	}
	return g
}

// useTable is T1 figure 5.4.
func useTable() *group {
	g := &group{
		name: "use-table", title: "Time of a look at the table of buffer uses", ranks: 1, direct: true,
		ours: "use-table --sizes 1000,10000,100000,1000000", quantity: quantity{metric: "look", unit: "ns", scale: 1, shown: "ns"},
	}
	for _, n := range []int64{1000, 10_000, 100_000, 1_000_000} {
		g.lines = append(g.lines, line{title: fmt.Sprintf("%d buffers", n), size: n})
	}
	return g
}

// concurrentCopies is T2 figure 4.1.
func concurrentCopies() *group {
	sizes := []byteSize{size64, size1K, size8K, size64K}
	g := &group{
		name: "copies", title: "Time of a copy in memory while 1 to 4 ranks copy at once", ranks: 4, quantity: micros,
		ours: "copies --sizes " + sizeList(sizes), note: "Two cores: from three ranks on they have time slices.",
	}
	for _, s := range sizes {
		for n := 1; n <= 4; n++ {
			g.lines = append(g.lines, line{title: fmt.Sprintf("%s, %d at once", s.title, n), size: s.bytes, metric: fmt.Sprintf("copies-%d", n)})
		}
	}
	return g
}

// concurrentAllgathers is T2 figure 5.2.
func concurrentAllgathers() *group {
	sizes := []byteSize{size64, size1K, size8K, size64K}
	g := &group{
		name: "allgather-groups", title: "Aggregate bandwidth of independent allgathers of one rank of each of 4 hosts, by the number of groups, 100 Mbit/s", ranks: 16, transport: fourHosts(wireRate), limit: 2 * time.Minute,
		ours: "allgather-groups --iterations 20 --sizes " + sizeList(sizes), quantity: bandwidthMB, note: onWire,
	}
	g.rails = 1
	for _, s := range sizes {
		for n := 1; n <= 4; n++ {
			g.lines = append(g.lines, line{title: fmt.Sprintf("%s, %d of 4 groups", s.title, n), size: s.bytes, metric: fmt.Sprintf("groups-%d", n)})
		}
	}
	return g
}
