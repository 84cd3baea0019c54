package shm

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAwaitFences waits for the decision about fences, until it is made or takes too long.
func TestAwaitFences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, v := range []struct {
			decision, limit, want time.Duration
		}{{5, 100, 5}, {100, 5, 5}, {5, -1, 0}} {
			f := fencing{decided: make(chan struct{}), decideBy: time.Now().Add(v.limit * time.Millisecond)}
			time.AfterFunc(v.decision*time.Millisecond, func() { close(f.decided) })
			start := time.Now()
			if f.await(); time.Since(start) != v.want*time.Millisecond {
				t.Errorf("a decision after %d ms with a limit of %d ms is awaited for %v", v.decision, v.limit, time.Since(start))
			}
			<-f.decided
		}
		start := time.Now()
		if new(fencing).await(); time.Since(start) != 0 {
			t.Error("ranks of one process wait for a decision that nobody makes")
		}
	})
}
