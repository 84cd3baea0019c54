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

// TestPathChangesBesideTheProgram sends messages of 32 KB, each as a call that completes at
// once, and computes in between: the channel hybrid moves the peer to a connection although
// the sender never waits. It is busy after 32 of them, and a change takes milliseconds; the
// limit is for busy machines, and less than the send window, which makes the sender poll.
func TestPathChangesBesideTheProgram(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("it measures two ranks of one process")
	}
	const (
		limit = 60
		pause = 5 * time.Millisecond
	)
	cfg := &mpi.Config{Network: "iwarp", NoSharedMemory: true, Channel: "hybrid"}
	mpitest.RunConfig(t, 2, cfg, func(t *testing.T, c *mpi.Comm) {
		buf := make([]byte, 32<<10)
		if c.Rank() == 1 {
			for {
				s, err := mpi.Recv(c, buf, 0, mpi.AnyTag)
				if err != nil {
					t.Fatal(err)
				}
				if s.Tag == 1 {
					return
				}
			}
		}
		connected := func() bool {
			p := c.World().Profile()
			return p.Of(prof.Name(rdma.ConnectionsMade)) > 0
		}
		start, sent := time.Now(), 0
		for ; !connected(); sent++ {
			if sent == limit {
				t.Errorf("after %d messages in %v the peer has no connection", sent, time.Since(start))
				break
			}
			if err := mpi.Send(c, buf, 1, 0); err != nil {
				t.Fatal(err)
			}
			for begin := time.Now(); time.Since(begin) < pause; { // computes
			}
		}
		t.Logf("a connection after %d messages in %v", sent, time.Since(start))
		if err := mpi.Send(c, buf[:1], 1, 1); err != nil {
			t.Fatal(err)
		}
	})
}
