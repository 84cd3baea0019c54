package prompt

import (
	"testing"
	"time"
)

func TestPauseLasts(t *testing.T) {
	for _, d := range []time.Duration{20 * time.Microsecond, 2 * time.Millisecond} {
		begin := time.Now()
		Pause(d)
		if took := time.Since(begin); took < d {
			t.Errorf("a pause of %v ended after %v", d, took)
		}
	}
}

// What was set for the work is taken back, and the work is done once.
func TestAsThreadDoesItOnce(t *testing.T) {
	done := 0
	for range 3 {
		AsThread(func() { done++ })
	}
	if done != 3 {
		t.Errorf("it was done %d times in 3 calls", done)
	}
}
