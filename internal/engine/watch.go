package engine

// What the engine does besides calls, for a trace.

import (
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/rdma"
)

// Watcher is told what the engine does. Its methods are called with the lock held; they must
// be short and not call the engine.
type Watcher interface {
	// Message is called before a step of a message that uses a rendezvous.
	Message(x *p2p.Xfer, step p2p.WatchedStep)
	// Progress is called when the progress thread becomes the driver, and when another does.
	Progress(drives bool)
	// Asleep is called when a goroutine that waits gives up its core, and when it has it
	// again.
	Asleep(asleep bool)
}

// Watch sets the watcher.
func (e *Engine) Watch(w Watcher) {
	e.lock()
	defer e.unlock()
	e.watcher = w
	e.m.Watch(w.Message)
}

// Retransmitted returns how many packets the devices have sent again.
func (e *Engine) Retransmitted() (n uint64) {
	e.lock()
	defer e.unlock()
	for _, d := range e.lanes {
		if dev, ok := d.dev.(rdma.CountingDevice); ok {
			dev.Count(func(name rdma.Counter, value uint64) {
				if name == rdma.DatagramsRetransmitted || name == rdma.SegmentsRetransmitted {
					n += value
				}
			})
		}
	}
	return n
}
