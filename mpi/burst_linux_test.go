//go:build !muster_portable

package mpi_test

import (
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
	"github.com/muster-mpi/muster/prof"
	"github.com/muster-mpi/muster/rdma"
)

// TestBurstBeforeComputation starts many sends and then does not call the library: all of them
// arrive, although devices hold back messages of a burst to send several together.
func TestBurstBeforeComputation(t *testing.T) {
	const messages = 11
	for _, channel := range []string{"rc", "rd", "hybrid"} {
		t.Run(channel, func(t *testing.T) {
			arrived := make(chan struct{})
			cfg := &mpi.Config{Network: "iwarp", NoSharedMemory: true, Channel: channel}
			mpitest.RunConfig(t, 2, cfg, func(t *testing.T, c *mpi.Comm) {
				if err := c.Barrier(); err != nil {
					t.Fatal(err)
				}
				buf := make([]byte, 8<<10)
				if c.Rank() == 1 {
					defer close(arrived)
					for i := range messages {
						if _, err := mpi.Recv(c, buf, 0, 1); err != nil || buf[0] != byte(i) {
							t.Fatalf("message %d of %d: got %d, %v", i, messages, buf[0], err)
						}
					}
					return
				}
				var reqs []mpi.Request
				for i := range messages {
					own := append([]byte{byte(i)}, buf[1:]...)
					reqs = append(reqs, mpi.Isend(c, own, 1, 1))
				}
				select {
				case <-arrived:
				case <-time.After(20 * time.Second):
					t.Error("a burst has not arrived while its sender computes")
				}
				if err := mpi.WaitAll(reqs...); err != nil {
					t.Fatal(err)
				}
				p := c.World().Profile()
				if p.Of(prof.Name(rdma.MessagesCombined)) == 0 && channel == "rc" {
					t.Error("no message of the burst was held back, so this test shows nothing")
				}
			})
		})
	}
}
