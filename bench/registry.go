package bench

import (
	"fmt"
	"sort"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// Benchmark describes a benchmark.
type Benchmark struct {
	Name  string
	Title string // heading of the text output
	Doc   string // one line for the list
	Ranks int    // number of ranks
	// AnyRanks permits other numbers of ranks.
	AnyRanks bool
	Sizes    []int // default sizes; nil if it has none
	Metric   string
	Unit     string
	Column   string // heading of the value
	// Protocols permits comparing protocols of long messages.
	Protocols bool
	// Devices permits comparing devices.
	Devices bool
	// Collective names the collective whose algorithms can be compared, if any. Irregular
	// means that blocks may differ in length, NonBlocking that the call does not wait;
	// not every algorithm supports these.
	Collective             string
	Irregular, NonBlocking bool
	Run                    func(c *mpi.Comm, p *Params, emit func(Result)) error
	// Alternating, if not nil, is Run in several worlds of the same ranks with different
	// settings. The first argument of emit is the index of the world.
	Alternating func(worlds []*mpi.Comm, p *Params, emit func(int, Result)) error
	// Worlds, if not nil, are the worlds that Alternating always compares.
	Worlds []World
	Calls  bool // Params.Calls selects from ReuseCalls
	// Settings are set in the environment of the ranks.
	Settings []string
}

// World is a named set of environment settings.
type World struct {
	Name     string
	Settings []string
}

// Params are the parameters of a benchmark.
type Params struct {
	Sizes      []int
	Iterations int       // 0: by size
	Warmup     int       // 0: a tenth of the iterations
	Window     int       // messages in flight; 0: 64
	Threads    int       // mt-latency; 0: 2
	Seconds    int       // idle; 0: 10
	Since      float64   // first-message: Unix time in seconds; 0: when the ranks have joined
	Delay      float64   // progress: multiple of the latency; 0: 5
	Ratios     []float64 // exchange: communication to computation; nil: from 0.1 to 4
	// Communication is the assumed time of an iteration of exchange without computation;
	// 0: measured.
	Communication time.Duration
	Touch         bool
	Calls         []string // reuse and spectrum: some of ReuseCalls; nil: the first
}

// iterations returns the number of iterations for a size.
func (p *Params) iterations(size, small, large int) (warmup, n int) {
	n = p.Iterations
	if n == 0 {
		n = small
		if size > 8<<10 {
			n = max(large, small*(8<<10)/size)
		}
	}
	warmup = p.Warmup
	if warmup == 0 {
		warmup = max(n/10, 10)
	}
	return warmup, n
}

func (p *Params) window() int {
	if p.Window == 0 {
		return 64
	}
	return p.Window
}

func (p *Params) delay() float64 {
	if p.Delay == 0 {
		return 5
	}
	return p.Delay
}

var powers = func() []int {
	var s []int
	for n := 1; n <= 4<<20; n *= 2 {
		s = append(s, n)
	}
	return s
}()

// overlapSizes begin at 1 KB: shorter messages take too little time to compute in.
var overlapSizes = powers[10:]

// All lists the benchmarks by name.
func All() []Benchmark {
	list := []Benchmark{
		{Name: "latency", Title: "Latency Test", Doc: "half round trip of a blocking ping-pong", Ranks: 2, Sizes: powers,
			Metric: "latency", Unit: "us", Column: "Latency (us)", Run: latency, Devices: true},
		{Name: "mt-latency", Title: "Multi-threaded Latency Test", Doc: "ping-pong of several goroutines at once", Ranks: 2, Sizes: powers,
			Metric: "latency", Unit: "us", Column: "Latency (us)", Run: multiLatency},
		{Name: "bw", Title: "Bandwidth Test", Doc: "a window of sends one way", Ranks: 2, Sizes: powers,
			Metric: "bandwidth", Unit: "MB/s", Column: "Bandwidth (MB/s)", Run: bandwidth, Devices: true},
		{Name: "bibw", Title: "Bi-Directional Bandwidth Test", Doc: "windows of sends both ways", Ranks: 2, Sizes: powers,
			Metric: "bandwidth", Unit: "MB/s", Column: "Bandwidth (MB/s)", Run: bothways, Devices: true},
		{Name: "rate", Title: "Message Rate Test", Doc: "messages a second in a window one way", Ranks: 2, Sizes: []int{8},
			Metric: "rate", Unit: "msg/s", Column: "Messages/s", Run: rate, Devices: true},
		{Name: "device-latency", Title: "Latency of the Bare Device and of MPI over it", Doc: "ping-pong without and with the messaging layer, alternating", Ranks: 2, Sizes: []int{8},
			Metric: "latency", Unit: "us", Column: "Latency (us)", Run: deviceLatency},
		{Name: "memory-once", Title: "Memory after All Have Sent to All", Doc: "proportional memory of a rank (PSS) after every rank has sent 8 bytes to every other", Ranks: 8, AnyRanks: true,
			Metric: "pss", Unit: "KiB", Column: "PSS (KiB)", Run: memoryOnce},
		{Name: "memory", Title: "Communication Memory of a Rank", Doc: "memory, descriptors and connections of a rank after every rank has sent to every other; without -n for 2 to 64 ranks", Ranks: 2, AnyRanks: true,
			Metric: "memory", Unit: "KiB", Column: "most of any rank (KiB)", Run: memory, Devices: true},
		{Name: "multipair", Title: "Bi-Directional Bandwidth of Several Pairs", Doc: "windows of sends both ways, by all pairs of ranks at once", Ranks: 4, AnyRanks: true, Sizes: powers,
			Metric: "bandwidth", Unit: "MB/s", Column: "Bandwidth (MB/s)", Run: multipair, Devices: true},
		{Name: "multipair-latency", Title: "Latency of Several Pairs", Doc: "half round trip of a ping-pong by all pairs of ranks at once, mean over pairs", Ranks: 4, AnyRanks: true, Sizes: powers,
			Metric: "latency", Unit: "us", Column: "Latency (us)", Run: multipairLatency, Devices: true},
		{Name: "allgather-groups", Title: "Aggregate Bandwidth of Concurrent Allgathers", Doc: "independent allgathers of several groups of ranks at once, one rank of each node in a group: the sum of their bandwidths by the number of groups (T2 figure 5.2)", Ranks: 8, AnyRanks: true, Sizes: powers[:18],
			Collective: "allgather", Metric: "groups-1", Unit: "MB/s", Column: "Bandwidth (MB/s)", Run: allgatherGroups},
		{Name: "checkpoint", Title: "Checkpoint Latency Test", Doc: "time of a checkpoint in the memory of two ranks", Ranks: 2, AnyRanks: true, Sizes: powers[10:],
			Metric: "latency", Unit: "us", Column: "Latency (us)", Run: checkpoint},
		{Name: "idle", Title: "CPU of a Waiting Rank", Doc: "share of a core that a rank uses while it waits in Recv", Ranks: 2,
			Metric: "cpu", Unit: "%", Column: "CPU (%)", Run: idle},
		{Name: "first-message", Title: "From Start to First Message", Doc: "time from the start of the launcher until every rank has received a message, and business cards fetched for it", Ranks: 64, AnyRanks: true,
			Metric: "first-message", Unit: "s", Column: "Time (s)", Run: firstMessage},
		{Name: "registration", Title: "Registration of Memory", Doc: "registering and deregistering memory with the device, and from the cache when it is used again", Ranks: 2,
			Sizes: []int{4 << 10, 64 << 10, 1 << 20, 4 << 20}, Metric: "registration", Unit: "us", Column: "Time (us)", Run: registration},
		{Name: "overlap", Title: "Overlap of Transfer and Computation", Doc: "share of a transfer that a computation behind the non-blocking call can hide, either side, either side first", Ranks: 2,
			Sizes: overlapSizes, Metric: "overlap", Unit: "%", Column: "Overlap (%)", Run: overlap, Protocols: true},
		{Name: "progress", Title: "Progress without Calls", Doc: "share of a transfer that is done during a delay behind the non-blocking call, either side, either side first", Ranks: 2,
			Sizes: overlapSizes, Metric: "progress", Unit: "%", Column: "Progress (%)", Run: progress, Protocols: true},
		{Name: "exchange", Title: "Produce, Exchange and Consume", Doc: "time of an iteration that produces, exchanges and consumes, by the ratio of communication to computation", Ranks: 2,
			Sizes: []int{128 << 10}, Metric: "iteration", Unit: "us", Column: "Iteration (us)", Run: exchange, Protocols: true},
		{Name: "rndv-overhead", Title: "Cost of Speculation without Benefit", Doc: "loops in which an RTR crosses an RTS, or the receiver predicts the wrong protocol", Ranks: 2,
			Sizes: []int{1 << 10, 8 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20, 4 << 20}, Metric: "latency", Unit: "us", Column: "Latency (us)", Run: rendezvousOverhead, Alternating: overheadAlternating, Protocols: true},
		{Name: "stalls", Title: "Stalled Rounds of Alltoall", Doc: "rounds of alltoall one by one: median, p99, maximum, and the number above 5 times the median, with counters of their causes and the pauses of the machines themselves", Ranks: 16, AnyRanks: true,
			Sizes: []int{8 << 10}, Metric: "round", Unit: "us", Column: "Round (us)", Run: stalls},
		{Name: "cpu", Title: "Processor Time of a Message", Doc: "processor time of sender and receiver for a message of a paced stream, in which both sleep most of the time", Ranks: 2,
			Sizes: []int{8 << 10}, Metric: "cpu", Unit: "us", Column: "CPU (us)", Run: cpuOfMessage},
		{Name: "cipher", Title: "Cipher of Encrypted Messages", Doc: "speed on one core of AES-128-GCM, which encrypts messages (MUSTER_ENCRYPT=on), and the time to seal and open a message", Ranks: 1,
			Sizes: []int{8, 1400, 16 << 10, 1 << 20}, Metric: "bandwidth", Unit: "MB/s", Column: "Bandwidth (MB/s)", Run: cipherSpeed},
		{Name: "empty", Title: "Empty Job", Doc: "joins and leaves; time it from outside", Ranks: 2, AnyRanks: true,
			Run: func(*mpi.Comm, *Params, func(Result)) error { return nil }},
	}
	list = append(list, collectiveBenchmarks()...)
	list = append(list, neighborhoodBenchmarks()...)
	list = append(list, frequentBenchmarks()...)
	list = append(list, windowBenchmarks()...)
	list = append(list, failureBenchmarks()...)
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// Find returns the benchmark with a name.
func Find(name string) (Benchmark, error) {
	for _, b := range All() {
		if b.Name == name {
			return b, nil
		}
	}
	return Benchmark{}, fmt.Errorf("bench: no benchmark %q; `muster bench` lists them", name)
}

// Check returns an error if a job of n ranks cannot run the benchmark.
func (b Benchmark) Check(n int) error {
	if n == b.Ranks || b.AnyRanks {
		return nil
	}
	return fmt.Errorf("bench: %s runs on %d ranks, not %d: muster run -n %d muster bench %s", b.Name, b.Ranks, n, b.Ranks, b.Name)
}
