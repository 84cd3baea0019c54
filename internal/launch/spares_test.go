package launch

import (
	"reflect"
	"strings"
	"testing"
)

func TestAssignSpares(t *testing.T) {
	for _, c := range []struct {
		hosts     string
		n, spares int
		used      int
		ranks     [][]int
	}{
		{"a:4,b:4,c:4", 8, 4, 3, [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}},
		{"a:4,b:4,c:4", 0, 4, 3, [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}},
		{"a:3,b:3,c:3", 4, 2, 3, [][]int{{0, 1, 2}, {3, 5}, {4}}},
		{"a:4,b:4,c:4", 2, 1, 2, [][]int{{0, 1}, {2}}},
		{"a,b,c", 8, 2, 3, [][]int{{0, 1, 2}, {3, 4, 5, 9}, {6, 7, 8}}},
		{"a,b", 2, 3, 2, [][]int{{0, 3}, {1, 2, 4}}},
	} {
		hosts, err := ParseHosts(c.hosts)
		if err != nil {
			t.Fatal(err)
		}
		used, l, err := assignSpares(hosts, c.n, c.spares, MapBy{})
		if err != nil || len(used) != c.used || !reflect.DeepEqual(l.ranks, c.ranks) {
			t.Errorf("%s with -n %d and %d spares: %v, %v, %v; want %v", c.hosts, c.n, c.spares, used, l.ranks, err, c.ranks)
			continue
		}
		for host, ranks := range l.ranks {
			for _, r := range ranks {
				if l.host[r] != host {
					t.Errorf("rank %d of %v is on host %d, not %d", r, l.ranks, l.host[r], host)
				}
			}
		}
	}
	if _, _, err := assignSpares([]Host{{"a", 4}, {"b", 4}}, 8, 1, MapBy{}); err == nil || !strings.Contains(err.Error(), "8 ranks and 1 spares do not fit the 8 slots") {
		t.Errorf("more processes than slots must be rejected with all numbers: %v", err)
	}
}
