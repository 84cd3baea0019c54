package launch

import (
	"reflect"
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
		{"a core each", machine{four, 4, 0}, 4, BindAuto, placement{[][]int{{0}, {1}, {2}, {3}}, 1}},
		{"two cores each", machine{four, 4, 0}, 2, BindAuto, placement{[][]int{{0, 1}, {2, 3}}, 2}},
		{"one core left over", machine{four, 4, 0}, 3, BindAuto, placement{[][]int{{0}, {1}, {2}}, 1}},
		{"all cores for one", machine{four, 4, 0}, 1, BindAuto, placement{[][]int{{0, 1, 2, 3}}, 4}},
		{"more ranks than cores", machine{four, 4, 0}, 5, BindAuto, placement{nil, 1}},
		{"more ranks than cores, binding requested", machine{four, 4, 0}, 5, BindCore, placement{[][]int{{0}, {1}, {2}, {3}, {0}}, 1}},
		{"no binding requested", machine{four, 4, 0}, 2, BindNone, placement{nil, 2}},
		{"hardware threads of a core together", machine{twin, 8, 0}, 4, BindAuto, placement{[][]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}}, 2}},
		{"more ranks than cores, fewer than threads", machine{twin, 8, 0}, 8, BindAuto, placement{nil, 1}},
		{"a quota prevents binding", machine{four, 4, 1.5}, 2, BindAuto, placement{nil, 1}},
		{"a quota above the cores does not count", machine{four, 4, 9}, 2, BindAuto, placement{[][]int{{0, 1}, {2, 3}}, 2}},
		{"a quota, binding requested", machine{four, 4, 2}, 2, BindCore, placement{[][]int{{0, 1}, {2, 3}}, 1}},
		{"nothing known", machine{nil, 8, 0}, 2, BindCore, placement{nil, 4}},
	} {
		if got := plan(c.m, c.ranks, c.how); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.what, got, c.want)
		}
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
