package cputime

import (
	"testing"
	"time"
)

// TestUsed: computing counts, and waiting does not.
func TestUsed(t *testing.T) {
	start, ok := Used()
	if !ok {
		t.Skip("the system does not tell how much CPU a process has used")
	}
	const most = 10 * time.Second
	began := time.Now()
	for computed := start; computed-start < 20*time.Millisecond; {
		if computed, _ = Used(); time.Since(began) > most {
			t.Fatalf("computing for %v counts as %v", most, computed-start)
		}
	}
	const pause = 200 * time.Millisecond
	before, _ := Used()
	time.Sleep(pause)
	if after, _ := Used(); after < before || after-before > pause/2 {
		t.Errorf("sleeping for %v counts as %v", pause, after-before)
	}
}
