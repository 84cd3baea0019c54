package soft

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/rdma/internal/guard"
)

// Forever is the duration of a sleep that only an event ends.
const Forever = time.Duration(1<<63 - 1)

// Hooks are what a device does for the parts in this package. They are called with the
// lock held. Any but Sleep may be nil.
type Hooks struct {
	// Sleep prepares the device for a sleep on its source and returns how long that may
	// last: at most limit, and not more than 0 if there is work at once. If it is more than
	// 0, Awake follows. Sleeps of several goroutines may overlap.
	Sleep func(limit time.Duration) time.Duration
	Awake func()
	// Progress does the work of a Poll for the progress thread. It returns how long to
	// pause before the next time.
	Progress func() time.Duration
	// Posted is called when receive buffers were posted.
	Posted func()
	// Deregister is called before the registration of a key ends.
	Deregister func(key uint64)
}

// Device is the common part of a software device.
type Device struct {
	Closed bool
	Regions
	Guard     guard.Guard // counts refused accesses
	Thread    Thread
	LowWaters uint64 // times that few receive buffers were left

	name    string // prefix of error texts
	mu      *sync.Mutex
	hooks   Hooks
	source  source
	queues  []*waits
	waiting int // goroutines in a wait, and armed queues
}

// Init prepares the common part of a device. name is its name in error texts, and mu the
// lock that guards all of it.
func (d *Device) Init(name string, mu *sync.Mutex, h Hooks) {
	d.name, d.mu, d.hooks = name, mu, h
	d.source.fd = -1 // until SetSource
	if d.hooks.Awake == nil {
		d.hooks.Awake = func() {}
	}
}

// SetSource sets the descriptor on which the device sleeps: it is readable when something
// has arrived. trouble, if not nil, is set when it has an error to report.
func (d *Device) SetSource(fd int, trouble *atomic.Bool) { d.source.fd, d.source.trouble = fd, trouble }

// Waiting reports whether a goroutine waits for a completion queue, or is about to.
func (d *Device) Waiting() bool { return d.waiting > 0 }

// CountCall records a call by the application.
func (d *Device) CountCall() { d.Thread.countCall() }

// WakeAll ends every wait, because of work that the source does not report.
func (d *Device) WakeAll() {
	for _, w := range d.queues {
		w.wakeSleepers()
	}
}

// QueueMemory returns the memory of the completion queues.
func (d *Device) QueueMemory() (n uint64) {
	for _, w := range d.queues {
		n += w.of.memory()
	}
	return n
}

// Close ends the device: the caller has closed its queue pairs. It waits for the progress
// thread, without the lock meanwhile.
func (d *Device) Close() {
	d.Closed = true
	for len(d.queues) > 0 {
		d.queues[0].endLocked()
	}
	d.unlockAll()
	d.mu.Unlock()
	d.Thread.stop()
	d.mu.Lock()
}

func (d *Device) forget(w *waits) {
	d.queues = slices.DeleteFunc(d.queues, func(other *waits) bool { return other == w })
}
