package groups

// Ranks that share memory: messages, programs in C, collectives, one-sided communication, and
// what a job needs. The loops are those of groups/loops and of `muster bench`.

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/bench/results"
)

func sharedMemoryPlan() []*group {
	both := []contender{openMPI, mpich}
	return []*group{
		group{
			name: "latency", title: "Half round trip, two ranks, shared memory", ranks: 2, peers: both,
			quantity: latencyMicros,
			claims:   []results.Claim{{Text: "latency, shared memory"}},
		}.loop("latency", 0, []float64{0.6, 0.75, 0.95, 1, 0.9, 0.7}, size8, size1K, size8K, size64K, size1M, size4M),
		group{
			name: "bw", title: "Bandwidth, window of 64, shared memory", ranks: 2, peers: both,
			quantity: bandwidthGB,
			claims:   []results.Claim{{Text: "bandwidth, shared memory"}},
		}.loop("bw", 0, []float64{1, 1, 1, 1.3}, size8K, size64K, size1M, size4M),
		group{
			name: "rate", title: "Message rate, window of 64, shared memory", ranks: 2, peers: both,
			quantity: messageRate,
			claims:   []results.Claim{{Text: "message rate"}},
		}.loop("rate", 10000, []float64{1.3}, size8),
		group{
			name: "nocma-short", onRequest: true, title: "Half round trip without process_vm, two ranks, shared memory", ranks: 2, peers: []contender{openMPI}, transport: transport{copies: true},
			note:     "Open MPI runs with btl_vader_single_copy_mechanism none, ours with MUSTER_NO_PROCESS_VM=1.",
			quantity: latencyMicros,
		}.loop("latency", 0, []float64{1, 1}, size64K, size1M),
		group{
			name: "nocma-long", onRequest: true, title: "Half round trip of long messages without process_vm, two ranks, shared memory", ranks: 2, peers: []contender{openMPI}, transport: transport{copies: true},
			quantity: quantity{metric: "latency", unit: "us", scale: 1e-3, shown: "ms"},
		}.loop("latency", 4, []float64{1, 1}, size256M, size1G),
		// Programs in C: the same binary on MPICH and, through the C interface, on ours; Open MPI
		// has its own.
		{
			name: "c-latency", title: "Half round trip in C, two ranks, shared memory", ranks: 2, peers: both, front: "--mpich",
			args:     "latency -s 8,1024,65536,1048576",
			quantity: latencyMicros,
			lines:    []line{{title: "8 B", size: 8, bound: 0.9}, {title: "1 KB", size: 1024, bound: 0.9}, {title: "64 KB", size: 65536, bound: 1}, {title: "1 MB", size: 1 << 20, bound: 0.9}},
			claims:   []results.Claim{{Text: "C programs: latency, shared memory"}},
		},
		{
			name: "c-rate", title: "Message rate in C, window of 64, shared memory", ranks: 2, peers: both, front: "--mpich",
			args:     "rate -s 8 -i 10000",
			quantity: messageRate,
			lines:    []line{{title: "8 B", size: 8, bound: 1}},
			claims:   []results.Claim{{Text: "C programs: message rate"}},
		},
		// The same with programs built for Open MPI, on Open MPI itself and on ours.
		{
			name: "openmpi-latency", title: "Half round trip of a program built for Open MPI, two ranks, shared memory", ranks: 2, peers: []contender{openMPI, asMPICH}, front: "--openmpi",
			args:     "latency -s 8,1024,65536,1048576",
			quantity: latencyMicros,
			lines: []line{
				{title: "8 B", size: 8, bound: 0.7, peers: []contender{openMPI}}, {title: "1 KB", size: 1024, bound: 0.8, peers: []contender{openMPI}},
				{title: "64 KB", size: 65536, bound: 1, peers: []contender{openMPI}}, {title: "1 MB", size: 1 << 20, bound: 0.7, peers: []contender{openMPI}},
				{title: "8 B, against MPICH's ABI", size: 8, bound: 1.02, peers: []contender{asMPICH}},
			},
			claims: []results.Claim{{Text: "programs built for Open MPI: latency"}},
		},
		{
			name: "openmpi-rate", title: "Message rate of a program built for Open MPI, window of 64, shared memory", ranks: 2, peers: []contender{openMPI}, front: "--openmpi",
			args:     "rate -s 8 -i 10000",
			quantity: messageRate,
			lines:    []line{{title: "8 B", size: 8, bound: 1.5}},
			claims:   []results.Claim{{Text: "programs built for Open MPI: message rate"}},
		},
		{
			name: "c-memory", rounds: 1, title: "Memory of a rank in C (PSS, mean), 64 ranks, after each has sent to every other", ranks: 64, peers: both, front: "--mpich",
			args: "memory-once", quantity: quantity{metric: "pss", unit: "KiB", scale: 1.0 / 1024, shown: "MiB"},
			lines:  []line{{title: "64 ranks", size: 0, bound: 1}},
			claims: []results.Claim{{Text: "C programs: memory of each of 64 ranks"}},
		},
		{
			name: "c-start", rounds: 2, title: "Start and end of an empty job in C", ranks: 64, peers: both, front: "--mpich",
			args: "empty", quantity: quantity{unit: "s", scale: 1, shown: "s", wallClock: true},
			lines:  []line{{title: "64 ranks", size: 0, bound: 0.3}},
			claims: []results.Claim{{Text: "C programs: start of 64 ranks"}},
		},
		{
			name: "device", title: "Half round trip of messages relative to the bare device, two ranks", ranks: 2,
			note: "Both alternate within one run.",
			ours: "device-latency --sizes 8", quantity: quantity{metric: "mpi/device", unit: "ratio", scale: 1, shown: "ratio"},
			lines:  []line{{title: "8 B", size: 8, bound: 1.25}},
			claims: []results.Claim{{Text: "latency over that of the bare device"}},
		},
		{
			name: "barrier", title: "Barrier of 16 ranks that share the cores", ranks: 16, peers: []contender{openMPI},
			note: "Open MPI runs with mpi_yield_when_idle. MPICH is left out: it does not yield, and takes a thousand times as long when ranks outnumber cores.",
			args: "barrier", ours: "barrier", quantity: latencyMicros,
			lines:  []line{{title: "16 ranks", size: 0, bound: 0.5}},
			claims: []results.Claim{{Text: "barrier of 16 ranks on 2 cores"}},
		},
	}
}

// collectivePlan has five collectives on two ranks with a core each, four on sixteen ranks that
// share the cores, and the overlap of two non-blocking ones.
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
	groups[0].claims = []results.Claim{{Text: "five collectives, 2 ranks", Tables: "coll-*-2"}, {Text: "four collectives, 16 ranks", Tables: "coll-*-16"}}
	for _, name := range []string{"iallreduce", "iallgather"} {
		groups = append(groups, group{
			name: "coll-" + name, title: "Share of a non-blocking " + name[1:] + " of 1 MB that a computation of its length hides, two ranks, shared memory", ranks: 2,
			peers: []contender{openMPI, mpich}, beside: true, note: "By OSU's definition: 100 − 100 × (overall − computation) / alone, not below 0.",
			quantity: quantity{metric: "overlap", unit: "%", scale: 1, shown: "%", largerBetter: true},
		}.loop(name, 0, []float64{unbound}, size1M))
	}
	groups[len(groups)-2].claims = []results.Claim{{Text: "non-blocking collectives: overlap, points above the better peer", Tables: "coll-iallreduce,coll-iallgather", Op: results.AtLeast, Gap: true}}
	for _, name := range []string{"iallreduce", "ialltoall"} {
		groups = append(groups, hiddenBetweenHosts(name))
	}
	groups[len(groups)-2].claims = []results.Claim{{Text: "the same on four hosts", Tables: "lab-iallreduce,lab-ialltoall", Op: results.AtLeast, Gap: true}}
	return groups
}

// hiddenBetweenHosts is the overlap of a non-blocking collective between hosts, against peers
// with their background progress.
func hiddenBetweenHosts(name string) *group {
	g := group{
		name: "lab-" + name, title: "Share of a non-blocking " + name[1:] + " of 1 MB that a computation of its length hides, four hosts, 1 Gbit/s", ranks: 4,
		transport: transport{over: hosts, hosts: 4, rate: "1gbit", channel: "hybrid"},
		peers:     []contender{openMPI, mpich}, beside: true, async: true, limit: 2 * time.Minute,
		note:     "By OSU's definition: 100 − 100 × (overall − computation) / alone, not below 0. The peers run with btl_tcp_progress_thread=1 and MPIR_CVAR_ASYNC_PROGRESS=1.",
		quantity: quantity{metric: "overlap", unit: "%", scale: 1, shown: "%", largerBetter: true},
	}
	return g.loop(name, 0, []float64{85}, size1M)
}

// collectiveGroup returns the group of one blocking collective.
func collectiveGroup(name string, ranks int, peers []contender, bound float64) *group {
	g := group{name: fmt.Sprintf("coll-%s-%d", name, ranks), title: fmt.Sprintf("Time of %s, %d ranks, shared memory", name, ranks), ranks: ranks, peers: peers, quantity: latencyMicros}
	switch {
	case name == "barrier":
		g.args, g.ours, g.lines = name, name, []line{{title: "barrier", bound: bound}}
		return &g
	case ranks == 2:
		return g.loop(name, 0, []float64{bound, bound, bound}, size8, size8K, size1M)
	}
	return g.loop(name, 0, []float64{bound, bound}, size8, size8K)
}

// windowPlan has put and get of three sizes into memory of MPI_Win_allocate, with a flush, and
// sixteen ranks that add to one word.
func windowPlan() []*group {
	both := []contender{openMPI, mpich}
	var groups []*group
	for _, name := range []string{"put", "get"} {
		groups = append(groups, group{
			name: "rma-" + name, title: "Time of a " + name + " with a flush, two ranks, shared memory", ranks: 2, peers: both,
			quantity: latencyMicros,
		}.loop(name, 0, []float64{0.7, 1, 1}, size8, size8K, size1M))
	}
	groups[0].claims = []results.Claim{{Text: "put, get, fetch-and-add", Tables: "rma-*"}}
	return append(groups, &group{
		name: "rma-fop", title: "Fetch-and-add of 16 ranks on one word, aggregate rate", ranks: 16, peers: []contender{openMPI},
		note: "The sum is checked. Open MPI runs with mpi_yield_when_idle. MPICH is left out: it does not yield, and takes minutes when ranks outnumber cores.",
		args: "fop -i 20000", ours: "fop --iterations 20000",
		quantity: quantity{metric: "rate", unit: "op/s", scale: 1e-6, shown: "M/s", largerBetter: true},
		lines:    []line{{title: "16 ranks", size: 0, bound: 1}},
	})
}

// jobPlan is about memory, start and idle ranks of a job.
func jobPlan() []*group {
	both := []contender{openMPI, mpich}
	return []*group{
		{
			name: "memory", rounds: 1, title: "Memory of a rank (PSS, mean), 64 ranks, after each has sent to every other", ranks: 64, peers: both,
			args: "memory-once", ours: "memory-once", quantity: quantity{metric: "pss", unit: "KiB", scale: 1.0 / 1024, shown: "MiB"},
			lines:  []line{{title: "64 ranks", size: 0, bound: 1}},
			claims: []results.Claim{{Text: "memory of each of 64 ranks"}},
		},
		{
			name: "start", rounds: 2, title: "Start and end of an empty job", ranks: 64, peers: both,
			args: "empty", ours: "empty", quantity: quantity{unit: "s", scale: 1, shown: "s", wallClock: true},
			lines:  []line{{title: "64 ranks", size: 0, bound: 1}},
			claims: []results.Claim{{Text: "start of 64 ranks"}},
		},
		{
			name: "idle", rounds: 1, title: "CPU of a rank that waits for 10 s in Recv", ranks: 2,
			ours: "idle", quantity: quantity{metric: "cpu", unit: "%", scale: 1, shown: "% of a core"},
			lines:  []line{{title: "waiting", size: 0, bound: 2}},
			claims: []results.Claim{{Text: "CPU while waiting, %"}},
		},
	}
}
