package launch

import (
	"testing"
	"testing/synctest"
	"time"
)

// slowBackend is a host that answers after some time, or not at all.
type slowBackend struct {
	backend
	takes time.Duration
	asked int
	// threads is whether the states of threads were asked for.
	threads bool
}

func (b *slowBackend) rows(threads bool) ([]rankRow, []string) {
	time.Sleep(b.takes)
	b.asked++
	b.threads = b.threads || threads
	return make([]rankRow, 1), nil
}

func (b *slowBackend) host(int) string { return "a" }

// TestMetricsInALoop: clients that ask without a pause must not hold up the job's loop.
func TestMetricsInALoop(t *testing.T) {
	for takes, most := range map[time.Duration]int{0: 10, rowsTimeout: 2} {
		synctest.Test(t, func(t *testing.T) {
			b := &slowBackend{takes: takes}
			j := &job{backend: b, ranks: newRoster(1)}
			for begin := time.Now(); time.Since(begin) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
				if got := j.metrics(); len(got) != 1 || got[0].Host != "a" {
					t.Fatalf("the counters of the rank must be returned: %+v", got)
				}
			}
			if b.threads {
				t.Error("metrics have no states of threads, but the hosts must read them")
			}
			if b.asked == 0 || b.asked > most {
				t.Errorf("in 10 s the hosts were asked %d times, which takes %v each; want 1 to %d", b.asked, takes, most)
			}
		})
	}
}
