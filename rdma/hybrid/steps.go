package hybrid

import (
	"errors"

	"github.com/muster-mpi/muster/rdma"
)

// What move.go decides is done here: run goes through the steps of an end, hear takes in
// what its peer says, catchUp repeats what found no room.

// fence is a Read of nothing that is to be posted.
type fence struct {
	mate *mate
	path path
}

// letter is a notice that is to be sent.
type letter struct {
	mate *mate
	text []byte
}

// run does what an end wants done. Steps may lead to more of them.
func (d *Device) run(m *mate) {
	if d.pair == nil || d.pair.closed {
		m.steps = m.steps[:0]
		return
	}
	if m.phase == joined {
		d.policy.arrived(&m.standing)
	}
	for i := 0; i < len(m.steps); i++ {
		s := m.steps[i]
		switch s.do {
		case say:
			d.say(m, &s)
		case open:
			if err := d.newConnection(m); err != nil {
				m.steps = m.steps[:i+1] // what was to follow needs it
				d.notOpened(m)
			}
		case connect:
			d.dial(m)
		case shut:
			if m.conn != nil {
				d.closeConnection(m.conn)
				m.conn = nil
				d.policy.give(&m.standing)
			}
		case read:
			d.postFence(fence{m, s.path})
		case collect:
			d.broken++
			d.policy.fail(&m.standing)
			if c := m.conn; !c.closed && !c.draining {
				c.draining, c.replays = true, c.retain != nil && !c.failed
				d.ending = append(d.ending, c)
				d.countChores()
			}
		case replay:
			d.selectRecords(m, s.count)
			d.replays = append(d.replays, m)
			d.countChores()
		}
	}
	m.steps = m.steps[:0]
}

// notOpened gives up what needs a queue pair that could not be made.
func (d *Device) notOpened(m *mate) {
	d.policy.fail(&m.standing)
	answer := m.phase == connecting
	if m.phase = apart; answer {
		m.tell(refuse, 0, 0)
	}
}

// say sends a word to the peer.
func (d *Device) say(m *mate, s *step) {
	n := notice{word: s.word, path: s.path, epoch: s.epoch, count: s.count}
	if n.word == offer {
		n.data, n.control = d.pair.data.Addr(), d.pair.control.Addr()
	}
	if n.word == offer || n.word == accept {
		n.connection = m.conn.qp.Addr()
	}
	l := letter{m, n.append(make([]byte, 0, noticeMax))}
	if len(d.unsent) > 0 || !d.post(l) {
		d.unsent = append(d.unsent, l)
		d.countChores()
	}
}

// post sends a letter. It is false if there is no room now.
func (d *Device) post(l letter) bool {
	m := l.mate
	if !m.hasControl {
		id, err := d.rd.Resolve(m.controlAddr)
		if err != nil {
			d.cutOff(m)
			return true
		}
		d.bind(m, id)
	}
	wrs := [1]rdma.SendWR{{ID: d.wordID, Op: rdma.OpSend, Peer: m.control, Flags: rdma.Inline | rdma.Solicited, Body: rdma.MemOf(l.text)}}
	_, err := d.pair.control.PostSend(wrs[:])
	if errors.Is(err, rdma.ErrAgain) {
		return false
	}
	if err != nil {
		d.cutOff(m)
	}
	return true
}

// bind notes which control queue pair belongs to a peer.
func (d *Device) bind(m *mate, control rdma.PeerID) {
	m.control, m.hasControl = control, true
	for int(control) >= len(d.byControl) {
		d.byControl = append(d.byControl, nil)
	}
	d.byControl[control] = m
}

// cutOff gives up moves with a peer that words do not reach.
func (d *Device) cutOff(m *mate) {
	m.unreachable()
	d.run(m)
	d.grieve(m)
}

// grieve reports a peer that was given up, also to a user that only receives from it.
func (d *Device) grieve(m *mate) {
	if m.phase != bereft || m.mourned {
		return
	}
	m.mourned = true
	d.lost++
	d.abandonRecords(m, rdma.StatusPeerGone)
	d.pair.recvCQ.inject(rdma.Completion{Peer: m.id, Op: rdma.OpDisconnected, Status: rdma.StatusPeerGone})
}

// postFence reads nothing from a peer over a path.
func (d *Device) postFence(f fence) {
	m := f.mate
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
		d.countChores()
	case err != nil:
		m.fenced(f.path, false)
	case f.path == byConnection:
		m.conn.remember(&wrs[0], m.sent[byConnection])
	}
}

// catchUp repeats what found no room.
func (d *Device) catchUp() {
	fences := len(d.late)
	for i := range fences {
		f := d.late[i]
		d.postFence(f)
		d.run(f.mate)
	}
	d.late = append(d.late[:0], d.late[fences:]...)
	for len(d.unsent) > 0 && d.post(d.unsent[0]) {
		d.unsent[0] = letter{}
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
	d.countChores()
}

// countChores lets who waits know whether something is to be done soon.
func (d *Device) countChores() {
	d.chores.Store(int32(len(d.late) + len(d.unsent) + len(d.replays) + len(d.ending)))
}

// hear takes in a notice that came from a control queue pair.
func (d *Device) hear(from rdma.PeerID, text []byte) {
	var n notice
	if n.parse(text) != nil {
		return // a peer of another version: it stays with datagrams
	}
	var m *mate
	if int(from) < len(d.byControl) {
		m = d.byControl[from]
	}
	if n.word == offer && m == nil {
		m = d.introduced(from, &n)
	}
	if m == nil {
		return
	}
	room := false
	switch n.word {
	case offer:
		d.precede(m)
		v, goes := d.policy.welcome(&m.standing)
		if room = v == rise; goes != nil {
			d.displace(goes)
		}
		m.remote = n.connection
	case accept:
		m.remote = n.connection
	case refuse:
		if m.phase == offering && n.epoch == m.epoch {
			d.policy.refuse(&m.standing)
		}
	case failed:
		d.policy.fail(&m.standing)
	}
	m.heard(n.word, n.epoch, n.path, n.count, room)
	d.run(m)
	d.grieve(m)
}

// introduced finds out who it is that offers, and was not resolved.
func (d *Device) introduced(from rdma.PeerID, n *notice) *mate {
	control, err := d.rd.Resolve(n.control)
	if err != nil || control != from {
		return nil
	}
	data, err := d.rd.Resolve(n.data)
	if err != nil {
		return nil
	}
	m := d.mate(data)
	if m.controlAddr == "" {
		m.controlAddr = n.control
	}
	d.bind(m, from)
	return m
}
