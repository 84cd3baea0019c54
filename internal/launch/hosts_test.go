//go:build !windows

package launch

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseHosts(t *testing.T) {
	for _, c := range []struct {
		list string
		want []Host
	}{
		{"a:4,b:4", []Host{{"a", 4}, {"b", 4}}},
		{"a, b ,", []Host{{"a", 0}, {"b", 0}}},
		{"node-1.cluster.example.org:16", []Host{{"node-1.cluster.example.org", 16}}},
		{"10.0.0.1:2,user@b:3", []Host{{"10.0.0.1", 2}, {"user@b", 3}}},
		{"[fe80::1]:2,[::1],fe80::2", []Host{{"fe80::1", 2}, {"::1", 0}, {"fe80::2", 0}}},
		{"a:2,b,a:3", []Host{{"a", 5}, {"b", 0}}},
		{"a,a", []Host{{"a", 2}}},
	} {
		if got, err := ParseHosts(c.list); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q is %v, and was read as %v, %v", c.list, c.want, got, err)
		}
	}
	for list, want := range map[string]string{
		"":           "list is empty",
		" , ":        "list is empty",
		"a:x":        `slot count "x"`,
		"a:0":        `slot count "0"`,
		"a:-2":       `slot count "-2"`,
		"a:":         `slot count ""`,
		":4":         "has no name",
		"-oProxy":    "begins with '-'",
		"a b":        `contains ' '`,
		"a;reboot":   "contains ';'",
		"$(x)":       "contains '$'",
		"[::1":       "closing bracket",
		"[::1]4":     ":N",
		"a:99999999": "use 1 to",
	} {
		if got, err := ParseHosts(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q must be rejected with %q: %v, %v", list, want, got, err)
		}
	}
}

func TestParseHostfile(t *testing.T) {
	text := `# made by an operator
job-worker-0.job.default.svc slots=2
job-worker-1.job.default.svc:3   # with a comment

c slots=4 max_slots=8
d
`
	want := []Host{{"job-worker-0.job.default.svc", 2}, {"job-worker-1.job.default.svc", 3}, {"c", 4}, {"d", 0}}
	if got, err := ParseHostfile(text); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the file names %v; read %v, %v", want, got, err)
	}
	for text, want := range map[string]string{
		"# nothing\n\n":   "has no hosts",
		"a\nb slots=many": "line 2: invalid slot count \"many\"",
		"a\n\n-x":         "line 3: ",
	} {
		if _, err := ParseHostfile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q must be rejected with %q: %v", text, want, err)
		}
	}
}

func TestShares(t *testing.T) {
	hosts := func(n int) (list []hostRef) {
		for i := range n {
			list = append(list, hostRef{Index: i})
		}
		return list
	}
	for _, c := range []struct {
		hosts, width int
		lengths      []int
	}{
		{0, 4, []int{}},
		{1, 4, []int{1}},
		{4, 4, []int{1, 1, 1, 1}},
		{5, 4, []int{1, 1, 1, 2}},
		{10, 3, []int{3, 3, 4}},
		{3, 1, []int{3}},
	} {
		lengths, next := []int{}, 0
		for _, part := range shares(hosts(c.hosts), c.width) {
			lengths = append(lengths, len(part))
			for _, h := range part {
				if h.Index != next {
					t.Errorf("%d hosts by %d: host %d comes where %d should", c.hosts, c.width, h.Index, next)
				}
				next++
			}
		}
		if !reflect.DeepEqual(lengths, c.lengths) || next != c.hosts {
			t.Errorf("%d hosts by %d are divided into %v, should be %v", c.hosts, c.width, lengths, c.lengths)
		}
	}
}

// depth follows the tree as agents do.
func depth(hosts []hostRef, width int) (deepest, all int) {
	for _, part := range shares(hosts, width) {
		d, n := depth(part[1:], width)
		deepest, all = max(deepest, d+1), all+n+1
	}
	return deepest, all
}

func TestTreeDepth(t *testing.T) {
	for _, c := range []struct{ hosts, width, depth int }{{16, 16, 1}, {17, 16, 2}, {272, 16, 2}, {4096, 16, 3}, {7, 1, 7}} {
		list := make([]hostRef, c.hosts)
		if d, n := depth(list, c.width); d != c.depth || n != c.hosts {
			t.Errorf("%d hosts by %d: %d are reached in %d steps, should be %d", c.hosts, c.width, n, d, c.depth)
		}
	}
}
