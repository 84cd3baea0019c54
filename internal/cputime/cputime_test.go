package cputime

import (
	"testing"
	"time"
)

// Computing counts, sleeping does not.
func TestUsed(t *testing.T) {
	start, ok := Used()
	if !ok {
		t.Skip("the system does not report CPU time")
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
	time.Sleep(pause) // real time: the kernel's CPU accounting is under test
	if after, _ := Used(); after < before || after-before > pause/2 {
		t.Errorf("sleeping for %v counts as %v", pause, after-before)
	}
}
