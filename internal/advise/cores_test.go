package advise

import (
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/trace"
)

// computing returns a trace of four ranks of one host that compute for 800 of 1000 ns, and use some
// CPU time.
func computing(cpuTime int64, cpus ...[2]int) *trace.Trace {
	return job4(func(r *trace.Rank) {
		r.Cores, r.CPUs, r.CPUTime = 8, cpus, cpuTime
		for i := range int64(10) {
			call(r, "Allreduce", "collective", "a.go:1", i*1000+800, i*1000+1000)
		}
	})
}

func TestMoreRanksThanCores(t *testing.T) {
	all := Find(computing(4000, [2]int{2, 3}))
	only(t, all, "more ranks than cores", "a.go:1", .4)
	predicted(t, all[0], 10000, 6000)
	if want := "let the ranks use all 8 cores"; !strings.HasPrefix(all[0].Change, want) {
		t.Errorf("the change is %q, want %q", all[0].Change, want)
	}
	whole := computing(4000, [2]int{2, 3})
	for _, r := range whole.Ranks {
		r.Cores = 2
	}
	if all, want := Find(whole), "start at most 2 ranks on such a host"; len(all) != 1 || !strings.HasPrefix(all[0].Change, want) {
		t.Errorf("found %+v, want the change %q", all, want)
	}
}

func TestRanksThatDoNotShareCores(t *testing.T) {
	for name, tr := range map[string]*trace.Trace{
		"as many cores as ranks":         computing(8000, [2]int{0, 0}, [2]int{2, 4}),
		"all cores":                      computing(4000),
		"no computation between calls":   computing(400, [2]int{0, 1}),
		"cores that other programs have": computing(1900, [2]int{0, 1}),
		"recorded for a part of the time": func() *trace.Trace {
			tr := computing(4000, [2]int{0, 1})
			for _, r := range tr.Ranks {
				r.Dropped = 30
			}
			return tr
		}(),
	} {
		if all := Find(tr); len(all) > 0 {
			t.Errorf("%s: found %+v", name, all)
		}
	}
}

// TestCoresOfRanksOneByOne: ranks that compute one after the other need one core.
func TestCoresOfRanksOneByOne(t *testing.T) {
	if all := Find(job4(func(r *trace.Rank) {
		r.Cores, r.CPUTime = 1, 1000
		for i := range int64(4) {
			if i == int64(r.Rank) {
				call(r, "Barrier", "other", "a.go:1", i*1000+1000, i*1000+1000)
			} else {
				call(r, "Wait", "other", "a.go:2", i*1000, i*1000+1000)
			}
		}
	})); len(all) > 0 {
		t.Errorf("found %+v", all)
	}
}
