package coll

import (
	"fmt"
	"math/rand"
	"reflect"
	"runtime"
	"testing"
)

// TestTopology compares topologies of blocks and of tables with lists.
func TestTopology(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for round := range 200 {
		size := 2 + rng.Intn(40)
		nodeOf := make([]int, size)
		for r := range nodeOf {
			switch round % 4 {
			case 0: // equal nodes, the last one smaller
				nodeOf[r] = r / 4
			case 1: // any lengths, names in any order
				if r > 0 {
					nodeOf[r] = nodeOf[r-1]
					if rng.Intn(3) == 0 {
						nodeOf[r] = (nodeOf[r-1] + 7) % 1009
					}
				}
			case 2:
				nodeOf[r] = r % 3
			case 3:
				nodeOf[r] = rng.Intn(4)
			}
		}
		numbers := map[int]int{}
		var want [][]int
		for r, name := range nodeOf {
			if _, known := numbers[name]; !known {
				numbers[name] = len(want)
				want = append(want, nil)
			}
			want[numbers[name]] = append(want[numbers[name]], r)
		}
		top := NewTopology(nodeOf, 1)
		if len(want) < 2 {
			if top != nil {
				t.Fatalf("%v: a topology of one node is %v", nodeOf, top)
			}
			continue
		}
		if got := top.lists(); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v: the nodes are %v, want %v", nodeOf, got, want)
		}
		below := 0
		for n, ranks := range want {
			for i, r := range ranks {
				if top.NodeOf(r) != n || top.LocalRankOf(r) != i || top.RankAt(n, i) != r || top.Count(n) != len(ranks) || top.ranksBefore(n) != below {
					t.Fatalf("%v: rank %d is local rank %d of %d on node %d, want %d of %d on %d", nodeOf, r,
						top.LocalRankOf(r), top.Count(n), top.NodeOf(r), i, len(ranks), n)
				}
			}
			below += len(ranks)
		}
	}
}

// TestTopologyOfBlocks checks that ranks numbered node by node need no list, also if some
// nodes differ.
func TestTopologyOfBlocks(t *testing.T) {
	nodeOf := func(r int) int {
		if r >= 500_000 { // a node of the second half has one rank less
			return 10_000 + (r-500_000)/63
		}
		return r / 64
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	top := TopologyOf(scaleRanks, nodeOf, 2)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int(after.HeapAlloc) - int(before.HeapAlloc); held > 4<<10 {
		t.Errorf("the topology of a million ranks holds %d bytes, want at most 4096", held)
	}
	if got := fmt.Sprint(top.Nodes(), " ", top.NodeOf(500_000), " ", top.Count(7812), " ", top.LocalRankOf(999_999)); got != "15750 7813 32 31" {
		t.Errorf("nodes, the node of rank 500,000, the ranks of node 7812, and the last local rank are %s", got)
	}
	runtime.KeepAlive(top)
}
