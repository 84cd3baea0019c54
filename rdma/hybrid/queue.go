package hybrid

import (
	"sync/atomic"

	"github.com/muster-mpi/muster/rdma"
)

// Completion queues, and the way in: Poll asks the two devices, sift takes out what is not
// for the user, and counts what is.
//
// A look at a device is a system call. The device that gave the last completion, or took
// the last request, is asked by every Poll. The other one is asked again the next time if
// it had something, else after twice as many Polls, up to the 16th: so a wait for one peer
// pays for one device, and nobody starves. After a sleep both are asked, since either may
// have ended it.

const rarest = 16

// queue is a completion queue.
type queue struct {
	dev    *Device
	rd, rc rdma.CQ
	closed bool

	preferred path         // the device that every Poll asks
	pause     [paths]uint8 // Polls that ask the other one no more than once
	left      [paths]uint8 // of those, to come
	slept     atomic.Bool  // since the last Poll
	loans     []loan
	hasLoans  atomic.Bool // there are loans
	sleeper   sleep

	extra    []rdma.Completion // of this device, for the next Poll
	hasExtra atomic.Bool       // there are some
}

// loan is a buffer of a connection that the last Poll has shown.
type loan struct {
	conn   *connection
	number int
}

// NewCQ creates a completion queue.
func (d *Device) NewCQ(depth int) (rdma.CQ, error) {
	if d.closed {
		return nil, rdma.ErrClosed
	}
	q := &queue{dev: d}
	var err error
	if q.rd, err = d.rd.NewCQ(depth); err != nil {
		return nil, err
	}
	if d.rc != nil {
		if q.rc, err = d.rc.NewCQ(depth); err != nil {
			_ = q.rd.Close() // it was made a moment ago
			return nil, err
		}
	}
	if err = q.sleeper.open(q.files()); err != nil {
		_ = q.closeBelow() // the same
		return nil, err
	}
	d.queues = append(d.queues, q)
	return q, nil
}

// prefer lets the next Polls ask the device where an answer will come from.
func (q *queue) prefer(p path) { q.preferred = p }

// Poll makes progress and gives what has completed.
func (q *queue) Poll(out []rdma.Completion) (n int) {
	d := q.dev
	switch {
	case q.closed || d.closed:
		return 0
	case d.rc == nil:
		n = q.rd.Poll(out)
		if d.copies.used > 0 {
			n = d.copies.sift(out[:n])
		}
		return n
	}
	if len(q.extra) > 0 && len(out) > 0 {
		n = copy(out, q.extra)
		q.extra = append(q.extra[:0], q.extra[n:]...)
		q.hasExtra.Store(len(q.extra) > 0)
		return n
	}
	slept := q.slept.Load()
	if slept {
		q.slept.Store(false)
	}
	d.progress(slept)
	if d.live == 0 {
		return q.ask(byDatagram, out)
	}
	first := path(d.polls & 1) // so that one with much to give does not keep the other out
	for _, p := range [paths]path{first, first.other()} {
		switch {
		case slept || p == q.preferred || q.left[p] == 0:
			if n < len(out) || len(out) == 0 {
				n += q.ask(p, out[n:])
			}
		default:
			q.left[p]--
		}
	}
	return n
}

// inject shows the user a completion that no device below makes.
func (q *queue) inject(c rdma.Completion) {
	if q.closed {
		return
	}
	q.extra = append(q.extra, c)
	q.hasExtra.Store(true)
	q.Wake()
}

// ask polls one of the devices.
func (q *queue) ask(p path, out []rdma.Completion) (kept int) {
	n := 0
	if p == byDatagram {
		n = q.rd.Poll(out)
		kept = q.siftDatagrams(out[:n])
	} else {
		q.giveBack()
		n = q.rc.Poll(out)
		kept = q.siftConnections(out[:n])
		if d := q.dev; len(d.ending) > 0 && n < len(out) {
			d.emptied(q)
		}
	}
	switch {
	case n > 0:
		q.pause[p] = 0
	case q.pause[p] < rarest-1:
		q.pause[p] = 2*q.pause[p] + 1
	}
	q.left[p] = q.pause[p]
	if kept > 0 {
		q.preferred = p
	}
	return kept
}

// siftDatagrams leaves what is for the user, in order, and gives its number.
func (q *queue) siftDatagrams(list []rdma.Completion) (kept int) {
	d := q.dev
	for i := range list {
		c := &list[i]
		switch {
		case c.Op == rdma.OpDisconnected && int(c.Peer) < len(d.byControl) && d.byControl[c.Peer] != nil:
			d.cutOff(d.byControl[c.Peer])
			continue
		case c.Op == rdma.OpRecv && c.ID != 0:
			if c.Status == rdma.StatusOK {
				d.receiveNotice(c.Peer, c.Data.Bytes())
			}
			d.pair.postWords(c.ID)
			continue
		case c.Op == rdma.OpRecv:
			d.show(d.peer(c.Peer), byDatagram, c)
		case c.ID == d.fenceID && c.Op == rdma.OpRead:
			if m := d.known(c.Peer); m != nil {
				m.fenced(byDatagram, c.Status == rdma.StatusOK)
				d.run(m)
			}
			continue
		case c.ID == d.replayID:
			continue // the user has seen its completion, and other work will find the peer gone
		case c.ID == d.noticeID && c.Status != rdma.StatusOK && int(c.Peer) < len(d.byControl) && d.byControl[c.Peer] != nil:
			if c.Status != rdma.StatusFlushed {
				d.cutOff(d.byControl[c.Peer])
			}
			continue
		}
		if !d.copies.finish(c) {
			continue
		}
		if kept < i {
			list[kept] = *c
		}
		kept++
	}
	return kept
}

// show counts a message that the user is shown.
func (d *Device) show(m *peerState, p path, c *rdma.Completion) {
	m.shown[p]++
	if m.pending {
		m.reportSeen()
		d.run(m)
	}
	d.used(m, int(c.Len))
}

// siftConnections does the same for connections. Their completions carry a slot, and are
// to carry the peer.
func (q *queue) siftConnections(list []rdma.Completion) (kept int) {
	d := q.dev
	for i := range list {
		c := &list[i]
		conn := d.connectionIn(c.Peer)
		if conn == nil {
			continue // of a queue that has run empty since: there is no such completion
		}
		m := conn.peer
		c.Peer = m.id
		switch {
		case c.Op == rdma.OpLowWater:
			continue
		case c.Op == rdma.OpDisconnected && c.Status == rdma.StatusRemoteAccess:
			conn.failed = true // the user is told whom to blame, and the end of the connection follows
		case c.Op == rdma.OpDisconnected:
			if m.conn == conn {
				conn.failed = conn.failed || c.Status != rdma.StatusPeerGone
				m.disconnected()
				d.run(m)
			}
			continue
		case c.Op == rdma.OpRecv && conn.buffers != nil:
			q.loans = append(q.loans, loan{conn, int(c.ID)})
			q.hasLoans.Store(true)
			if c.ID = 0; c.Status != rdma.StatusOK {
				continue // it was cut off
			}
			d.show(m, byConnection, c)
		case c.Op == rdma.OpRecv:
			d.show(m, byConnection, c)
		case c.ID == d.fenceID && c.Op == rdma.OpRead:
			m.fenced(byConnection, c.Status == rdma.StatusOK)
			d.run(m)
			continue
		case c.Status == rdma.StatusFlushed && conn.replays:
			d.copies.end(c.ID) // it is sent again by datagram
			continue
		case c.Status != rdma.StatusOK && m.conn == conn:
			conn.failed = true
			m.broke()
			d.run(m)
		}
		if !d.copies.finish(c) {
			continue
		}
		if kept < i {
			list[kept] = *c
		}
		kept++
	}
	return kept
}

// giveBack posts the buffers again that connections of their own have shown.
func (q *queue) giveBack() {
	if len(q.loans) == 0 {
		return
	}
	q.hasLoans.Store(false)
	for i, l := range q.loans {
		if !l.conn.closed {
			_ = q.dev.postBuffer(l.conn, l.number) // a closed one needs none
		}
		q.loans[i] = loan{}
	}
	q.loans = q.loans[:0]
}

func (q *queue) closeBelow() error {
	err := q.rd.Close()
	if q.rc != nil {
		if other := q.rc.Close(); err == nil {
			err = other
		}
	}
	return err
}

// Close ends the queue.
func (q *queue) Close() error {
	if q.closed {
		return nil
	}
	q.closed = true
	q.sleeper.close()
	return q.closeBelow()
}
