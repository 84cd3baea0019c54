package soft

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Below is the completion queues of other devices, on which a combined device sleeps: all
// at once by their files, and for short naps if one has none.
type Below struct {
	Set
	files       []belowFile
	withoutFile int
	nap         time.Duration
	sleeps      atomic.Int32 // sleeps that were prepared and have not ended
}

type belowFile struct {
	rdma.FileCQ
	armed int
}

// While a queue without a file reports nothing, the naps grow.
const (
	shortNap = time.Millisecond
	longNap  = 8 * time.Millisecond
)

// Add adds a queue.
func (b *Below) Add(cq rdma.CQ) error {
	f, ok := cq.(rdma.FileCQ)
	if !ok {
		b.withoutFile++
		return nil
	}
	if err := b.Watch(f.File(), 0, readableEvent); err != nil {
		return err
	}
	b.files = append(b.files, belowFile{FileCQ: f})
	return nil
}

// Remove undoes Add, before the queue is closed.
func (b *Below) Remove(cq rdma.CQ) {
	f, ok := cq.(rdma.FileCQ)
	if !ok {
		b.withoutFile = max(b.withoutFile-1, 0)
		return
	}
	for i := range b.files {
		if b.files[i].FileCQ != f {
			continue
		}
		_ = b.Watch(f.File(), readableEvent, 0) // closing it does the same
		for range b.files[i].armed {
			f.Awake()
		}
		b.files = slices.Delete(b.files, i, i+1)
		return
	}
}

// Sleep prepares all queues for a sleep, as Hooks.Sleep does.
func (b *Below) Sleep(limit time.Duration) time.Duration {
	b.sleeps.Add(1)
	if b.withoutFile > 0 {
		b.nap = min(max(2*b.nap, shortNap), longNap)
		limit = min(limit, b.nap)
	}
	for i := range b.files {
		f := &b.files[i]
		if limit = min(limit, f.Sleep(limit)); limit <= 0 {
			b.sleeps.Add(-1)
			b.wake(i)
			return 0
		}
		f.armed++
	}
	return limit
}

// Awake ends a sleep.
func (b *Below) Awake() {
	b.sleeps.Add(-1)
	b.wake(len(b.files))
}

// wake ends a sleep on the first n files.
func (b *Below) wake(n int) {
	for i := range b.files[:n] {
		if f := &b.files[i]; f.armed > 0 {
			f.armed--
			f.Awake()
		}
	}
}

// Sleeping reports whether a sleep was prepared and has not ended. It needs no lock.
func (b *Below) Sleeping() bool { return b.sleeps.Load() > 0 }

// Busy makes the next naps short, because something came.
func (b *Below) Busy() { b.nap = 0 }
