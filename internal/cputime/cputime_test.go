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
	// A pause of a virtual machine is charged to the process that was running, but it does
	// not recur, so one sleep out of three is enough.
	const pause, attempts = 200 * time.Millisecond, 3
	var counted []time.Duration
	for range attempts {
		before, _ := Used()
		time.Sleep(pause) // real time: the kernel's CPU accounting is under test
		after, _ := Used()
		if after < before {
			t.Fatalf("the CPU time has decreased from %v to %v", before, after)
		}
		if after-before <= pause/2 {
			return
		}
		counted = append(counted, after-before)
	}
	t.Errorf("sleeping for %v counts as %v", pause, counted)
}
