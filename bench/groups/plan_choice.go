package groups

// The choice of the library against the best algorithm of every collective and size, on hosts
// with the same number of ranks and with different ones. Which algorithm is the best is
// measured in each run.

import (
	"fmt"
	"time"
)

// withinOfBest is how much longer than the best algorithm the choice may take.
const withinOfBest = 1.1

func choicePlan() []*group { return []*group{choiceGroup(16), choiceGroup(14)} }

func choiceGroup(ranks int) *group {
	sizes := []byteSize{size8, size256, size1K, size8K, size64K, size1M}
	g := &group{
		name: fmt.Sprintf("choice-%d", ranks), title: fmt.Sprintf("Time of the chosen algorithm relative to the best one, %d ranks on 4 hosts, two cables of 1 Gbit/s", ranks),
		note:  "The hosts are network namespaces of this machine; all ranks share its cores. All algorithms with all parameter values worth trying take part; in each run the fastest alternate with the choice call by call. Those that are estimated at three times the choice or more are called once and leave unless they are among the fastest; `muster bench choice` lists them.",
		ranks: ranks, transport: fourHosts(labRate), limit: 30 * time.Minute, onRequest: true,
		ours: "choice --sizes " + sizeList(sizes), quantity: quantity{unit: "ratio", scale: 1, shown: "ratio"},
	}
	for _, op := range []string{"barrier", "bcast", "gather", "scatter", "allgather", "alltoall", "reduce", "allreduce", "reduce-scatter", "scan", "exscan"} {
		for _, s := range sizes {
			l := line{title: op + ", " + s.title, size: s.bytes, metric: op + "/choice-by-best", bound: withinOfBest}
			if op == "barrier" {
				l.title, l.size = op, 0
			}
			g.lines = append(g.lines, l)
			if op == "barrier" {
				break
			}
		}
	}
	return g
}
