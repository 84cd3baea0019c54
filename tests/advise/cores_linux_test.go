package advise

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMoreRanksThanCores runs four ranks that compute on one core. They get none of it while other
// programs use it, so such runs do not count.
func TestMoreRanksThanCores(t *testing.T) {
	f := build(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if before.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil { // programs that this thread starts inherit it
		t.Fatal(err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }()
	const tries, mostOthers = 3, 0.1
	var all []finding
	busy := 0
	for range tries {
		var others float64
		all, others = f.advise(t, "-n", "4", f.program, "oversubscribed")
		i := slices.IndexFunc(all, func(f finding) bool { return f.Problem == "more ranks than cores" })
		if i >= 0 {
			if where := marked(t)["shareCores"]; i > 1 || all[i].Gain < 0.4 || !strings.HasPrefix(strings.Join(all[i].Sites, ""), where+" ") || all[i].Prediction == nil || all[i].Prediction.Then > 0.6*all[i].Prediction.Now {
				t.Errorf("found %+v, want a gain and a prediction for %s", all, where)
			}
			return
		}
		if others >= mostOthers {
			busy++
		}
	}
	if busy == 0 {
		t.Fatalf("found %+v, want that the ranks share a core", all)
	}
	t.Skipf("skipped: needs a machine without other programs; in %d of %d runs they had more than %.0f %% of the cores", busy, tries, 100*mostOthers)
}
