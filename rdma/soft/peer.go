package soft

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/guard"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// peer is all RD state that a queue pair keeps about a peer: both halves of the
// protocol. State that only a busy peer needs is behind pointers and is returned when
// the peer becomes idle, so that ten thousand idle peers fit into five megabytes.
type peer struct {
	reliable.Peer[posted]
	reorderBuffer *reorderBuffer // datagrams that have arrived and are not deliverable yet
	join          *joining       // the message being reassembled
	sendNumber    uint32         // MSN of the next message to it (RFC 5041 section 5.1.2)
	recvNumber    uint32         // MSN of the next message from it
	requests      *requests      // our Reads and Writes in flight
	requestNumber uint32         // MSN of our next request
	nextRequest   uint32         // MSN of its next request
	responses     uint16         // responses to it in flight
	refused       ddp.Fault      // why its current Write is refused
	id            rdma.PeerID
	busy          bool          // on the busy list of its queue pair
	tokenKnown    bool          // of packets from it (assemble.go)
	partials      uint8         // incomplete segments from it
	rejected      bool          // an ICMP error reports that the address is unreachable
	gone          bool          // it was silent for too long, or has closed: posts to it fail
	barred        bool          // too many strikes: nothing more is accepted from it
	strikes       guard.Strikes // its refused accesses
	serials       serials       // received from it
	probed        uint32        // time of the last probe in milliseconds
	lastReceived  time.Duration // last datagram from it, or the start of waiting for one
}

func newPeer(h *windowPool) peer {
	return peer{Peer: reliable.NewPeer(h), sendNumber: 1, recvNumber: 1, requestNumber: 1, nextRequest: 1}
}

// inactive reports whether there is no work for the peer.
func (p *peer) inactive() bool {
	return p.Idle() && !p.acksPending() && !p.Waiting() && p.requests == nil && p.partials == 0
}

const (
	// probeEvery is how often a peer that has not responded to a request is probed.
	probeEvery = 500 * time.Millisecond
	// rejectedTimeout is the peer timeout after an ICMP unreachable error. Such an
	// error can be forged, so it only shortens the wait for a datagram from the peer.
	rejectedTimeout = time.Second
)

// peerTimedOut reports whether a peer that something is awaited from has been silent
// for too long. peerTimeout replaces defaultPeerTimeout unless it is 0.
func (p *peer) peerTimedOut(now, peerTimeout time.Duration) bool {
	limit := defaultPeerTimeout
	if peerTimeout > 0 {
		limit = peerTimeout
	}
	if p.rejected {
		limit = rejectedTimeout
	}
	return p.TimedOut(now, limit) || p.requests != nil && p.Idle() && now-p.lastReceived >= limit
}

// probeAt returns when to probe a peer: when it has our request and we have nothing to
// retransmit.
func (p *peer) probeAt() time.Duration {
	if p.requests == nil || !p.Idle() {
		return never
	}
	return max(p.lastReceived, time.Duration(p.probed)*time.Millisecond) + probeEvery
}

// partialsDue returns when incomplete segments are dropped.
func (p *peer) partialsDue() time.Duration {
	if p.partials == 0 {
		return never
	}
	return p.lastReceived + partialTimeout
}

// joining is a message of several datagrams that is being reassembled.
type joining struct {
	recv    rdma.RecvWR
	got     int
	tooLong bool
}
