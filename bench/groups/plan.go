package groups

import (
	"slices"
	"time"
)

// contender is a program that is measured.
type contender int

const (
	openMPI contender = iota
	mpich
	bare    // libfabric without a layer above it
	bareUDP // UDP with segmentation offload, without a layer above it
	oneRail // ours on the first of several rails
	plain   // ours without encryption
	gcm     // the cipher by itself, on one core
	before  // an earlier build of muster (-before)
	muster
	contenderCount
)

var contenderNames = [contenderCount]string{"Open MPI", "MPICH", "libfabric bare", "UDP bare", "Muster, one rail", "Muster, plain", "AES-128-GCM", "Muster before", "Muster"}

func (c contender) String() string { return contenderNames[c] }

// medium is the transport of a group.
type medium int

const (
	sharedMemory medium = iota
	// network is TCP on this machine's loopback. Ours uses libfabric's provider net, or
	// software iWARP if a channel is named.
	network
	// hosts is the network between hosts of a lab: network namespaces, see
	// internal/lab.
	hosts
)

// group is a table: the figures that one run of each contender yields.
type group struct {
	name  string // or family-name: -only accepts both
	title string
	note  string // conditions of the measurement
	ranks int
	over  medium
	hosts int // number of hosts, if over is hosts
	rails int // cables of each host; 0: one
	// rate of a cable; "": unlimited. queue is that of a switch port in bytes; 0: the lab's
	// default. loss is the probability that a packet is lost.
	rate  string
	queue int64
	loss  float64
	// limit of a run, if it is longer than that of the others.
	limit time.Duration
	// channel of software iWARP, instead of libfabric.
	channel string
	// copies: the kernel does not copy between processes, as in a container that does not
	// permit process_vm_readv. Messages are copied in and out of shared memory.
	copies bool
	// peers are the contenders of which the better is compared with ours. None: our figure is
	// compared with the bound.
	peers []contender
	// beside: the peers are shown, and our figure is compared with the bound.
	beside bool
	// added: the work of the peers is done one after the other by one core, and ours is
	// compared with that.
	added bool
	// protocols: it is about long messages, and -protocol selects ours; protocol is the
	// one without the flag, "" if as configured.
	protocols bool
	protocol  string
	args      string // for the loops in C
	ours      string // the same for `muster bench`; {now} is the time
	// metric selects the figure of a run and unit is its unit. It is shown multiplied by
	// scale, in the unit shown. A line may have its own metric.
	metric string
	unit   string
	scale  float64
	shown  string
	// wallClock: the figure is the time of the run.
	wallClock    bool
	largerBetter bool
	lines        []line
	chart        bool // draw the peers' times as multiples of ours
	// direct: ours is started as "muster bench" itself, which starts its jobs.
	direct bool
	// inC: ours runs the loops in C too, the same binary as MPICH, through the C interface.
	inC bool
	// encrypt: ours encrypts messages.
	encrypt bool
	// onRequest: measured only if -only names it.
	onRequest bool
	// alone: its runs are not shared with other groups, so that the contenders alternate.
	alone bool
	// rounds is the number of rounds if fewer than -rounds are enough; 0: as -rounds.
	rounds int
}

// line is one row of a table. bound limits the ratio to the better peer, or the figure if
// there is no peer: at most, or at least if larger is better.
type line struct {
	title string
	size  int64 // 0: any
	bound float64
	// metric, if it is not that of the group.
	metric string
	// protocol selects records of a protocol, algorithm or channel, device those of a
	// device, and against those that are relative to another one; "": records without.
	protocol, device, against string
	// over makes the figure a ratio: protocol over this one, in the same run.
	over string
	// peers are those that the line is compared with, if they are not all of the group.
	peers []contender
}

// unbound is the bound of a line without a target.
const unbound = 0

// compared reports whether ours is judged by its ratio to a peer.
func (g *group) compared() bool { return len(g.peers) > 0 && !g.beside }

// plan lists all groups.
func plan() []*group {
	return slices.Concat(sharedMemoryPlan(), cPlan(), overlapPlan(), ownPlan(), collectivePlan(), windowPlan(), networkPlan(), labPlan(), ownLabPlan(), t2Plan(), labCollectivePlan(), cablePlan(), stallPlan(), encryptPlan(), choicePlan())
}

func sharedMemoryPlan() []*group {
	both := []contender{openMPI, mpich}
	return []*group{
		{
			name: "latency", title: "Half round trip, two ranks, shared memory", ranks: 2, peers: both,
			args: "latency -s 8,1024,8192,65536,1048576,4194304", ours: "latency --sizes 8,1024,8192,65536,1048576,4194304",
			metric: "latency", unit: "us", scale: 1, shown: "µs",
			lines: []line{{title: "8 B", size: 8, bound: 0.6}, {title: "1 KB", size: 1024, bound: 0.75}, {title: "8 KB", size: 8192, bound: 0.95}, {title: "64 KB", size: 65536, bound: 1}, {title: "1 MB", size: 1 << 20, bound: 0.9}, {title: "4 MB", size: 4 << 20, bound: 0.7}},
		},
		{
			name: "bw", title: "Bandwidth, window of 64, shared memory", ranks: 2, peers: both,
			args: "bw -s 8192,65536,1048576,4194304", ours: "bw --sizes 8192,65536,1048576,4194304",
			metric: "bandwidth", unit: "MB/s", scale: 1e-3, shown: "GB/s", largerBetter: true,
			lines: []line{{title: "8 KB", size: 8192, bound: 1}, {title: "64 KB", size: 65536, bound: 1}, {title: "1 MB", size: 1 << 20, bound: 1}, {title: "4 MB", size: 4 << 20, bound: 1.3}},
		},
		{
			name: "rate", title: "Message rate, window of 64, shared memory", ranks: 2, peers: both,
			args: "rate -s 8 -i 10000", ours: "rate --sizes 8 --iterations 10000",
			metric: "rate", unit: "msg/s", scale: 1e-6, shown: "M/s", largerBetter: true,
			lines: []line{{title: "8 B", size: 8, bound: 1.3}},
		},
		{
			name: "nocma-short", onRequest: true, title: "Half round trip without process_vm, two ranks, shared memory", ranks: 2, peers: []contender{openMPI}, copies: true,
			note: "Open MPI runs with btl_vader_single_copy_mechanism none, ours with MUSTER_NO_PROCESS_VM=1.",
			args: "latency -s 65536,1048576", ours: "latency --sizes 65536,1048576",
			metric: "latency", unit: "us", scale: 1, shown: "µs",
			lines: []line{{title: "64 KB", size: 65536, bound: 1}, {title: "1 MB", size: 1 << 20, bound: 1}},
		},
		{
			name: "nocma-long", onRequest: true, title: "Half round trip of long messages without process_vm, two ranks, shared memory", ranks: 2, peers: []contender{openMPI}, copies: true,
			args: "latency -s 268435456,1073741824 -i 4", ours: "latency --sizes 268435456,1073741824 --iterations 4",
			metric: "latency", unit: "us", scale: 1e-3, shown: "ms",
			lines: []line{{title: "256 MB", size: 256 << 20, bound: 1}, {title: "1 GB", size: 1 << 30, bound: 1}},
		},
		{
			name: "device", title: "Half round trip of messages relative to the bare device, two ranks", ranks: 2,
			note: "Both alternate within one run.",
			ours: "device-latency --sizes 8", metric: "mpi/device", unit: "ratio", scale: 1, shown: "ratio",
			lines: []line{{title: "8 B", size: 8, bound: 1.25}},
		},
		{
			name: "barrier", title: "Barrier of 16 ranks that share the cores", ranks: 16, peers: []contender{openMPI},
			note: "Open MPI runs with mpi_yield_when_idle. MPICH is left out: it does not yield, and takes a thousand times as long when ranks outnumber cores.",
			args: "barrier", ours: "barrier", metric: "latency", unit: "us", scale: 1, shown: "µs",
			lines: []line{{title: "16 ranks", size: 0, bound: 0.5}},
		},
		{
			name: "memory", rounds: 1, title: "Memory of a rank (PSS, mean), 64 ranks, after each has sent to every other", ranks: 64, peers: both,
			args: "memory-once", ours: "memory-once", metric: "pss", unit: "KiB", scale: 1.0 / 1024, shown: "MiB",
			lines: []line{{title: "64 ranks", size: 0, bound: 1}},
		},
		{
			name: "start", rounds: 2, title: "Start and end of an empty job", ranks: 64, peers: both,
			args: "empty", ours: "empty", unit: "s", scale: 1, shown: "s", wallClock: true,
			lines: []line{{title: "64 ranks", size: 0, bound: 1}},
		},
		{
			name: "idle", rounds: 1, title: "CPU of a rank that waits for 10 s in Recv", ranks: 2,
			ours: "idle", metric: "cpu", unit: "%", scale: 1, shown: "% of a core",
			lines: []line{{title: "waiting", size: 0, bound: 2}},
		},
	}
}

// networkPlan compares with the bare libfabric provider, and with the peers over TCP.
func networkPlan() []*group {
	const onNet = "Both use libfabric's provider net, which is TCP, on the loopback of this machine."
	const onHosts = "The hosts are network namespaces of this machine, connected by a switch; all ranks share its cores. Every rank sends one message to the next and receives one from the previous rank."
	return []*group{
		{
			name: "ofi-latency", title: "Half round trip compared with bare libfabric, two ranks, provider net", ranks: 2,
			over: network, peers: []contender{bare}, note: onNet,
			args: "latency -s 8,8192", ours: "latency --sizes 8,8192",
			metric: "latency", unit: "us", scale: 1, shown: "µs",
			lines: []line{{title: "8 B", size: 8, bound: 1.25}, {title: "8 KB", size: 8192, bound: 1.15}},
		},
		{
			name: "ofi-bw", title: "Bandwidth compared with bare libfabric, window of 64, provider net", ranks: 2,
			over: network, peers: []contender{bare}, note: onNet,
			args: "bw -s 1048576", ours: "bw --sizes 1048576",
			metric: "bandwidth", unit: "MB/s", scale: 1e-3, shown: "GB/s", largerBetter: true,
			lines: []line{{title: "1 MB", size: 1 << 20, bound: 0.95}},
		},
		{
			name: "tcp", title: "Half round trip over TCP on loopback, two ranks", ranks: 2,
			over: network, peers: []contender{openMPI, mpich}, note: "Ours uses libfabric's provider net.",
			args: "latency -s 8,8192,1048576", ours: "latency --sizes 8,8192,1048576",
			metric: "latency", unit: "us", scale: 1, shown: "µs",
			lines: []line{{title: "8 B", size: 8, bound: 1}, {title: "8 KB", size: 8192, bound: 1}, {title: "1 MB", size: 1 << 20, bound: 1}},
		},
		overIWARP("rd", "reliable datagrams over UDP", 0.65, 0.65, 1, 1),
		overIWARP("rc", "RDMA over TCP", 1, 1, 1, 1),
		overIWARP("hybrid", "datagrams, and connections to busy peers: the default", 0.7, 0.9, 0.7, 1),
		{
			name: "hosts-start", title: "From the start of the launcher to the first message of the last of 64 ranks, 4 hosts", ranks: 64,
			over: hosts, hosts: 4, note: onHosts,
			ours: "first-message --since {now}", metric: "first-message", unit: "s", scale: 1, shown: "s",
			lines: []line{{title: "64 ranks", size: 0, bound: 2}},
		},
		{
			name: "hosts-cards", onRequest: true, title: "Business cards that a rank fetched for it, maximum", ranks: 64,
			over: hosts, hosts: 4, note: onHosts + " It needs the card of the rank that it sends to.",
			ours: "first-message --since {now}", metric: "cards", unit: "cards", scale: 1, shown: "cards",
			lines: []line{{title: "64 ranks", size: 0, bound: 1}},
		},
	}
}

// overIWARP returns the latency group of a channel of software iWARP; bounds are those of 8
// B, 8 KB, 64 KB and 1 MB.
func overIWARP(channel, what string, bounds ...float64) *group {
	return &group{
		name: "iwarp-" + channel, title: "Half round trip over software iWARP on loopback (channel " + channel + "), two ranks", ranks: 2,
		over: network, channel: channel, peers: []contender{openMPI, mpich}, note: "Ours is " + what + "; the peers use TCP.",
		args: "latency -s 8,8192,65536,1048576", ours: "latency --sizes 8,8192,65536,1048576",
		metric: "latency", unit: "us", scale: 1, shown: "µs",
		lines: sizeLines(bounds, byteSize{"8 B", 8}, size8K, size64K, size1M),
	}
}

// sizeLines returns a line for each size with its bound.
func sizeLines(bounds []float64, sizes ...byteSize) []line {
	var lines []line
	for i, s := range sizes {
		lines = append(lines, line{title: s.title, size: s.bytes, bound: bounds[i]})
	}
	return lines
}

// unitFactors converts units that programs print to the unit of a group.
var unitFactors = map[string]map[string]float64{
	"us":     {"us": 1, "µs": 1, "ns": 1e-3, "ms": 1e3, "s": 1e6},
	"MB/s":   {"MB/s": 1, "GB/s": 1e3},
	"msg/s":  {"msg/s": 1},
	"op/s":   {"op/s": 1},
	"s":      {"s": 1, "ms": 1e-3, "us": 1e-6},
	"cards":  {"cards": 1},
	"rounds": {"rounds": 1, "events": 1},
	"KiB":    {"KiB": 1, "MiB": 1024, "B": 1.0 / 1024, "MB": 1e6 / 1024},
	"%":      {"%": 1, "ppm": 1e-4},
	"ratio":  {"ratio": 1},
}
