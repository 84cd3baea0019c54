package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// Benchmark describes a benchmark.
type Benchmark struct {
	Name  string
	Title string // heading of the text output
	Doc   string // one line for the list
	Group string // one of Groups
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
	// Variants are compared if none are named. With Sweep they are compared for several
	// numbers of ranks, unless one is named.
	Variants []string
	Sweep    *Sweep
	Flags    []Flag // of its own
	// Validate, if not nil, returns an error if the value of a flag is invalid.
	Validate func(p *Params) error
	// Settings are set in the environment of the ranks.
	Settings []string
}

// Sweep is a table of figures by number of ranks.
type Sweep struct {
	Ranks   []int
	Columns []string // metrics, each with the unit in brackets
}

// Flag is a flag of a benchmark.
type Flag struct {
	Name, Help string
	// Value returns a pointer to a field of Params: an int, a float64, a time.Duration or a
	// slice of float64 or strings.
	Value   func(p *Params) any
	Choices []string // for completion
	// Start, if not nil, returns the value for the ranks when they are started without the flag.
	Start func() string
	// From is a metric of the first variant in µs, if the flag has its value for all others.
	From string
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
	Calls         []string // reuse and spectrum: some of reuseCalls; nil: the first
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

// group is a heading of the list of benchmarks. The file of a benchmark has its row.
type group struct {
	title string
	rows  []Benchmark
}

func groups() []group {
	return []group{
		{"Messages", slices.Concat(pingpongBenchmarks(), streamBenchmarks(), deviceBenchmarks(), concurrentBenchmarks(), overheadBenchmarks())},
		{"Collectives", slices.Concat(collectiveBenchmarks(), neighborhoodBenchmarks(), stallBenchmarks())},
		{"Windows", windowBenchmarks()},
		{"Files", ioBenchmarks()},
		{"Overlap and progress", slices.Concat(overlapBenchmarks(), progressBenchmarks(), exchangeBenchmarks())},
		{"Reuse of buffers", frequentBenchmarks()},
		{"Start, memory and processor", slices.Concat(startBenchmarks(), memoryBenchmarks(), resourceBenchmarks(), cpuBenchmarks(), cipherBenchmarks())},
		{"Failures", slices.Concat(failureBenchmarks(), checkpointBenchmarks())},
	}
}

// Groups lists the titles of the groups in the order of the list.
func Groups() (titles []string) {
	for _, g := range groups() {
		titles = append(titles, g.title)
	}
	return titles
}

// All lists the benchmarks by name.
func All() []Benchmark {
	var list []Benchmark
	for _, g := range groups() {
		for _, b := range g.rows {
			b.Group = g.title
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b Benchmark) int { return strings.Compare(a.Name, b.Name) })
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
