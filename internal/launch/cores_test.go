//go:build !windows

package launch

import (
	"reflect"
	"slices"
	"testing"
)

func TestPlan(t *testing.T) {
	four := [][]int{{0}, {1}, {2}, {3}}
	twin := [][]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}} // two hardware threads each
	for _, c := range []struct {
		what  string
		m     machine
		ranks int
		how   Bind
		want  placement
	}{
		{"a core each", machine{cores: four, threads: 4, quota: 0}, 4, BindAuto, placement{[][]int{{0}, {1}, {2}, {3}}, 1}},
		{"two cores each", machine{cores: four, threads: 4, quota: 0}, 2, BindAuto, placement{[][]int{{0, 1}, {2, 3}}, 2}},
		{"one core left over", machine{cores: four, threads: 4, quota: 0}, 3, BindAuto, placement{[][]int{{0}, {1}, {2}}, 1}},
		{"all cores for one", machine{cores: four, threads: 4, quota: 0}, 1, BindAuto, placement{[][]int{{0, 1, 2, 3}}, 4}},
		{"more ranks than cores", machine{cores: four, threads: 4, quota: 0}, 5, BindAuto, placement{nil, 1}},
		{"more ranks than cores, binding requested", machine{cores: four, threads: 4, quota: 0}, 5, BindCore, placement{[][]int{{0}, {1}, {2}, {3}, {0}}, 1}},
		{"no binding requested", machine{cores: four, threads: 4, quota: 0}, 2, BindNone, placement{nil, 2}},
		{"hardware threads of a core together", machine{cores: twin, threads: 8, quota: 0}, 4, BindAuto, placement{[][]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}}, 2}},
		{"more ranks than cores, fewer than threads", machine{cores: twin, threads: 8, quota: 0}, 8, BindAuto, placement{nil, 1}},
		{"a quota prevents binding", machine{cores: four, threads: 4, quota: 1.5}, 2, BindAuto, placement{nil, 1}},
		{"a quota above the cores does not count", machine{cores: four, threads: 4, quota: 9}, 2, BindAuto, placement{[][]int{{0, 1}, {2, 3}}, 2}},
		{"a quota, binding requested", machine{cores: four, threads: 4, quota: 2}, 2, BindCore, placement{[][]int{{0, 1}, {2, 3}}, 1}},
		{"nothing known", machine{cores: nil, threads: 8, quota: 0}, 2, BindCore, placement{nil, 4}},
	} {
		if got := plan(c.m, c.ranks, c.how, DomainCore); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.what, got, c.want)
		}
	}
}

func TestPlanBySocket(t *testing.T) {
	// Two sockets of four cores; NUMA nodes of two cores; two hardware threads for each core.
	m := machine{threads: 16}
	for core := range 8 {
		m.cores = append(m.cores, []int{core, core + 8})
		m.socket = append(m.socket, core/4)
		m.numa = append(m.numa, core/2)
	}
	first := func(p placement) (cpus [][]int) { // without the second threads
		for _, all := range p.bind {
			cpus = append(cpus, slices.DeleteFunc(slices.Clone(all), func(c int) bool { return c >= 8 }))
		}
		return cpus
	}
	for _, c := range []struct {
		what   string
		ranks  int
		how    Bind
		within Domain
		want   [][]int
	}{
		{"neighbors", 4, BindAuto, DomainCore, [][]int{{0, 1}, {2, 3}, {4, 5}, {6, 7}}},
		{"sockets in turn", 4, BindAuto, DomainSocket, [][]int{{0, 1}, {4, 5}, {2, 3}, {6, 7}}},
		{"one more on the first socket", 3, BindCore, DomainSocket, [][]int{{0, 1}, {4, 5, 6, 7}, {2, 3}}},
		{"NUMA nodes in turn", 5, BindCore, DomainNUMA, [][]int{{0}, {2, 3}, {4, 5}, {6, 7}, {1}}},
		{"more ranks than cores of a NUMA node", 9, BindCore, DomainNUMA, [][]int{{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}, {0}}},
		{"whole sockets", 4, BindSocket, DomainCore, [][]int{{0, 1, 2, 3}, {0, 1, 2, 3}, {4, 5, 6, 7}, {4, 5, 6, 7}}},
		{"whole sockets in turn", 3, BindSocket, DomainSocket, [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 2, 3}}},
		{"whole NUMA nodes", 8, BindNUMA, DomainCore, [][]int{{0, 1}, {0, 1}, {2, 3}, {2, 3}, {4, 5}, {4, 5}, {6, 7}, {6, 7}}},
		{"a share of two NUMA nodes", 2, BindNUMA, DomainCore, [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}}},
	} {
		if got := first(plan(m, c.ranks, c.how, c.within)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, got, c.want)
		}
	}
	bound := plan(m, 4, BindAuto, DomainSocket).bind
	for rank, want := range []string{"CPUs 0-1,8-9 (socket 0, NUMA node 0)", "CPUs 4-5,12-13 (socket 1, NUMA node 2)"} {
		if got := m.describe(bound[rank]); got != want {
			t.Errorf("the cores of rank %d are %q, not %q", rank, want, got)
		}
	}
	if got, want := m.describe(plan(m, 1, BindCore, DomainCore).bind[0]), "CPUs 0-15 (sockets 0-1, NUMA nodes 0-3)"; got != want {
		t.Errorf("all cores are %q, not %q", want, got)
	}
	if got, want := (machine{cores: [][]int{{3}}}).describe([]int{3}), "CPU 3 (socket 0, NUMA node 0)"; got != want {
		t.Errorf("a core without topology is %q, not %q", want, got)
	}
	if got := m.describe(nil); got != "not bound" {
		t.Errorf("a rank without cores is not bound, got %q", got)
	}
}

func TestParseKernelFiles(t *testing.T) {
	for text, want := range map[string][]int{
		"0-3,8\n": {0, 1, 2, 3, 8}, "5": {5}, "": nil, "x,2": {2}, "3-1": nil, "1-x": nil,
	} {
		if got := parseCPUList(text); !reflect.DeepEqual(got, want) {
			t.Errorf("CPU list %q: got %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]float64{
		"max 100000\n": 0, "150000 100000\n": 1.5, "": 0, "100000": 0, "-1 100000": 0, "50000 0": 0,
	} {
		if got := parseCPUMax(text); got != want {
			t.Errorf("cpu.max %q: got %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string][2]string{
		"0::/user.slice/a\n":                            {"/user.slice/a", ""},
		"4:memory:/m\n3:cpu,cpuacct:/docker/x\n0::/\n":  {"/", "/docker/x"},
		"2:cpuacct:/no\n1:cpu:/yes\n9:name=systemd:/\n": {"", "/yes"},
		"garbage": {"", ""},
	} {
		v2, cpu := cgroupPaths(text)
		if got := [2]string{v2, cpu}; got != want {
			t.Errorf("cgroup file %q: got %q, want %q", text, got, want)
		}
	}
}

func TestLowestQuota(t *testing.T) {
	limits := map[string]float64{"/a/b/c": 4, "/a/b": 0, "/a": 1.5, "": 8}
	if got := lowestQuota("/a/b/c", func(g string) float64 { return limits[g] }); got != 1.5 {
		t.Errorf("the lowest limit of all groups above is 1.5, got %v", got)
	}
	if got := lowestQuota("/", func(string) float64 { return 0 }); got != 0 {
		t.Errorf("no limit anywhere is no limit, got %v", got)
	}
}
