package hybrid

import (
	"errors"

	"github.com/muster-mpi/muster/rdma"
)

// Carries out what move.go decides: run executes the steps of an end, receiveNotice
// handles notices of its peer, retryDeferred repeats what found no room.

// fence is an empty Read that is to be posted.
type fence struct {
	peer *peerState
	path path
}

// queuedNotice is a notice that is to be sent.
type queuedNotice struct {
	peer *peerState
	text []byte
}

// run executes the steps of an end. Steps may add further steps.
func (d *Device) run(m *peerState) {
	if d.pair == nil || d.pair.closed {
		m.steps = m.steps[:0]
		return
	}
	if m.phase == joined {
		d.policy.arrived(&m.score)
	}
	for i := 0; i < len(m.steps); i++ {
		s := m.steps[i]
		switch s.do {
		case sendNotice:
			d.sendNotice(m, &s)
		case open:
			if err := d.newConnection(m); err != nil {
				m.steps = m.steps[:i+1] // the following steps need it
				d.notOpened(m)
			}
		case connect:
			d.dial(m)
		case shut:
			if m.conn != nil {
				d.closeConnection(m.conn)
				m.conn = nil
				d.policy.give(&m.score)
			}
		case read:
			d.postFence(fence{m, s.path})
		case collect:
			d.broken++
			d.policy.fail(&m.score)
			if c := m.conn; !c.closed && !c.draining {
				c.draining, c.replays = true, c.retain != nil && !c.failed
				d.ending = append(d.ending, c)
				d.countDeferred()
			}
		case replay:
			d.selectRecords(m, s.count)
			d.replays = append(d.replays, m)
			d.countDeferred()
		}
	}
	m.steps = m.steps[:0]
}

// notOpened handles the failure to create a queue pair.
func (d *Device) notOpened(m *peerState) {
	d.policy.fail(&m.score)
	answer := m.phase == connecting
	if m.phase = noConnection; answer {
		m.notify(refuse, 0, 0)
	}
}

// sendNotice sends a notice to the peer.
func (d *Device) sendNotice(m *peerState, s *step) {
	n := notice{kind: s.kind, path: s.path, epoch: s.epoch, count: s.count}
	if n.kind == offer {
		n.data, n.control = d.pair.data.Addr(), d.pair.control.Addr()
	}
	if n.kind == offer || n.kind == accept {
		n.connection = m.conn.qp.Addr()
	}
	l := queuedNotice{m, n.append(make([]byte, 0, noticeMax))}
	if len(d.unsent) > 0 || !d.post(l) {
		d.unsent = append(d.unsent, l)
		d.countDeferred()
	}
}

// post sends a notice. It returns false if there is no room now.
func (d *Device) post(l queuedNotice) bool {
	m := l.peer
	if !m.hasControl {
		id, err := d.rd.Resolve(m.controlAddr)
		if err != nil {
			d.cutOff(m)
			return true
		}
		d.bind(m, id)
	}
	wrs := [1]rdma.SendWR{{ID: d.noticeID, Op: rdma.OpSend, Peer: m.control, Flags: rdma.Inline | rdma.Solicited, Body: rdma.MemOf(l.text)}}
	_, err := d.pair.control.PostSend(wrs[:])
	if errors.Is(err, rdma.ErrAgain) {
		return false
	}
	if err != nil {
		d.cutOff(m)
	}
	return true
}

// bind records the control queue pair of a peer.
func (d *Device) bind(m *peerState, control rdma.PeerID) {
	m.control, m.hasControl = control, true
	for int(control) >= len(d.byControl) {
		d.byControl = append(d.byControl, nil)
	}
	d.byControl[control] = m
}

// cutOff abandons moves with a peer that notices do not reach.
func (d *Device) cutOff(m *peerState) {
	m.unreachable()
	d.run(m)
	d.recordLoss(m)
}

// recordLoss reports a failed peer, also to a user that only receives from it.
func (d *Device) recordLoss(m *peerState) {
	if m.phase != failed || m.lossRecorded {
		return
	}
	m.lossRecorded = true
	d.lost++
	d.abandonRecords(m, rdma.StatusPeerGone)
	d.pair.recvCQ.inject(rdma.Completion{Peer: m.id, Op: rdma.OpDisconnected, Status: rdma.StatusPeerGone})
}

// postFence posts an empty Read from a peer over a path.
func (d *Device) postFence(f fence) {
	m := f.peer
	wrs := [1]rdma.SendWR{{ID: d.fenceID, Op: rdma.OpRead, Peer: m.id}}
	qp := d.pair.data
	if f.path == byConnection {
		if m.conn == nil {
			m.fenced(f.path, false)
			return
		}
		qp = m.conn.qp
	}
	_, err := qp.PostSend(wrs[:])
	switch {
	case errors.Is(err, rdma.ErrAgain):
		d.late = append(d.late, f)
		d.countDeferred()
	case err != nil:
		m.fenced(f.path, false)
	case f.path == byConnection:
		m.conn.remember(&wrs[0], m.sent[byConnection])
	}
}

// retryDeferred repeats what found no room.
func (d *Device) retryDeferred() {
	fences := len(d.late)
	for i := range fences {
		f := d.late[i]
		d.postFence(f)
		d.run(f.peer)
	}
	d.late = append(d.late[:0], d.late[fences:]...)
	for len(d.unsent) > 0 && d.post(d.unsent[0]) {
		d.unsent[0] = queuedNotice{}
		d.unsent = d.unsent[1:]
	}
	waiting := d.replays
	d.replays = nil
	for _, m := range waiting {
		if m.phase != replaying {
			continue
		}
		if d.resend(m); m.phase == replaying {
			d.replays = append(d.replays, m)
		}
		d.run(m)
	}
	d.countDeferred()
}

// countDeferred updates the counter by which waiters see deferred work.
func (d *Device) countDeferred() {
	d.deferredWork.Store(int32(len(d.late) + len(d.unsent) + len(d.replays) + len(d.ending)))
}

// receiveNotice handles a notice from a control queue pair.
func (d *Device) receiveNotice(from rdma.PeerID, text []byte) {
	var n notice
	if n.parse(text) != nil {
		return // a peer of another version: it stays with datagrams
	}
	var m *peerState
	if int(from) < len(d.byControl) {
		m = d.byControl[from]
	}
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
	m.received(n.kind, n.epoch, n.path, n.count, room)
	d.run(m)
	d.recordLoss(m)
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
