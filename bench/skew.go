package bench

// The process arrival patterns of T2 6.3.2 and 6.5.1. Before a call, each rank is delayed by
// a random time of at most the maximum imbalance factor (MIF) times the time of a message of
// the same size; or a given share of the ranks, others in each call, is delayed by all of
// that time, and the rest is not. The delays follow from the numbers of the call and of the
// rank, so that every library gets the same ones: groups/loops/skew.c has the same
// functions.

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Pattern is a process arrival pattern.
type Pattern struct {
	MIF float64
	// Late is the share of the ranks that are delayed by all of the time; 0: all delays
	// are random.
	Late float64
}

// String returns the name of a pattern as in metrics: mif-32, mif-128-late-25.
func (p Pattern) String() string {
	if p.Late == 0 {
		return fmt.Sprintf("mif-%g", p.MIF)
	}
	return fmt.Sprintf("mif-%g-late-%g", p.MIF, math.Round(p.Late*1000)/10)
}

// delay returns the delay of a rank before a call.
func (p Pattern) delay(call, rank, ranks int, message time.Duration) time.Duration {
	most := p.MIF * float64(message)
	if p.Late == 0 {
		return time.Duration(chance(call, rank) * most)
	}
	late := max(1, int(p.Late*float64(ranks)+.5))
	mine, before := chance(call, rank), 0
	for r := range ranks {
		if c := chance(call, r); c < mine || c == mine && r < rank {
			before++
		}
	}
	if before < late {
		return time.Duration(most)
	}
	return 0
}

// chance returns a number from 0 to below 1 for a rank in a call: the output function of
// SplitMix64 on their numbers.
func chance(call, rank int) float64 {
	x := uint64(call)<<32 + uint64(rank) + 1
	for range 2 { // decorrelate adjacent numbers
		x += 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return float64(x>>11) / (1 << 53)
}

// moment has the arrival of a rank at a call and its exit, in ns of one clock, and the
// processor time of its process for the call and the barrier before it, in ns.
type moment struct{ Arrival, Exit, CPU int64 }

// callTimes summarizes one call over all ranks, in µs.
type callTimes struct {
	mean  float64 // in the call, over the ranks: T2's completion time
	bound float64 // until the last arrival: a lower bound if every rank needs all
	tail  float64 // from the last arrival to the last exit
	cpu   float64 // processor time of all ranks
}

func timesOf(ranks []moment) callTimes {
	lastIn, lastOut := ranks[0].Arrival, ranks[0].Exit
	for _, m := range ranks {
		lastIn, lastOut = max(lastIn, m.Arrival), max(lastOut, m.Exit)
	}
	var in, wait, cpu float64
	for _, m := range ranks {
		cpu += float64(m.CPU)
		in += float64(m.Exit - m.Arrival)
		wait += float64(lastIn - m.Arrival)
	}
	n := float64(len(ranks)) * 1e3
	return callTimes{mean: in / n, bound: wait / n, tail: float64(lastOut-lastIn) / 1e3, cpu: cpu / 1e3}
}

// SkewFigure summarizes the calls of one collective of one size under one pattern by one
// algorithm. Times are in µs.
type SkewFigure struct {
	Collective string
	Size       int
	Pattern    Pattern
	Algorithm  string
	Calls      int
	Message    float64 // the time that MIF multiplies
	// Mean is the time in the call, and Bound the time until the last arrival: both means
	// over ranks and calls.
	Mean, Bound Result
	// Tail is from the last arrival to the last exit: the median over the calls.
	Tail Result
	// CPU is the processor time of all ranks for a call and the barrier before it: the mean
	// over the calls. It contains the polling of ranks that wait.
	CPU Result
	// TailRatio is the median over the calls of this tail divided by that of the first
	// algorithm under the same arrivals; 1 for the first itself.
	TailRatio float64
}

// fewestForP99: of fewer calls, the 99th percentile would be the longest call.
const fewestForP99 = 100

// figureOf summarizes the calls of one algorithm; first are those of the first algorithm.
func figureOf(f SkewFigure, calls, first []callTimes) SkewFigure {
	pick := func(of func(callTimes) float64) (values []float64) {
		for _, c := range calls {
			values = append(values, of(c))
		}
		return values
	}
	name := f.Collective + "/" + f.Pattern.String()
	result := func(what string) Result {
		return Result{Bench: "coll", Size: f.Size, Metric: name + "/" + what, Unit: "us", Protocol: f.Algorithm}
	}
	f.Calls = len(calls)
	f.Mean = average(result("mean"), pick(func(c callTimes) float64 { return c.mean }))
	f.Bound = average(result("bound"), pick(func(c callTimes) float64 { return c.bound }))
	f.Tail = middle(result("tail"), pick(func(c callTimes) float64 { return c.tail }))
	f.CPU = average(result("cpu"), pick(func(c callTimes) float64 { return c.cpu }))
	if f.Calls < fewestForP99 {
		f.Mean.P99, f.Bound.P99, f.Tail.P99, f.CPU.P99 = 0, 0, 0, 0
	}
	var ratios []float64
	for i := range calls {
		ratios = append(ratios, calls[i].tail/first[i].tail)
	}
	f.TailRatio = Median(ratios)
	return f
}

// Results returns the figures one by one.
func (f SkewFigure) Results() []Result {
	f.Bound.Beside, f.CPU.Beside = true, true
	by := f.Mean
	by.Metric, by.Unit, by.Beside = by.Metric+"-by-bound", "ratio", true
	if by.Value = 0; f.Bound.Value > 0 {
		by.Value = f.Mean.Value / f.Bound.Value
	}
	by.Min, by.P50, by.P99 = by.Value, by.Value, 0
	return []Result{f.Mean, f.Bound, by, f.Tail, f.CPU}
}

// SkewCollectives returns the names of the collectives that Skew measures.
func SkewCollectives() []string {
	var names []string
	for _, k := range collectives() {
		if !k.irregular {
			names = append(names, k.name)
		}
	}
	return slices.Sorted(slices.Values(names))
}
