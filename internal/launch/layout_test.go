package launch

import (
	"reflect"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/internal/traffic"
)

func TestAssignRanks(t *testing.T) {
	for _, c := range []struct {
		hosts   string
		n       int
		by      string
		ranks   [][]int
		mapping string
	}{
		{"a:4,b:4", 0, "slot", [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}}, "(vector,(0,2,4))"},
		{"a:4,b:4", 6, "slot", [][]int{{0, 1, 2, 3}, {4, 5}}, "(vector,(0,1,4),(1,1,2))"},
		{"a:4,b:4", 3, "slot", [][]int{{0, 1, 2}}, "(vector,(0,1,3))"},
		{"a,b,c", 0, "slot", [][]int{{0}, {1}, {2}}, "(vector,(0,3,1))"},
		{"a,b,c", 8, "slot", [][]int{{0, 1, 2}, {3, 4, 5}, {6, 7}}, "(vector,(0,2,3),(2,1,2))"},
		{"a,b,c", 2, "slot", [][]int{{0}, {1}}, "(vector,(0,2,1))"},
		{"a:2,b,c:2", 0, "slot", [][]int{{0, 1}, {2}, {3, 4}}, "(vector,(0,1,2),(1,1,1),(2,1,2))"},
		{"a:4,b:4", 4, "node", [][]int{{0, 2}, {1, 3}}, "(vector,(0,2,1))"},
		{"a:4,b:4", 5, "node,socket", [][]int{{0, 2, 4}, {1, 3}}, "(vector,(0,2,1),(0,2,1),(0,1,1))"},
		{"a:1,b:3", 0, "node", [][]int{{0}, {1, 2, 3}}, "(vector,(0,1,1),(1,1,3))"},
		{"a,b,c", 7, "node", [][]int{{0, 3, 6}, {1, 4}, {2, 5}}, "(vector,(0,3,1),(0,3,1),(0,1,1))"},
		{"a,b,c", 2, "node", [][]int{{0}, {1}}, "(vector,(0,2,1))"},
	} {
		hosts, err := ParseHosts(c.hosts)
		if err != nil {
			t.Fatal(err)
		}
		by, err := ParseMapBy(c.by)
		if err != nil {
			t.Fatal(err)
		}
		used, l, err := assignRanks(hosts, c.n, by)
		if err != nil || len(used) != len(c.ranks) || !reflect.DeepEqual(l.ranks, c.ranks) {
			t.Errorf("%s with -n %d by %s: %v, %v, %v; want %v", c.hosts, c.n, c.by, used, l.ranks, err, c.ranks)
			continue
		}
		if got := pmi.FormatMapping(l.host); got != c.mapping {
			t.Errorf("%v is the mapping %s, not %s", c.ranks, c.mapping, got)
		}
		for host, ranks := range l.ranks {
			for _, r := range ranks {
				if got := l.host[r]; got != host {
					t.Errorf("rank %d of %v is on host %d, not %d", r, l.ranks, host, got)
				}
			}
		}
	}
	if _, _, err := assignRanks([]Host{{"a", 4}, {"b", 4}}, 9, MapBy{}); err == nil || !strings.Contains(err.Error(), "9 ranks do not fit the 8 slots of a:4, b:4") {
		t.Errorf("more ranks than slots must be rejected with both numbers: %v", err)
	}
}

// Ranks 0 and 3 talk, and so do 1 and 2. Spares keep their places.
func TestAssignByTraffic(t *testing.T) {
	m := traffic.New(4)
	m.Add(0, 3, 1000)
	m.Add(2, 1, 1000)
	hosts := []Host{{"a", 2}, {"b", 3}}
	_, l, err := assignSpares(hosts, 4, 1, MapBy{Traffic: m})
	if err != nil || l.host[0] != l.host[3] || l.host[1] != l.host[2] || l.host[0] == l.host[1] || l.host[4] != 1 {
		t.Errorf("ranks are on hosts %v, %v", l.host, err)
	}
	if _, _, err := assignRanks(hosts, 5, MapBy{Traffic: m}); err == nil || !strings.Contains(err.Error(), "traffic is that of 4 ranks, but the job has 5") {
		t.Errorf("a trace of another number of ranks must be rejected: %v", err)
	}
}

func TestParseMapBy(t *testing.T) {
	for text, want := range map[string]MapBy{
		"slot": {}, "core": {}, "node": {Node: true}, "socket": {Within: DomainSocket}, "numa": {Within: DomainNUMA},
		"node,numa": {Node: true, Within: DomainNUMA}, "socket,slot": {Within: DomainSocket},
	} {
		if got, err := ParseMapBy(text); got != want || err != nil {
			t.Errorf("%q is %+v, got %+v, %v", text, want, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "unknown mapping", "board": `unknown mapping "board"`, "node,slot": "node and slot exclude each other", "core,numa": "core and numa exclude",
	} {
		if _, err := ParseMapBy(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q must be rejected with %q: %v", text, want, err)
		}
	}
}

func TestProgramOfRank(t *testing.T) {
	programs := []Program{{Ranks: 2}, {Ranks: 1}, {Ranks: 3}}
	for rank, want := range []int{0, 0, 1, 2, 2, 2} {
		if got := programOf(programs, rank); got != want {
			t.Errorf("rank %d runs program %d, not %d", rank, want, got)
		}
	}
}
