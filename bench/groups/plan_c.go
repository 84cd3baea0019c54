package groups

// Programs in C: the same binary on MPICH and, through the C interface, on ours; Open MPI
// has its own.

func cPlan() []*group {
	both := []contender{openMPI, mpich}
	return []*group{
		{
			name: "c-latency", title: "Half round trip in C, two ranks, shared memory", ranks: 2, peers: both, inC: true,
			args:   "latency -s 8,1024,65536,1048576",
			metric: "latency", unit: "us", scale: 1, shown: "µs",
			lines: []line{{title: "8 B", size: 8, bound: 0.9}, {title: "1 KB", size: 1024, bound: 0.9}, {title: "64 KB", size: 65536, bound: 1}, {title: "1 MB", size: 1 << 20, bound: 0.9}},
		},
		{
			name: "c-rate", title: "Message rate in C, window of 64, shared memory", ranks: 2, peers: both, inC: true,
			args:   "rate -s 8 -i 10000",
			metric: "rate", unit: "msg/s", scale: 1e-6, shown: "M/s", largerBetter: true,
			lines: []line{{title: "8 B", size: 8, bound: 1}},
		},
		{
			name: "c-memory", rounds: 1, title: "Memory of a rank in C (PSS, mean), 64 ranks, after each has sent to every other", ranks: 64, peers: both, inC: true,
			args: "memory-once", metric: "pss", unit: "KiB", scale: 1.0 / 1024, shown: "MiB",
			lines: []line{{title: "64 ranks", size: 0, bound: 1}},
		},
		{
			name: "c-start", rounds: 2, title: "Start and end of an empty job in C", ranks: 64, peers: both, inC: true,
			args: "empty", unit: "s", scale: 1, shown: "s", wallClock: true,
			lines: []line{{title: "64 ranks", size: 0, bound: 0.3}},
		},
	}
}
