package rail

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// A peer that is silent on all rails. The device of a rail goes on for long, because a cable
// may be plugged in again while the others carry the messages; when none does, Config.Timeout
// ends it.

var _ rdma.ExplainingDevice = (*Device)(nil)

// silent reports whether a peer from which something is awaited has been silent for too long. It
// is not counted while this process does not look, which is then the one that was silent.
func (f *flow) silent(now time.Duration, waiting bool) bool {
	if !waiting || f.awaited == 0 || now-f.lookedAt > maxLookGap {
		f.awaited = now
	}
	f.lookedAt = now
	limit := f.q.dev.timeout
	return limit > 0 && waiting && now-max(f.awaited, f.lastReceived) >= limit
}

// attentive is the longest time between two looks at a flow that waits.
const maxLookGap = 20 * lookEvery

// giveUp ends what is under way to a silent peer, and reports it also to a user that only
// receives.
func (f *flow) giveUp(now time.Duration) {
	f.givenUp = now - max(f.awaited, f.lastReceived)
	for rail := range f.paths {
		f.keep(rail) // it goes on trying, and the user has the memory back
	}
	f.fail(rdma.StatusPeerGone)
	f.q.recvCQ.push(delivery{completion: rdma.Completion{Op: rdma.OpDisconnected, Peer: f.peer, Status: rdma.StatusPeerGone}})
}

// Explain says why a peer was given up.
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
