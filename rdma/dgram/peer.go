package dgram

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/guard"
)

// peer is everything that a queue pair keeps of another one on RD: both halves of
// the conversation. What only a busy peer needs hangs on pointers and goes back
// when it is idle, so that ten thousand idle peers fit into five megabytes.
type peer struct {
	sender
	receiver
	stash      *stash    // datagrams that came and could not be delivered yet
	join       *joining  // the message of which a part was delivered
	sendNumber uint32    // MSN of the next message to it (RFC 5041 section 5.1.2)
	recvNumber uint32    // MSN of the next message from it
	asks       *asks     // our reads and writes under way
	askNumber  uint32    // MSN of our next request
	nextAsked  uint32    // MSN of its next request
	answers    uint16    // answers to it under way
	refused    ddp.Fault // why its present write is refused
	id         rdma.PeerID
	busy       bool          // in the list of its queue pair
	rejected   bool          // the network says that nobody is there
	strikes    guard.Strikes // accesses of it that were refused
	barred     bool          // because of them, nothing more is taken from it
	serials    serials       // that were heard from it
	heard      time.Duration // when the last datagram of it came, or we began to wait
	probed     time.Duration // when we last asked whether it lives
}

func newPeer(h *hangar, mss int) peer {
	return peer{sender: newSender(h, mss), sendNumber: 1, recvNumber: 1, askNumber: 1, nextAsked: 1}
}

// resting reports whether nothing is to be done for it.
func (p *peer) resting() bool {
	return p.sender.idle() && p.owed == 0 && !p.waiting() && p.asks == nil
}

const (
	// probeEvery is how often a peer that owes an answer is asked whether it lives.
	probeEvery = 500 * time.Millisecond
	// rejectedPatience is how long a peer may be silent that the network says is not
	// there. Anybody can forge that, so it only shortens the wait for a sign of life.
	rejectedPatience = time.Second
)

// lostSight reports whether we wait for a peer that has been silent for too long. patience
// is what to use instead of hopeless, if not 0.
func (p *peer) lostSight(now, patience time.Duration) bool {
	limit := hopeless
	if patience > 0 {
		limit = patience
	}
	if p.rejected {
		limit = rejectedPatience
	}
	return p.gone(now, limit) || p.asks != nil && p.sender.idle() && now-p.heard >= limit
}

// probeAt is when to ask a peer whether it lives: when it has our request and we have
// nothing to repeat.
func (p *peer) probeAt() time.Duration {
	if p.asks == nil || !p.sender.idle() {
		return never
	}
	return max(p.heard, p.probed) + probeEvery
}

// joining is a message of several datagrams on its way in.
type joining struct {
	recv    rdma.RecvWR
	got     int
	tooLong bool
}
