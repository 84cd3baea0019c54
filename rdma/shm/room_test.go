package shm

import (
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// TestFullRingParks fills the ring of a peer that does not poll with the pieces of a copy,
// from either end. The sender then has nothing to do: its Wait sleeps, and ends when the
// peer has made room, without a timeout.
func TestFullRingParks(t *testing.T) {
	const size = 4 << 20
	for _, op := range []rdma.Op{rdma.OpWrite, rdma.OpRead} {
		t.Run(op.String(), func(t *testing.T) {
			ranks := heapRanks(t, 2, Config{NoProcessVM: true})
			a, b := ranks[0], ranks[1]
			mr, err := b.dev.Register(pattern(1, size), rdma.RemoteRead|rdma.RemoteWrite)
			if err != nil {
				t.Fatal(err)
			}
			sender, taker := a, b
			if op == rdma.OpRead {
				sender, taker = b, a
			}
			for range 2 * ringAfter { // a sender gets its ring after some messages
				if err := sender.send(int(taker.dev.index), []byte{1}); err != nil {
					t.Fatal(err)
				}
				taker.poll()
			}
			if err := a.post(rdma.SendWR{ID: 1, Op: op, Peer: 1, Remote: mr.Base, RKey: mr.RKey, Body: rdma.MemOf(make([]byte, size))}); err != nil {
				t.Fatal(err)
			}
			a.poll() // sends the request, or the first pieces
			moving := sender.dev.Caps()
			moved := moving.Moved()
			for still := 0; still < 3; still++ {
				if sender.poll(); moving.Moved() != moved {
					moved, still = moving.Moved(), 0
				}
			}
			begin := time.Now()
			if err := sender.cq.Wait(100 * time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took < 50*time.Millisecond {
				t.Errorf("Wait ended after %v although the ring is full", took)
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				time.Sleep(10 * time.Millisecond) // until the sender sleeps in Wait, which nothing shows
				for range 4 {
					taker.cq.Poll(taker.out)
				}
			})
			begin = time.Now()
			if err := sender.cq.Wait(20 * time.Second); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("Wait lasted %v although the peer has made room", took)
			}
			wg.Wait()
			if before := moving.Moved(); sender.poll() == 0 && moving.Moved() == before {
				t.Error("there is room, but nothing was sent")
			}
		})
	}
}
