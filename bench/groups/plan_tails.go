package groups

// Collectives on four hosts of four ranks with two cables of 1 Gbit/s: from the last arrival
// to the last exit, compared with Open MPI.

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/bench/results"
)

// tails is one collective: its sizes, and the bounds of the ratios that are not 1.
type tails struct {
	op    string
	sizes []skewSize
	// bounds are those of MIF 1 and MIF 32, by size.
	bounds map[skewSize][2]float64
	// means are the bounds of the mean time in the call.
	means map[skewSize][2]float64
	// onRequest: measured only if -only names it.
	onRequest bool
}

var tailFactors = [2]int{1, 32}

func labCollectivePlan() []*group {
	short := []skewSize{skew4B, skew1K, skew8K, skew64K, skew1M}
	every := []tails{
		{
			op: "alltoall", sizes: []skewSize{skew4B, skew256B, skew1K, skew8K, skew64K, skew1M},
			bounds: map[skewSize][2]float64{skew256B: {1, 1.2}, skew1K: {1, 1.2}, skew8K: {0.9, 1.2}, skew64K: {0.9, 1.2}, skew1M: {0.9, 1.2}},
			means:  map[skewSize][2]float64{skew256B: {0.8, 1}, skew1K: {0.8, 1}},
		},
		{op: "allgather", sizes: short},
		{op: "bcast", sizes: short, bounds: map[skewSize][2]float64{skew64K: {0.4, 0.6}}, onRequest: true},
		{op: "reduce", sizes: short, bounds: map[skewSize][2]float64{skew64K: {0.85, 0.95}, skew1M: {0.6, 0.85}}, onRequest: true},
		{
			op: "allreduce", sizes: []skewSize{skew4B, skew1K, skew8K, skew64K, skew256K, skew1M, skew4M},
			bounds: map[skewSize][2]float64{skew64K: {0.85, 1}, skew256K: {0.85, 1}, skew1M: {0.85, 1}, skew4M: {0.85, 1}},
		},
		{op: "gather", sizes: short, onRequest: true},
		{op: "scatter", sizes: short, onRequest: true},
		{op: "scan", sizes: short, onRequest: true},
		{op: "exscan", sizes: short, onRequest: true},
	}
	var groups []*group
	for _, t := range every {
		groups = append(groups, t.group())
	}
	groups[0].claims = []results.Claim{{Text: "four hosts: collectives after the last arrival", Tables: "coll-lab-*"}}
	return groups
}

// group returns the group of a collective with the default algorithm.
func (t tails) group() *group {
	g := skewGroup("coll-lab-"+t.op, "Time of "+t.op+" from the last arrival to the last exit", []string{t.op}, t.sizes, tailFactors[:], []int{0})
	g.chart, g.onRequest, g.limit = true, t.onRequest, 2*time.Minute
	g.note += " CPU: of all ranks, per call and the barrier before it; ranks that wait yield, so it contains their polling."
	line := func(kind, metric string, s skewSize, mif int, bound float64) {
		g.lines = append(g.lines, line{title: fmt.Sprintf("%sMIF %d, %s", kind, mif, s.title), size: int64(s.bytes), metric: fmt.Sprintf("%s/mif-%d/%s", t.op, mif, metric), bound: bound})
	}
	for i, mif := range tailFactors {
		for _, s := range t.sizes {
			bound := 1.0
			if b, ok := t.bounds[s]; ok {
				bound = b[i]
			}
			line("", "tail", s, mif, bound)
		}
	}
	for i, mif := range tailFactors {
		for _, s := range t.sizes {
			if b, ok := t.means[s]; ok {
				line("mean in the call, ", "mean", s, mif, b[i])
			}
		}
	}
	for _, mif := range tailFactors {
		for _, s := range t.sizes {
			line("CPU, ", "cpu", s, mif, unbound)
		}
	}
	return g
}
