package mpi_test

// In the steady state, messages allocate nothing.

import (
	"runtime"
	"testing"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

var allocSizes = []int{8, 1 << 10, 8 << 10, 64 << 10, 1 << 20}

// mallocs counts the allocations of both ranks during a ping-pong, in several intervals,
// and requires one interval without any: a goroutine that parks may make the runtime fill
// its own caches, but only for a while.
//
// The ranks synchronize before each interval. A rank that only sends, such as the root of
// Bcast, is not throttled, and a device keeps messages under way until it has processed
// their acks: rails up to 512 messages to a peer, more than are sent here. Each of its
// first 512 calls may therefore need new memory. After synchronization the acks have been
// processed, and an interval needs no more memory than the warm-up.
func mallocs(t *testing.T, c *mpi.Comm, what string, size, iterations int, bounce func(buf []byte)) {
	t.Helper()
	const windows = 5
	buf := make([]byte, size)
	for range min(500, iterations) {
		bounce(buf)
	}
	least := uint64(1 << 62)
	for range windows {
		barrier(t, c)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range iterations / windows {
			bounce(buf)
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.Mallocs-before.Mallocs)
	}
	if least > uint64(iterations/windows/10) { // less is the runtime's: ours would come every time
		t.Errorf("%s of %d bytes: rank %d saw %d allocations in %d round trips at best, want 0", what, size, c.Rank(), least, iterations/windows)
	}
	barrier(t, c)
}

func TestMessagesAllocateNothing(t *testing.T) {
	unchecked(t)
	if race.Enabled {
		t.Skip("the race detector makes this slow, and allocates itself")
	}
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		peer := 1 - c.Rank()
		fail := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, size := range allocSizes {
			n := 2000
			if size >= 64<<10 {
				n = 300
			}
			mallocs(t, c, "Send and Recv", size, n, func(buf []byte) {
				if c.Rank() == 0 {
					fail(mpi.Send(c, buf, peer, 1))
				}
				_, err := mpi.Recv(c, buf, peer, 1)
				fail(err)
				if c.Rank() == 1 {
					fail(mpi.Send(c, buf, peer, 1))
				}
			})
			in := make([]byte, size)
			mallocs(t, c, "Isend, Irecv and Wait", size, n, func(buf []byte) {
				r := mpi.Irecv(c, in, peer, 1)
				s := mpi.Isend(c, buf, peer, 1)
				_, err := r.Wait()
				fail(err)
				_, err = s.Wait()
				fail(err)
			})
			reqs := make([]mpi.Request, 2)
			mallocs(t, c, "WaitAllInto", size, n, func(buf []byte) {
				reqs[0] = mpi.Irecv(c, in, peer, 1)
				reqs[1] = mpi.Isend(c, buf, peer, 1)
				fail(mpi.WaitAll(reqs...))
			})
			ps := []*mpi.Persistent{mpi.RecvInit(c, in, peer, 1), mpi.SendInit(c, make([]byte, size), peer, 1)}
			mallocs(t, c, "persistent requests", size, n, func([]byte) {
				reqs = mpi.StartAll(ps, reqs[:0])
				fail(mpi.WaitAll(reqs...))
			})
			mallocs(t, c, "Ssend and Recv", size, n/4, func(buf []byte) {
				if c.Rank() == 0 {
					fail(mpi.Ssend(c, buf, peer, 1))
				} else {
					_, err := mpi.Recv(c, buf, peer, 1)
					fail(err)
				}
			})
			mallocs(t, c, "Recv with wildcards", size, n, func(buf []byte) {
				if c.Rank() == 0 {
					fail(mpi.Send(c, buf, peer, 1))
				}
				_, err := mpi.Recv(c, buf, mpi.AnySource, mpi.AnyTag)
				fail(err)
				if c.Rank() == 1 {
					fail(mpi.Send(c, buf, peer, 1))
				}
			})
		}
	})
}
