//go:build !windows

package launch

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestGrace(t *testing.T) {
	begin := time.Unix(100, 0)
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	few := grace{cores: 4}
	few.begin(begin, 4)
	if got := few.remaining(at(0), 4, 0); got != 505*time.Millisecond {
		t.Errorf("four ranks on four cores have %v; half a second and little more is expected", got)
	}
	many := grace{cores: 2}
	many.begin(begin, 1000)
	if got := many.remaining(at(0), 1000, 0); got != 3*time.Second {
		t.Errorf("a thousand ranks on two cores may be quiet for %v, should be 3 s", got)
	}
	for ms := 1000; ms <= 20000; ms += 1000 {
		if got := many.remaining(at(ms), 1000, ms); got < time.Second {
			t.Errorf("%d ms after the failure ranks still exit, and the others have only %v left", ms, got)
		}
	}
	if got := many.remaining(at(22000), 500, 20000); got > 0 {
		t.Errorf("two seconds after the last sign 500 ranks on two cores have %v left, should have none", got)
	}
	many.begin(begin, 1000)
	if got := many.remaining(at(30001), 1000, 1); got > 0 {
		t.Errorf("half a minute after the failure %v are left; the limit must apply", got)
	}
	fixed := grace{cores: 2, fixed: 2 * time.Second}
	fixed.begin(begin, 1000)
	if got := fixed.remaining(at(500), 1000, 500); got != 1500*time.Millisecond {
		t.Errorf("of a fixed time of 2 s, %v are left after half a second", got)
	}
}

// Ranks exit one after the other, the last long after half a second: the launcher must
// not end any of them.
func TestAllSurvivorsNoticeFailure(t *testing.T) {
	const ranks = 64
	r := runRole(t, "linger", Config{Ranks: ranks})
	if got := strings.Count(r.out, "has noticed it"); got != ranks-1 {
		t.Errorf("%d of %d survivors noticed the failure before they were ended; took %v\n%s", got, ranks-1, r.took, r.err)
	}
	if r.Status != 7 || strings.Contains(r.err, "killed ranks") {
		t.Errorf("the status must be that of the rank that failed first: %+v\n%s", r.Result, r.err)
	}
}

// With --grace the time is fixed.
func TestFixedGrace(t *testing.T) {
	r := runRole(t, "linger", Config{Ranks: 32, Limits: Limits{Grace: 200 * time.Millisecond}})
	if n := strings.Count(r.out, "has noticed it"); n > 25 {
		t.Errorf("with a grace of 200 ms ranks that need up to 620 ms must be ended; %d of 31 were not", n)
	}
	r = runRole(t, "linger", Config{Ranks: 3, Limits: Limits{Grace: time.Minute}})
	if strings.Count(r.out, "has noticed it") != 2 || r.took > 20*time.Second {
		t.Errorf("ranks that exit by themselves must not be waited for: %v\n%s", r.took, r.out)
	}
}

// The report counts the ranks that noticed the failure before they were ended.
func TestReportCountsRanksThatNoticed(t *testing.T) {
	r := runRole(t, "stay", Config{Ranks: 3})
	want := fmt.Sprintf("%d of the %d other ranks had noticed the failure", 0, 2)
	if !strings.Contains(r.err, want) || !strings.Contains(r.err, "--grace") {
		t.Errorf("the report must contain %q and name --grace:\n%s", want, r.err)
	}
}
