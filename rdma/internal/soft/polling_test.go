package soft

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The progress thread leaves the work to an application that declares that it polls, also
// when it does not call for long, and takes over when that ends.
func TestPollingHoldsThreadBack(t *testing.T) {
	var (
		mu     sync.Mutex
		served atomic.Int32
		d      Device
		cq     CQ[int]
	)
	d.Init("test", &mu, Hooks{
		Sleep:    func(time.Duration) time.Duration { return 0 }, // there is always work
		Progress: func() time.Duration { served.Add(1); return time.Millisecond },
	})
	if err := cq.Open(&d, func(int) {}); err != nil {
		t.Fatal(err)
	}
	cq.Polling(true)
	if err := d.StartThread(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	if n := served.Load(); n != 0 {
		t.Errorf("the progress thread has served %d times beside a polling application", n)
	}
	cq.Polling(false)
	for deadline := time.Now().Add(10 * time.Second); served.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the progress thread does not take over")
		}
	}
	cq.Polling(true)
	time.Sleep(20 * time.Millisecond) // a round may be under way
	before := served.Load()
	time.Sleep(50 * time.Millisecond)
	if n := served.Load() - before; n != 0 {
		t.Errorf("the progress thread has served %d times after the application was back", n)
	}
	mu.Lock()
	d.Close()
	mu.Unlock()
}
