package engine

// What the engine does besides calls, for a trace, and when operations end, for a profile.

import (
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/rdma"
)

// Watcher is told what the engine does. Its methods are called with the lock held; they must
// be short and not call the engine.
type Watcher interface {
	// Message is called before a step of a message that uses a rendezvous.
	Message(x *p2p.Xfer, step p2p.WatchedStep)
	// Progress is called when the progress thread begins to poll for the application, and
	// when it ends.
	Progress(polls bool)
	// Asleep is called when a goroutine that waits gives up its core, and when it has it
	// again.
	Asleep(asleep bool)
}

// Watch sets the watcher.
func (r *Engine) Watch(w Watcher) {
	e := r.lock()
	defer e.unlock()
	e.watcher = w
	e.m.Watch(w.Message)
}

// WatchEnd makes the engine call by, with the lock held, when an operation completes, unless it
// has completed. Messages of one packet are not reported (p2p.Machine.WatchEnd).
func (r *Engine) WatchEnd(o Op, by p2p.EndWatcher) {
	if !o.Active() {
		return
	}
	e := r.lock()
	defer e.unlock()
	if !o.stale() {
		e.m.WatchEnd(o.x, by)
	}
}

// Retransmissions returns how many packets the devices have sent again.
func (r *Engine) Retransmissions() (n uint64) {
	e := r.lock()
	defer e.unlock()
	for _, d := range e.lanes {
		if d.caps.Count != nil {
			d.caps.Count(func(name rdma.Counter, value uint64) {
				if name == rdma.DatagramsRetransmitted || name == rdma.SegmentsRetransmitted {
					n += value
				}
			})
		}
	}
	return n
}
