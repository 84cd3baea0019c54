package hybrid

import (
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/iwarp"
)

// The state of a peer that we have communicated with, and of its connection if it has one.
// A peer that was never resolved or heard from has none.

type peerState struct {
	end
	score
	id           rdma.PeerID
	isDeferred   bool // some steps found no room
	isChanging   bool // it is counted in Device.changing
	lossRecorded bool // it was counted as lost
	hasControl   bool
	control      rdma.PeerID // of its control queue pair
	controlAddr  rdma.Addr   // "" until it is resolved, or offers
	remote       rdma.Addr   // the queue pair that it named last
	conn         *connection
	records      []record // of a lost connection: to be sent again
}

// connection is a queue pair of the device for connections. Its completions carry its slot
// as their peer.
type connection struct {
	peer    *peerState
	qp      iwarp.RetainQP
	slot    rdma.PeerID
	history history
	failed  bool // its requests ended with errors that the user has seen
	replays bool // it broke: its work is sent again by datagram, and its errors are not shown

	ending    bool // it broke, or was closed: received messages are polled
	closed    bool
	sendClean bool // since it was closed, a Poll of that queue found it empty
	recvClean bool
}

// peer returns the state of a peer, and creates it if needed.
func (d *Device) peer(id rdma.PeerID) *peerState {
	for int(id) >= len(d.peers) {
		d.peers = append(d.peers, nil)
	}
	m := d.peers[id]
	if m == nil {
		m = &peerState{id: id}
		d.peers[id] = m
		d.policy.add(&m.score, id)
	}
	return m
}

// knownPeer returns the state of a peer, nil if there is none.
func (d *Device) knownPeer(id rdma.PeerID) *peerState {
	if int(id) < len(d.peers) {
		return d.peers[id]
	}
	return nil
}

// peerStateBytes is the approximate memory of a peerState, with its table entries and
// addresses.
const peerStateBytes = 288

func (d *Device) peerMemory() uint64 { return uint64(len(d.policy.known)) * peerStateBytes }

// postError returns why nothing can be posted to a peer: for the moment, or permanently.
func (d *Device) postError(m *peerState) error {
	switch {
	case m.phase == failed:
		return d.failure(m)
	case m.blocked():
		return rdma.ErrAgain
	}
	return nil
}

// Explain returns why a peer has failed.
func (d *Device) Explain(id rdma.PeerID) error {
	if m := d.knownPeer(id); m != nil && m.phase == failed {
		return d.failure(m)
	}
	return d.rd.Explain(id)
}

// failure returns why a peer has failed.
func (d *Device) failure(m *peerState) error {
	name, _ := d.rd.NameOf(m.id)
	if m.isBroken {
		return fmt.Errorf("hybrid: the TCP connection to peer %d (number %d) failed, and of %d messages that it took the peer got %d: "+
			"the others are lost; find out why TCP connections fail between the two hosts, or use the channel rd",
			name, m.id, m.sent[byConnection], m.got)
	}
	err := d.rd.Explain(m.control)
	if err == nil {
		err = &rdma.SilenceError{For: d.cfg.PeerTimeout}
	}
	return fmt.Errorf("hybrid: peer %d (number %d) does not answer: %w", name, m.id, err)
}

// used counts a message to or from a peer.
func (d *Device) used(m *peerState, length int) {
	if d.policy.use(&m.score, length) {
		d.candidates = append(d.candidates, m)
	}
}

// connections has the connections of the device, each in a slot.
type connections struct {
	slots  []*connection
	ending []*connection // closed, or broken, and not emptied
	live   int           // that may have messages for us
}

// find returns the connection of a slot.
func (t *connections) find(slot rdma.PeerID) *connection {
	if int(slot) < len(t.slots) {
		return t.slots[slot]
	}
	return nil
}

// freeSlot returns a slot for another connection.
func (t *connections) freeSlot() rdma.PeerID {
	slot := slices.Index(t.slots, nil)
	if slot < 0 {
		slot = len(t.slots)
		t.slots = append(t.slots, nil)
	}
	return rdma.PeerID(slot)
}

func (t *connections) add(c *connection) {
	t.slots[c.slot] = c
	t.live++
}

func (t *connections) remove(c *connection) {
	t.slots[c.slot] = nil
	t.live--
}

// memory returns the memory of the histories.
func (t *connections) memory() (n uint64) {
	for _, c := range t.slots {
		if c != nil {
			n += c.history.memory()
		}
	}
	return n
}

// newConnection creates a queue pair for a peer.
func (d *Device) newConnection(m *peerState) error {
	q := d.pair
	c := &connection{peer: m, slot: d.conns.freeSlot()}
	cfg := rdma.QPConfig{Type: rdma.RC, SendCQ: q.sendCQ.rc, RecvCQ: q.recvCQ.rc, SRQ: q.srq.rc, Peer: c.slot}
	var err error
	if n := d.cfg.ConnectionBuffers; n > 0 {
		if cfg.SRQ, err = d.rc.NewSRQ(rdma.SRQConfig{Lend: true, Depth: n}); err != nil {
			return err
		}
	}
	qp, err := d.rc.NewQP(cfg)
	if err != nil {
		return err
	}
	c.qp = qp.(iwarp.RetainQP)
	d.conns.add(c)
	m.conn = c
	d.policy.take(&m.score)
	return nil
}

// closeConnection closes the queue pair of a peer. Its completions are still to be polled.
func (d *Device) closeConnection(c *connection) {
	if !c.closed {
		_ = c.qp.Close() // it cannot fail
		c.closed = true
		d.end(c)
	}
}

// end polls the rest of a connection that broke, or was closed.
func (d *Device) end(c *connection) {
	if !c.ending {
		c.ending = true
		d.conns.ending = append(d.conns.ending, c)
		d.countDeferred()
	}
}

// removeEnded is called when a queue for connections was empty: connections that were closed
// before are removed, and those that broke have delivered everything.
func (d *Device) removeEnded(q *queue) {
	kept := d.conns.ending[:0]
	for _, c := range d.conns.ending {
		if c.closed {
			c.sendClean = c.sendClean || q == d.pair.sendCQ
			c.recvClean = c.recvClean || q == d.pair.recvCQ
		} else if q == d.pair.recvCQ {
			c.closed = c.retire()
		}
		if c.sendClean && c.recvClean && c.peer.conn != c {
			d.conns.remove(c)
			continue
		}
		kept = append(kept, c)
	}
	clear(d.conns.ending[len(kept):])
	d.conns.ending = kept
	for _, c := range kept {
		if m := c.peer; c.closed && m.conn == c && m.phase == breaking {
			m.endCollect(m.countDropped(c))
			d.run(m)
		}
	}
	d.countDeferred()
}
