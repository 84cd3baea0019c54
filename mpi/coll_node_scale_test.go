package mpi

import (
	"sync"
	"testing"

	"github.com/muster-mpi/muster/internal/pmi"
)

// countingClient counts the ranks whose node was asked for.
type countingClient struct {
	pmi.Client
	asked int
}

func (c *countingClient) Node(rank int) int {
	c.asked++
	return c.Client.Node(rank)
}

// Every rank decides at its first collective whether its communicator is on one host. On a
// job of one host that must not look at all ranks: in one process that is quadratic.
func TestFirstCollectiveAsksForFewNodes(t *testing.T) {
	const n = 64
	worlds, err := Local(n, nil)
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]*countingClient, n)
	for i, w := range worlds {
		counts[i] = &countingClient{Client: w.client}
		w.client = counts[i]
	}
	var wg sync.WaitGroup
	for i, w := range worlds {
		wg.Go(func() {
			sum := []int64{0}
			if err := Allreduce(w.Comm(), []int64{1}, sum, Sum); err != nil || sum[0] != n {
				t.Errorf("rank %d: the sum is %d, error %v", i, sum[0], err)
			}
			w.Finalize()
		})
	}
	wg.Wait()
	for i, c := range counts {
		if c.asked >= n/2 {
			t.Errorf("rank %d asked for the nodes of %d ranks, of %d in all", i, c.asked, n)
		}
	}
}
