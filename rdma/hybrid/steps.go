package hybrid

import (
	"errors"
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// Carries out what move.go decides: run executes the steps of an end, receiveNotice
// handles notices of its peer, retryDeferred repeats what found no room.

// run executes the steps of an end. Steps may add further steps. One that finds no room
// waits, with those behind it.
func (d *Device) run(m *peerState) {
	if d.pair == nil || d.pair.closed {
		m.steps = nil
		return
	}
	if m.phase == joined {
		d.policy.establish(&m.score)
	}
	done := 0
	for done < len(m.steps) && d.execute(m, m.steps[done]) {
		done++
	}
	m.steps = slices.Delete(m.steps, 0, done)
	if now := m.changes(); now != m.isChanging {
		if m.isChanging = now; now {
			d.changing++
		} else {
			d.changing--
		}
	}
	if len(m.steps) > 0 && !m.isDeferred {
		m.isDeferred = true
		d.deferred = append(d.deferred, m)
		d.countDeferred()
	}
	if m.phase == failed && !m.lossRecorded {
		d.recordLoss(m)
	}
}

// execute carries out a step. It returns false if there is no room for it now.
func (d *Device) execute(m *peerState, s step) bool {
	switch s.do {
	case sendNotice:
		return d.sendNotice(m, &s)
	case open:
		if d.newConnection(m) != nil {
			d.policy.fail(&m.score)
			answer := m.phase == connecting
			if m.phase = noConnection; answer {
				m.notify(refuse, 0)
			}
		}
	case connect:
		if m.conn != nil {
			d.dialer.dial(m.conn, d.pair.recvCQ.Wake)
		}
	case shut:
		if m.conn != nil {
			d.closeConnection(m.conn)
			m.conn = nil
			d.policy.give(&m.score)
		}
	case read:
		return d.postFence(m)
	case collect:
		if !m.planned {
			d.losses.broken++
			d.policy.fail(&m.score)
		}
		m.conn.replays = !m.conn.failed
		d.end(m.conn)
	case replay:
		if m.phase == replaying {
			d.selectRecords(m, s.count)
			return d.resend(m)
		}
	}
	return true
}

// sendNotice sends a notice to the peer. It returns false if there is no room now.
func (d *Device) sendNotice(m *peerState, s *step) bool {
	n := notice{kind: s.kind, epoch: s.epoch, count: s.count}
	if n.kind == offer || n.kind == accept {
		if m.conn == nil {
			return true // it could not be opened
		}
		n.data, n.control, n.connection = d.pair.data.Addr(), d.pair.control.Addr(), m.conn.qp.Addr()
	}
	if !m.hasControl {
		id, err := d.rd.Resolve(m.controlAddr)
		if err != nil {
			m.unreachable()
			return true
		}
		d.bind(m, id)
	}
	wrs := [1]rdma.SendWR{{ID: d.ids.notice, Op: rdma.OpSend, Peer: m.control, Flags: rdma.Inline | rdma.Solicited, Body: rdma.MemOf(n.append(nil))}}
	_, err := d.pair.control.PostSend(wrs[:])
	if err != nil && !errors.Is(err, rdma.ErrAgain) {
		m.unreachable()
	}
	return !errors.Is(err, rdma.ErrAgain)
}

// bind records the control queue pair of a peer.
func (d *Device) bind(m *peerState, control rdma.PeerID) {
	m.control, m.hasControl = control, true
	for int(control) >= len(d.byControl) {
		d.byControl = append(d.byControl, nil)
	}
	d.byControl[control] = m
}

// boundTo returns the peer of a control queue pair, nil if it is unknown.
func (d *Device) boundTo(control rdma.PeerID) *peerState {
	if int(control) < len(d.byControl) {
		return d.byControl[control]
	}
	return nil
}

// cutOff abandons moves with a peer that notices do not reach.
func (d *Device) cutOff(m *peerState) {
	m.unreachable()
	d.run(m)
}

// recordLoss reports a failed peer, also to a user that only receives from it.
func (d *Device) recordLoss(m *peerState) {
	m.lossRecorded = true
	d.losses.peers++
	d.abandonRecords(m, rdma.StatusPeerGone)
	d.pair.recvCQ.inject(rdma.Completion{Peer: m.id, Op: rdma.OpDisconnected, Status: rdma.StatusPeerGone})
}

// postFence posts an empty Read from a peer by datagram. It returns false if there is no
// room now.
func (d *Device) postFence(m *peerState) bool {
	wrs := [1]rdma.SendWR{{ID: d.ids.fence, Op: rdma.OpRead, Peer: m.id}}
	_, err := d.pair.data.PostSend(wrs[:])
	if err != nil && !errors.Is(err, rdma.ErrAgain) {
		m.endFence(false)
	}
	return !errors.Is(err, rdma.ErrAgain)
}

// retryDeferred repeats what found no room.
func (d *Device) retryDeferred() {
	waiting := d.deferred
	d.deferred = nil
	for _, m := range waiting {
		m.isDeferred = false
		d.run(m)
	}
	d.countDeferred()
}

// countDeferred updates the counter by which waiters see deferred work.
func (d *Device) countDeferred() { d.deferredWork.Store(int32(len(d.deferred) + len(d.conns.ending))) }

// receiveNotice handles a notice from a control queue pair.
func (d *Device) receiveNotice(from rdma.PeerID, text []byte) {
	var n notice
	if n.parse(text) != nil {
		return // a peer of another version: it stays with datagrams
	}
	m := d.boundTo(from)
	if n.kind == offer && m == nil {
		m = d.identify(from, &n)
	}
	if m == nil {
		return
	}
	room := false
	switch n.kind {
	case offer:
		d.decideFirst(m)
		v, evicting := d.policy.considerOffer(&m.score)
		if room = v == promote; evicting != nil {
			d.demotePeer(evicting)
		}
		m.remote = n.connection
	case accept:
		m.remote = n.connection
	case refuse:
		if m.phase == offering && n.epoch == m.epoch {
			d.policy.refuse(&m.score)
		}
	case setupFailed:
		d.policy.fail(&m.score)
	}
	m.handleNotice(n.kind, n.epoch, n.count, room)
	d.run(m)
}

// identify resolves the sender of an offer that was not resolved before.
func (d *Device) identify(from rdma.PeerID, n *notice) *peerState {
	control, err := d.rd.Resolve(n.control)
	if err != nil || control != from {
		return nil
	}
	data, err := d.rd.Resolve(n.data)
	if err != nil {
		return nil
	}
	m := d.peer(data)
	if m.controlAddr == "" {
		m.controlAddr = n.control
	}
	d.bind(m, from)
	return m
}
