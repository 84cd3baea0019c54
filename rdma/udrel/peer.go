package udrel

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/guard"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// peer is the state that a queue pair keeps about a peer. State that only a busy peer
// needs is behind pointers.
type peer struct {
	reliable.Peer[posted]
	reorderBuffer *reorderBuffer // packets that have arrived and are not delivered
	join          *joining       // a message being reassembled
	accesses      *message       // that await a response, in order
	lastAccess    *message
	lastReceived  time.Duration // last packet from it, or the start of waiting for one
	givenUp       time.Duration // how long it was silent before it was declared gone; 0: it is not
	unasked       int32         // bytes sent to it since an ack was requested
	id            rdma.PeerID
	busy          bool
	gone          bool
	refuses       bool // the Write being received is refused
	barred        bool // too many refused memory accesses
	strikes       guard.Strikes
}

// streamOf identifies the peer in the table of regions.
func streamOf(p *peer) ddp.StreamID { return ddp.StreamID(p.id) + 1 }

// inactive reports whether there is no work for a peer until a packet arrives.
func (p *peer) inactive() bool {
	return p.Idle() && p.accesses == nil && !p.AckPending(0) && !p.Waiting()
}

// timedOut reports whether a peer that something is awaited from has been silent for too
// long.
func (p *peer) timedOut(now, limit time.Duration) bool {
	return p.TimedOut(now, limit) || p.accesses != nil && p.Idle() && now-p.lastReceived >= limit
}

// wake returns when service has work for the peer.
func (p *peer) wake(now, limit time.Duration) time.Duration {
	at := min(p.SendWake(), p.AckWake(now, 0))
	if p.accesses != nil {
		at = min(at, p.lastReceived+limit)
	}
	return at
}

// peer returns the state of a peer, which is created with the first packet.
func (q *pair) peer(id rdma.PeerID) *peer {
	for int(id) >= len(q.peers) {
		q.peers = append(q.peers, nil)
	}
	if q.peers[id] == nil {
		q.peers[id] = &peer{Peer: reliable.NewPeer(q.dev.windows), id: id}
	}
	return q.peers[id]
}

// markBusy adds a peer to the busy list.
func (q *pair) markBusy(p *peer) {
	if !p.busy {
		p.busy = true
		q.busy = append(q.busy, p)
	}
}

// service drives the peers on the busy list.
func (q *pair) service() {
	d := q.dev
	q.pool.Drained(d.now)
	for i := 0; i < len(q.busy); {
		p := q.busy[i]
		if p.Expire(d.now); p.timedOut(d.now, d.cfg.PeerTimeout) {
			q.giveUp(p)
		}
		if q.deliverReordered(p); p.barred && !p.gone {
			q.abandon(p, rdma.StatusPeerGone)
			q.clear(p)
		}
		q.flushPeer(p)
		if p.AckDue(d.now, 0) && !d.defersAck(p) {
			q.writeAck(p, kindAck)
		}
		if !p.inactive() {
			i++
			continue
		}
		p.Rest()
		p.busy = false
		last := len(q.busy) - 1
		q.busy[i], q.busy[last] = q.busy[last], nil
		q.busy = q.busy[:last]
	}
	q.flush()
}

// defersAck reports whether an ack should be deferred: this Poll returns completions to
// the application, and its reply may carry the ack. The next call does not defer.
func (d *Device) defersAck(p *peer) bool {
	if !d.shows || p.AckFull(0) {
		return false
	}
	d.idlePolls = 1
	return true
}

// giveUp declares a silent peer gone. It also informs a user that only receives.
func (q *pair) giveUp(p *peer) {
	since := p.lastReceived
	if !p.Idle() {
		since = p.LastAck()
	}
	p.givenUp = q.dev.now - since
	q.abandon(p, rdma.StatusPeerGone)
	q.disconnected(p, rdma.StatusPeerGone)
}

func (q *pair) disconnected(p *peer, status rdma.Status) {
	q.recvCQ.push(rdma.Completion{Op: rdma.OpDisconnected, Peer: p.id, Status: status}, loan{})
}

// abandon declares a peer gone. That is permanent, because the sequences would no longer
// match.
func (q *pair) abandon(p *peer, status rdma.Status) {
	p.gone = true
	q.ended(p.Abandon(), status)
	for p.accesses != nil {
		q.endAccess(p, status)
	}
}

// clear returns what is held for a peer and will not be delivered.
func (q *pair) clear(p *peer) {
	p.DropAcks()
	if p.reorderBuffer != nil {
		for i := range p.reorderBuffer {
			if at := &p.reorderBuffer[i]; at.id > 0 {
				q.pool.Return(uint64(at.id - 1))
				*at = parked{}
				q.held--
			}
		}
		q.dev.reorderBuffers.put(p.reorderBuffer)
		p.reorderBuffer = nil
	}
	if j := p.join; j != nil && j.lent != nil {
		q.dev.giveBack(loan{join: j.lent, from: q.recv})
	}
	p.join = nil
}

// Explain returns why a peer was declared gone.
func (d *Device) Explain(id rdma.PeerID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.pairs {
		if q != nil && int(id) < len(q.peers) && q.peers[id] != nil && q.peers[id].givenUp > 0 {
			return &rdma.SilenceError{For: q.peers[id].givenUp}
		}
	}
	return nil
}
