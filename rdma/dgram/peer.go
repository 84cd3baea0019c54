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
	reorderBuffer *reorderBuffer // datagrams that came and could not be delivered yet
	join          *joining       // the message of which a part was delivered
	sendNumber    uint32         // MSN of the next message to it (RFC 5041 section 5.1.2)
	recvNumber    uint32         // MSN of the next message from it
	requests      *requests      // our reads and writes under way
	requestNumber uint32         // MSN of our next request
	nextRequest   uint32         // MSN of its next request
	responses     uint16         // answers to it under way
	refused       ddp.Fault      // why its present write is refused
	id            rdma.PeerID
	busy          bool          // in the list of its queue pair
	rejected      bool          // the network says that nobody is there
	strikes       guard.Strikes // accesses of it that were refused
	barred        bool          // because of them, nothing more is taken from it
	serials       serials       // that were heard from it
	lastReceived  time.Duration // when the last datagram of it came, or we began to wait
	probed        time.Duration // when we last asked whether it incarnations
}

func newPeer(h *windowPool, mss int) peer {
	return peer{sender: newSender(h, mss), sendNumber: 1, recvNumber: 1, requestNumber: 1, nextRequest: 1}
}

// resting reports whether nothing is to be done for it.
func (p *peer) inactive() bool {
	return p.sender.idle() && p.ackPending == 0 && !p.waiting() && p.requests == nil
}

const (
	// probeEvery is how often a peer that owes an answer is asked whether it incarnations.
	probeEvery = 500 * time.Millisecond
	// rejectedTimeout is how long a peer may be silent that the network says is not
	// there. Anybody can forge that, so it only shortens the wait for a sign of incarnation.
	rejectedTimeout = time.Second
)

// peerTimedOut reports whether we wait for a peer that has been silent for too long. patience
// is what to use instead of hopeless, if not 0.
func (p *peer) peerTimedOut(now, peerTimeout time.Duration) bool {
	limit := defaultPeerTimeout
	if peerTimeout > 0 {
		limit = peerTimeout
	}
	if p.rejected {
		limit = rejectedTimeout
	}
	return p.timedOut(now, limit) || p.requests != nil && p.sender.idle() && now-p.lastReceived >= limit
}

// probeAt is when to ask a peer whether it incarnations: when it has our request and we have
// nothing to repeat.
func (p *peer) probeAt() time.Duration {
	if p.requests == nil || !p.sender.idle() {
		return never
	}
	return max(p.lastReceived, p.probed) + probeEvery
}

// joining is a message of several datagrams on its way in.
type joining struct {
	recv    rdma.RecvWR
	got     int
	tooLong bool
}
