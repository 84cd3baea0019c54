package shm

import (
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// TestPostDuringWait runs one goroutine that polls and waits, releasing the lock while it
// waits, and another that posts meanwhile: a request that completes at once must end the
// wait.
func TestPostDuringWait(t *testing.T) {
	ranks := heapRanks(t, 2, Config{})
	a, b := ranks[0], ranks[1]
	region := pattern(1, 200<<10)
	mr, err := b.dev.Register(region, rdma.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 300
	var mu sync.Mutex
	var wg sync.WaitGroup
	done := make(chan struct{}, 1)
	wg.Go(func() {
		for n := 0; n < rounds; {
			mu.Lock()
			k := a.cq.Poll(a.out)
			mu.Unlock()
			if n += k; k > 0 {
				done <- struct{}{}
				continue
			}
			begin := time.Now()
			if err := a.cq.Wait(10 * time.Second); err != nil {
				t.Error(err)
				return
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("Wait lasted %v although a request was posted meanwhile", took)
			}
		}
	})
	wrs := make([]rdma.SendWR, 1)
	for i := range rounds {
		size := []int{100, len(region)}[i%2] // completed when posted, and completed by Poll
		wrs[0] = rdma.SendWR{Op: rdma.OpRead, Peer: 1, Remote: mr.Base, RKey: mr.RKey, Body: rdma.MemOf(make([]byte, size))}
		mu.Lock()
		_, err := a.qp.PostSend(wrs)
		mu.Unlock()
		if err != nil {
			t.Fatalf("read %d: %v", i, err)
		}
		<-done
	}
	wg.Wait()
}
