package pacing

import (
	"testing"
	"time"
)

func TestPauseLasts(t *testing.T) {
	for _, d := range []time.Duration{20 * time.Microsecond, 2 * time.Millisecond} {
		begin := time.Now()
		new(Thread).Pause(d)
		if took := time.Since(begin); took < d {
			t.Errorf("a pause of %v ended after %v", d, took)
		}
	}
}

func TestThreadAllocatesNothing(t *testing.T) {
	var thread Thread
	thread.Enter()
	thread.Leave()
	if n := testing.AllocsPerRun(20, func() {
		thread.Enter()
		thread.Pause(time.Microsecond)
		thread.Leave()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
