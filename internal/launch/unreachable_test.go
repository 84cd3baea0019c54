package launch

import (
	"slices"
	"testing"
)

// Four hosts with four ranks each.
func TestMostUnreached(t *testing.T) {
	hostOf := make([]int, 16)
	for r := range hostOf {
		hostOf[r] = r / 4
	}
	for _, c := range []struct {
		name  string
		pairs []rankPair
		host  int
		ranks []int
		by    []int
	}{
		{"the host that nobody reaches", []rankPair{{0, 4}, {4, 8}, {5, 12}, {3, 6}}, 1, []int{4, 5, 6}, []int{0, 3, 8, 12}},
		{"the first host, if all others miss it", []rankPair{{0, 4}, {0, 8}, {0, 12}}, 0, []int{0}, []int{4, 8, 12}},
		{"the last of two", []rankPair{{1, 4}, {0, 5}}, 1, []int{4, 5}, []int{0, 1}},
		{"ranks of one host", []rankPair{{1, 2}, {0, 3}}, 0, []int{3}, []int{0}},
		{"a pair of one host does not count", []rankPair{{4, 5}, {4, 12}, {8, 12}}, 3, []int{12}, []int{4, 8}},
	} {
		host, ranks := mostUnreached(c.pairs, hostOf)
		by := unreachedBy(c.pairs, ranks)
		if host != c.host || !slices.Equal(ranks, c.ranks) || !slices.Equal(by, c.by) {
			t.Errorf("%s: host %d, ranks %v, for %v; want host %d, ranks %v, for %v", c.name, host, ranks, by, c.host, c.ranks, c.by)
		}
	}
}
