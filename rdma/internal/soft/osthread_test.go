package soft

import (
	"testing"
	"time"
)

func TestPauseLasts(t *testing.T) {
	for _, d := range []time.Duration{20 * time.Microsecond, 2 * time.Millisecond} {
		begin := time.Now()
		new(osThread).pause(d)
		if took := time.Since(begin); took < d {
			t.Errorf("a pause of %v ended after %v", d, took)
		}
	}
}

func TestThreadAllocatesNothing(t *testing.T) {
	var thread osThread
	thread.enter()
	thread.leave()
	if n := testing.AllocsPerRun(200, func() { // the runtime may start a thread
		thread.enter()
		thread.pause(time.Microsecond)
		thread.leave()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
