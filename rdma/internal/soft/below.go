package soft

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Below is the completion queues of other devices, on whose files a combined device sleeps.
type Below struct {
	Set
	files  []rdma.CQ
	sleeps atomic.Int32 // sleeps that were prepared and have not ended
}

// Add adds a queue.
func (b *Below) Add(cq rdma.CQ) error {
	fd := cq.File()
	if fd < 0 {
		return fmt.Errorf("sleep on a completion queue without a file: %w", rdma.ErrUnsupported)
	}
	if err := b.Watch(fd, 0, readableEvent); err != nil {
		return err
	}
	b.files = append(b.files, cq)
	return nil
}

// Sleep prepares all queues for a sleep, as Hooks.Sleep does.
func (b *Below) Sleep(limit time.Duration) time.Duration {
	b.sleeps.Add(1)
	for i, f := range b.files {
		if limit = min(limit, f.Arm(rdma.NotifyAny, limit)); limit <= 0 {
			b.wake(i)
			return 0
		}
	}
	return limit
}

// Awake ends a sleep.
func (b *Below) Awake() { b.wake(len(b.files)) }

// wake ends a sleep for which the first n queues were prepared.
func (b *Below) wake(n int) {
	b.sleeps.Add(-1)
	for _, f := range b.files[:n] {
		f.Disarm()
	}
}

// Sleeping reports whether a sleep was prepared and has not ended. It needs no lock.
func (b *Below) Sleeping() bool { return b.sleeps.Load() > 0 }
