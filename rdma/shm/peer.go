package shm

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// reach is the way in which a peer's memory is read and written.
type reach uint8

const (
	reachMessages reach = iota // by messages to the peer, see fallback.go
	reachKernel                // process_vm_readv, process_vm_writev
	reachHeap                  // it is in this process
)

// peer is a resolved rank: its segment and this rank's path to it.
type peer struct {
	seg    *segment
	ring   *ringWriter // nil: messages go through the shared queue
	id     rdma.PeerID
	fenced bool // one of the two needs a fence, see wait.go
	gone   bool
	mine   bool // this rank itself
	// introduced reports that the peer has our address, see fallback.go.
	introduced bool
	reach      reach
	pid        int    // 0: not visible as a process
	path       string // of its segment, if it is a file
	pidfd      int    // -1: none
	nonce      uint64
	sent       int // messages through its shared queue
	ringAt     int // claim a ring when sent reaches this
}

// peer returns nil for a handle that Resolve did not return.
func (d *Device) peer(id rdma.PeerID) *peer {
	return d.peers.Get(int(id))
}

func errUnknownPeer(id rdma.PeerID) error {
	return fmt.Errorf("shm: no peer %d; Resolve its address first", id)
}

// Alive reports whether the peer still exists. Requests to a peer that does not complete
// with StatusPeerGone. A peer that was never resolved counts as alive. Alive costs a
// system call.
func (d *Device) Alive(id rdma.PeerID) bool {
	p := d.peer(id)
	if p == nil {
		return true
	}
	if !p.gone && (p.seg.head.sleeper.Load() == closedWord || !p.mine && !p.seg.heap && !processAlive(p)) {
		p.gone = true
	}
	if p.gone {
		d.mu.Lock()
		d.copies.peerGone(d, p, rdma.StatusPeerGone)
		d.mu.Unlock()
	}
	return !p.gone
}

// closePeer ends the traffic to a peer and returns its ring.
func (d *Device) closePeer(p *peer) error {
	if p.ring != nil && !p.gone && !p.mine {
		var wr rdma.SendWR
		// If the ring is full it stays claimed. The peer loses one ring, nothing else.
		d.transmit(p, kindRingClose, &wr)
	}
	if p.seg.heap || p.mine {
		return nil
	}
	return unmapPeer(p)
}
