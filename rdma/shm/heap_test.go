package shm

import (
	"bytes"
	"sync"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// Sizes around every change of path: empty, inline in a cell of a ring or of the shared
// queue, small block, large block, the longest.
var sizes = []int{0, 1, 8, 24, 25, queueInline, queueInline + 1, ringInline, ringInline + 1, 64, 1000, smallBlockBytes, smallBlockBytes + 1, 8192, maxSend - 1, maxSend}

func TestMessagesArriveWholeAndInOrder(t *testing.T) {
	for _, rings := range []int{-1, 0} {
		ranks := heapRanks(t, 2, Config{Rings: rings})
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 40 * len(sizes) {
				if err := ranks[0].send(1, pattern(i, sizes[i%len(sizes)])); err != nil {
					t.Errorf("send %d: %v", i, err)
					return
				}
			}
		})
		for i := range 40 * len(sizes) {
			c, err := ranks[1].next()
			if err != nil {
				t.Fatalf("rings %d, message %d: %v", rings, i, err)
			}
			want := pattern(i, sizes[i%len(sizes)])
			if c.Op != rdma.OpRecv || c.Peer != 0 || c.Status != rdma.StatusOK || !bytes.Equal(c.Data.Bytes(), want) {
				t.Fatalf("rings %d: message %d of %d bytes should arrive next and whole, got %v from %d with %d bytes", rings, i, len(want), c.Op, c.Peer, c.Data.Len())
			}
		}
		wg.Wait()
		if open := len(ranks[1].dev.inbox.rings); rings < 0 && open != 0 || rings == 0 && open != 1 {
			t.Errorf("with Rings %d the receiver polls %d rings", rings, open)
		}
	}
}
