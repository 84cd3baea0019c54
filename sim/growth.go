package sim

import (
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/sched"
)

// Operations estimates the operations of all ranks for a call, without building them: it
// builds the schedule of one rank for fewer ranks and extrapolates. It returns an error if
// the algorithm is not applicable.
func Operations(c *Call) (float64, error) {
	s := c.Shape
	s.Rank = s.Size - 1
	var b sched.Builder
	if s.Size <= 512 {
		g, err := c.Algorithm.Graph(&b, &s, c.Params)
		if err != nil {
			return 0, err
		}
		return float64(len(g.Ops)) * float64(s.Size), nil
	}
	if ok, _ := coll.Applicable(c.Algorithm, &s); !ok {
		_, err := c.Algorithm.Graph(&b, &s, c.Params)
		return 0, err
	}
	most := [2]int{}
	for i, n := range []int{256, 512} {
		small := s
		small.Size, small.Root = n, 0
		if s.Nodes != nil {
			small.Nodes = Layout(n, max(n*s.Nodes.Nodes()/s.Size, 2), s.Nodes.Rails)
		}
		for _, r := range []int{0, 1, n - 1} {
			small.Rank = r
			g, err := c.Algorithm.Graph(&b, &small, c.Params)
			if err != nil {
				return 0, err
			}
			most[i] = max(most[i], len(g.Ops))
		}
	}
	n := float64(s.Size)
	if float64(most[1]) < 1.6*float64(most[0]) {
		return n * float64(2*most[1]), nil // grows with the logarithm
	}
	return n * float64(most[1]) * n / 512, nil
}

// Layout returns the topology of ranks on nodes, consecutive and as equal as possible, or
// nil for one node.
func Layout(ranks, nodes, rails int) *coll.Topology {
	if nodes < 2 {
		return nil
	}
	nodeOf := make([]int, ranks)
	for r := range nodeOf {
		nodeOf[r] = int(int64(r) * int64(nodes) / int64(ranks))
	}
	return coll.NewTopology(nodeOf, rails)
}
