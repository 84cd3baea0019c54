package groups

// One-sided communication: put and get of three sizes into memory of MPI_Win_allocate, with a
// flush, and sixteen ranks that add to one word. The loops are those of loops/onesided.c
// and of `muster bench`.

func windowPlan() []*group {
	both := []contender{openMPI, mpich}
	var groups []*group
	for _, name := range []string{"put", "get"} {
		groups = append(groups, &group{
			name: "rma-" + name, title: "Time of a " + name + " with a flush, two ranks, shared memory", ranks: 2, peers: both,
			args: name + " -s 8,8192,1048576", ours: name + " --sizes 8,8192,1048576",
			metric: "latency", unit: "us", scale: 1, shown: "µs",
			lines: []line{{title: "8 B", size: 8, bound: 0.7}, {title: "8 KB", size: 8 << 10, bound: 1}, {title: "1 MB", size: 1 << 20, bound: 1}},
		})
	}
	return append(groups, &group{
		name: "rma-fop", title: "Fetch-and-add of 16 ranks on one word, aggregate rate", ranks: 16, peers: []contender{openMPI},
		note: "The sum is checked. Open MPI runs with mpi_yield_when_idle. MPICH is left out: it does not yield, and takes minutes when ranks outnumber cores.",
		args: "fop -i 20000", ours: "fop --iterations 20000",
		metric: "rate", unit: "op/s", scale: 1e-6, shown: "M/s", largerBetter: true,
		lines: []line{{title: "16 ranks", size: 0, bound: 1}},
	})
}
