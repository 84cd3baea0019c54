package rail

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// A peer that is silent on all rails. The device of a rail keeps trying for long,
// because a cable may be repaired while the other rails carry the messages. If no rail
// delivers, Config.Timeout ends the wait.

var _ rdma.ExplainingDevice = (*Device)(nil)

// silent reports whether a peer that something is awaited from has been silent for too
// long. Time during which this process did not poll does not count.
func (f *flow) silent(now time.Duration, waiting bool) bool {
	if !waiting || f.awaited == 0 || now-f.lookedAt > maxLookGap {
		f.awaited = now
	}
	f.lookedAt = now
	limit := f.q.dev.timeout
	return limit > 0 && waiting && now-max(f.awaited, f.lastReceived) >= limit
}

// maxLookGap is the longest time between two checks of a waiting flow.
const maxLookGap = 20 * lookEvery

// giveUp declares a silent peer gone. It also informs a user that only receives.
func (f *flow) giveUp(now time.Duration) {
	f.givenUp = now - max(f.awaited, f.lastReceived)
	for rail := range f.paths {
		f.keep(rail) // the rail keeps trying, and the user gets the memory back
	}
	f.fail(rdma.StatusPeerGone)
	f.q.recvCQ.Push(rdma.Completion{Op: rdma.OpDisconnected, Peer: f.peer, Status: rdma.StatusPeerGone})
}

// Explain returns why a peer was declared gone.
func (d *Device) Explain(id rdma.PeerID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.pairs {
		for _, f := range q.flows {
			if f != nil && f.peer == id && f.givenUp > 0 {
				return &rdma.SilenceError{For: f.givenUp}
			}
		}
	}
	return nil
}
