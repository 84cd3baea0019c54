package soft

import (
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// A caller that stays is left alone however long it is away; one that does not is replaced.
func TestThreadLeavesStayingCallerAlone(t *testing.T) {
	var mu sync.Mutex
	var d Device
	d.Init("test", &mu, Hooks{
		Sleep:    func(limit time.Duration) time.Duration { return min(limit, time.Millisecond) },
		Progress: func() time.Duration { return 0 },
	})
	takeovers := func() (n uint64) {
		d.Thread.Count(func(name rdma.Counter, value uint64) {
			if name == rdma.ThreadTakeovers {
				n = value
			}
		})
		return n
	}
	w := waits{dev: &d}
	w.Stay(true)
	mu.Lock()
	if err := d.StartThread(); err != nil {
		t.Fatal(err)
	}
	mu.Unlock()
	time.Sleep(20 * time.Millisecond) // real time: the thread's pauses are under test
	if n := takeovers(); n != 0 {
		t.Errorf("%d takeovers from a caller that stays", n)
	}
	w.Stay(false)
	for limit := time.Now().Add(10 * time.Second); takeovers() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("no takeover from a caller that is away")
		}
	}
	mu.Lock()
	d.Close()
	mu.Unlock()
}
