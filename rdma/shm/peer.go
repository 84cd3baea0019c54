package shm

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// reach says how a peer's memory is read and written.
type reach uint8

const (
	reachMessages reach = iota // by asking it, see fallback.go
	reachKernel                // process_vm_readv, process_vm_writev
	reachHeap                  // it is in this process
)

// peer is a rank that was resolved: its segment, and this rank's way into it.
type peer struct {
	seg    *segment
	ring   *ringWriter // nil: it gets its messages through the shared queue
	id     rdma.PeerID
	fenced bool // it or we cannot do without a fence, see wait.go
	gone   bool
	mine   bool // this rank itself
	// introduced says that it knows our address, see fallback.go.
	introduced bool
	reach      reach
	pid        int    // 0: not a process that we can see
	path       string // of its segment, if it is a file
	pidfd      int    // -1: none
	nonce      uint64
	sent       int // messages through its shared queue
	ringAt     int // ask for a ring when sent reaches this
}

// peer returns nil for a handle that Resolve did not give out.
func (d *Device) peer(id rdma.PeerID) *peer {
	if uint(id) < uint(len(d.peers)) {
		return d.peers[id]
	}
	return nil
}

func errUnknownPeer(id rdma.PeerID) error {
	return fmt.Errorf("shm: no peer %d; Resolve its address first", id)
}

// Alive reports whether the peer still exists. What waits for a peer that does not
// completes with StatusPeerGone. A peer that was never resolved counts as alive,
// since nothing is known of it. It costs a system call.
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

// closePeer ends the traffic to a peer: it gets its ring back.
func (d *Device) closePeer(p *peer) error {
	if p.ring != nil && !p.gone && !p.mine {
		var wr rdma.SendWR
		// If the ring is full it stays claimed. The peer loses a ring, no more.
		d.transmit(p, kindRingClose, &wr)
	}
	if p.seg.heap || p.mine {
		return nil
	}
	return unmapPeer(p)
}
