package coll

import (
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// Table 5.1 of T2, checked against the schedules: connections, bytes on the network, and
// bytes written to and read from shared memory, for each node. The table has 4 nodes of
// 4 ranks; these are its formulas for n nodes of p ranks and g groups, with M bytes from
// each rank:
//
//	              connections   network     written      read
//	single-conn.  1             p(n-1)M     pM + npM     pM + p·npM
//	g groups      g(n-1)        p(n-1)M     pM + npM     pM + p·npM
//	g = p         p(n-1)        p(n-1)M     npM          p·npM
//	gather-based  n-1           p(n-1)M     pM + npM     p·pM + p·npM
//
// T2's ranks write and read their own blocks as well, through the segment. Here a leader
// already has its own block and the blocks from the network, so its own share is
// subtracted: M written and M + npM/g read for each of the g leaders. In the gather-based
// form no rank reads back its own block, and the blocks of the own node, which all its
// ranks have, are not distributed again.

const complexityBytes = 48

// trafficOf builds a schedule on nodes with the given numbers of ranks and counts its
// traffic.
func trafficOf(t *testing.T, name string, params []int, counts ...int) []sched.Traffic {
	t.Helper()
	a, err := Find(Allgather, name)
	if err != nil {
		t.Fatal(err)
	}
	return trafficOfForm(t, a, params, counts...)
}

func trafficOfForm(t *testing.T, a *Algorithm, params []int, counts ...int) []sched.Traffic {
	t.Helper()
	nodes := Consecutive(1, counts...)
	s := Shape{Kind: Allgather, Size: nodes.Size(), Elem: 1, Recv: Blocks{Each: complexityBytes}, Nodes: nodes}
	graphs := make([]*sched.Graph, s.Size)
	for r := range graphs {
		var b sched.Builder
		var err error
		s.Rank = r
		if graphs[r], err = a.Graph(&b, &s, params); err != nil {
			t.Fatal(err)
		}
	}
	traffic, err := sched.TrafficOf(graphs, nodes.NodeList())
	if err != nil {
		t.Fatal(err)
	}
	return traffic
}

func TestComplexity(t *testing.T) {
	const m = complexityBytes
	for _, c := range []struct{ n, p int }{{4, 4}, {2, 2}, {3, 4}, {5, 6}, {8, 4}, {4, 8}} {
		n, p := c.n, c.p
		counts := make([]int, n)
		for i := range counts {
			counts[i] = p
		}
		network := p * (n - 1) * m
		groups := func(g, connections int) sched.Traffic {
			return sched.Traffic{Out: connections, In: connections, Sent: network, Received: network,
				Writes: p - g + g, Written: p*m + n*p*m - g*m,
				Reads: p - g + p*g - g, Read: p*m + p*n*p*m - (g*m + n*p*m)}
		}
		gathered := sched.Traffic{Out: n - 1, In: n - 1, Sent: network, Received: network,
			Writes: p + 1, Written: p*m + n*p*m - p*m,
			Reads: p*(p-1) + p - 1, Read: p*p*m + p*n*p*m - p*m - n*p*m - (p-1)*p*m}
		for _, row := range []struct {
			name   string
			params []int
			want   sched.Traffic
		}{
			{"node-groups", []int{1, 1, copied}, groups(1, 1)},                        // 1-group single-connection
			{"node-ring", []int{1, copied}, groups(1, 1)},                             // the same as a ring
			{"node-groups", []int{1, 16, copied}, groups(1, n-1)},                     // 1-group multi-connection
			{"node-groups", []int{2, 16, copied}, groups(2, 2*(n-1))},                 // 2-group
			{"node-groups", []int{4, 16, copied}, groups(min(4, p), min(4, p)*(n-1))}, // 4-group
			{"node-spread", nil, gathered},                                            // gather-based
		} {
			if p%2 != 0 || row.params != nil && row.params[0] > 1 && p%min(row.params[0], p) != 0 {
				continue // the table has no groups of different size
			}
			for node, got := range trafficOf(t, row.name, row.params, counts...) {
				if got != row.want {
					t.Errorf("%s %v, %d nodes of %d ranks, node %d: %+v, by table 5.1 %+v", row.name, row.params, n, p, node, got, row.want)
				}
			}
		}
	}
}

// TestComplexityUneven checks that nodes of any size send their blocks to every other
// node once and receive those of the others once, with any number of groups.
func TestComplexityUneven(t *testing.T) {
	counts := []int{1, 5, 3, 7}
	all := (1 + 5 + 3 + 7) * complexityBytes
	for _, row := range []struct {
		name   string
		params [][]int
	}{
		{"node-groups", [][]int{{1, 1, 1}, {2, 16, 1}, {4, 16, 2}, {8, 1, 2}}},
		{"node-ring", [][]int{{1, 1}, {4, 2}}},
		{"node-spread", [][]int{nil}},
	} {
		for _, params := range row.params {
			t.Run(fmt.Sprint(row.name, params), func(t *testing.T) {
				for node, got := range trafficOf(t, row.name, params, counts...) {
					if own := counts[node] * complexityBytes; got.Received != all-own || row.name != "node-ring" && got.Sent != own*(len(counts)-1) {
						t.Errorf("node %d of %v: sends %d and receives %d bytes", node, counts, got.Sent, got.Received)
					}
				}
			})
		}
	}
}
