package hybrid

import (
	"context"
	"fmt"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// The queue pair that the user sees, and sending: PostSend groups consecutive requests for
// the same device and passes them on. It consists of a queue pair for messages and one for
// notices (control.go), both RD, and the connections of busy peers.

type pair struct {
	dev        *Device
	data       rdma.QP
	control    rdma.QP // nil: datagrams only
	controlSRQ rdma.SRQ
	text       []byte // buffers of notices
	textKey    uint32 // in strict mode
	sendCQ     *queue
	recvCQ     *queue
	srq        *sharedQueue
	closed     bool
}

var (
	_ rdma.DrainQP   = (*pair)(nil)
	_ rdma.KeepingQP = (*pair)(nil)
)

// sharedQueue is a shared receive queue of both devices.
type sharedQueue struct {
	rdma.SRQ // for datagrams
	rc       rdma.SRQ
	dev      *Device
}

// NewSRQ creates a shared receive queue. With connections it must lend: buffers that a
// user posts would have to be divided between two devices.
func (d *Device) NewSRQ(c rdma.SRQConfig) (rdma.SRQ, error) {
	if d.closed {
		return nil, rdma.ErrClosed
	}
	if d.rc != nil && !c.Lend {
		return nil, fmt.Errorf("hybrid: a receive queue for posted buffers: %w; create it with Lend, or open the device with the channel %v", rdma.ErrUnsupported, Datagrams)
	}
	rd, err := d.rd.NewSRQ(c)
	if err != nil {
		return nil, err
	}
	s := &sharedQueue{SRQ: rd, dev: d}
	if d.rc != nil {
		if s.rc, err = d.rc.NewSRQ(c); err != nil {
			_ = rd.Close() // it was created a moment ago
			return nil, err
		}
	}
	return s, nil
}

// Close closes both.
func (s *sharedQueue) Close() error {
	err := s.SRQ.Close()
	if s.rc != nil {
		if other := s.rc.Close(); err == nil {
			err = other
		}
	}
	return err
}

// NewQP creates the queue pair of the device. With connections there can be only one.
func (d *Device) NewQP(c rdma.QPConfig) (rdma.QP, error) {
	if d.closed {
		return nil, rdma.ErrClosed
	}
	if c.Type != rdma.RD {
		return nil, fmt.Errorf("hybrid: a queue pair of this device is RD: %w; packages rdma/dgram and rdma/iwarp have the others", rdma.ErrUnsupported)
	}
	q := &pair{dev: d}
	var okSend, okRecv, okSRQ bool
	q.sendCQ, okSend = c.SendCQ.(*queue)
	q.recvCQ, okRecv = c.RecvCQ.(*queue)
	q.srq, okSRQ = c.SRQ.(*sharedQueue)
	if !okSend || !okRecv || q.sendCQ.dev != d || q.recvCQ.dev != d || c.SRQ != nil && (!okSRQ || q.srq.dev != d) {
		return nil, fmt.Errorf("hybrid: a queue pair needs queues of its own device, not %T, %T and %T", c.SendCQ, c.RecvCQ, c.SRQ)
	}
	below := rdma.QPConfig{Type: rdma.RD, SendCQ: q.sendCQ.rd, RecvCQ: q.recvCQ.rd, Depth: c.Depth}
	if okSRQ {
		below.SRQ = q.srq.SRQ
	}
	if d.rc != nil {
		switch {
		case !okSRQ:
			return nil, fmt.Errorf("hybrid: a queue pair without a shared receive queue: %w; use one that lends", rdma.ErrUnsupported)
		case d.pair != nil && !d.pair.closed:
			return nil, fmt.Errorf("hybrid: a second queue pair of a device with connections: %w; close the first one", rdma.ErrNoResources)
		}
	}
	var err error
	if q.data, err = d.rd.NewQP(below); err != nil {
		return nil, err
	}
	if d.rc != nil {
		if err := q.openControl(below); err != nil {
			_ = q.data.Close() // it was created a moment ago
			return nil, err
		}
	}
	d.pair = q
	return q, nil
}

// openControl creates the queue pair for notices. Its buffers are posted, so that their
// completions have an ID, which those of lent messages do not.
func (q *pair) openControl(below rdma.QPConfig) (err error) {
	if q.controlSRQ, err = q.dev.rd.NewSRQ(rdma.SRQConfig{Depth: mostNotices}); err != nil {
		return err
	}
	below.SRQ, below.Depth = q.controlSRQ, 0
	if q.control, err = q.dev.rd.NewQP(below); err != nil {
		return err
	}
	q.text = make([]byte, mostNotices*noticeMax)
	keys, err := q.dev.own(q.text)
	if err != nil {
		return err
	}
	q.textKey = keys[byDatagram]
	for i := range mostNotices {
		q.postNoticeBuffer(uint64(i + 1))
	}
	return nil
}

// postNoticeBuffer posts a buffer to the queue pair for notices.
func (q *pair) postNoticeBuffer(id uint64) {
	at := int(id-1) * noticeMax
	wrs := [1]rdma.RecvWR{{ID: id, Body: rdma.MemOf(q.text[at : at+noticeMax]), LKey: q.textKey}}
	_, _ = q.controlSRQ.PostRecv(wrs[:]) // there is room for each, and a closed queue needs none
}

// Addr returns the address that peers resolve.
func (q *pair) Addr() rdma.Addr {
	if q.control == nil {
		return q.data.Addr()
	}
	return q.data.Addr() + addressSign + q.control.Addr()
}

// Connect returns ErrUnsupported: RD needs no connection.
func (q *pair) Connect(context.Context, rdma.Addr) error {
	return fmt.Errorf("hybrid: an RD queue pair makes its connections itself; Resolve the address and name the peer in each request: %w", rdma.ErrUnsupported)
}

// Keep copies the outstanding requests to a peer by datagrams. A connection releases
// memory as soon as its socket has the bytes.
func (q *pair) Keep(id rdma.PeerID) {
	if qp, ok := q.data.(rdma.KeepingQP); ok {
		qp.Keep(id)
	}
}

// PostRecv posts buffers to a queue pair without a shared receive queue.
func (q *pair) PostRecv(wrs []rdma.RecvWR) (int, error) { return q.data.PostRecv(wrs) }

// Pending returns the number of messages that have not left the process.
func (q *pair) Pending() (n int) {
	if data, ok := q.data.(rdma.DrainQP); ok {
		n = data.Pending()
	}
	for _, c := range q.dev.slots {
		if c == nil || c.closed {
			continue
		}
		if qp, ok := c.qp.(rdma.DrainQP); ok {
			n += qp.Pending()
		}
	}
	return n
}

// PostSend accepts a prefix of wrs.
func (q *pair) PostSend(wrs []rdma.SendWR) (n int, err error) {
	d := q.dev
	if q.closed {
		return 0, rdma.ErrClosed
	}
	for n < len(wrs) {
		m := d.known(wrs[n].Peer)
		if err = soft.CheckSend("hybrid", &wrs[n], &d.attr); err == nil && m != nil {
			err = d.postError(m)
		}
		if err != nil {
			return n, err
		}
		run := 1
		if q.plain(&wrs[n]) {
			for n+run < len(wrs) && q.follows(m, &wrs[n+run]) {
				run++
			}
		}
		taken, err := q.post(m, wrs[n:n+run])
		if n += taken; err != nil {
			return n, err
		}
	}
	return n, nil
}

// plain reports whether a request can be passed on unchanged, together with others. The
// key of an access is changed, and so is a body that is to be copied.
func (q *pair) plain(wr *rdma.SendWR) bool {
	return wr.Op == rdma.OpSend && (wr.Flags&rdma.Inline == 0 || wr.Body.Len() <= q.dev.inlineBelow) && !q.dev.keyed(wr)
}

// follows reports whether a request goes to the same device as a message for m, and can be
// posted together with it.
func (q *pair) follows(m *peerState, wr *rdma.SendWR) bool {
	if !q.plain(wr) || soft.CheckSend("hybrid", wr, &q.dev.attr) != nil {
		return false
	}
	other := q.dev.known(wr.Peer)
	return other == m || (m == nil || m.path == byDatagram) &&
		(other == nil || other.path == byDatagram && q.dev.postError(other) == nil)
}

// post passes messages, or one access, to the device that carries their peers.
func (q *pair) post(m *peerState, wrs []rdma.SendWR) (n int, err error) {
	d, qp, way := q.dev, q.data, byDatagram
	if m != nil && m.path == byConnection {
		qp, way = m.conn.qp, byConnection
	}
	n, err = q.hand(qp, way, wrs)
	if d.rc == nil {
		return n, err
	}
	for i := range wrs[:n] {
		wr, to := &wrs[i], m
		if to == nil || wr.Peer != to.id {
			to = d.peer(wr.Peer)
		}
		if wr.Op == rdma.OpSend {
			to.sent[way]++
		}
		if way == byConnection {
			to.conn.remember(wr, to.sent[way])
		}
		d.used(to, wr.Body.Len())
	}
	if n > 0 {
		q.recvCQ.prefer(way)
	}
	return n, err
}

// hand posts messages, or one access, to a queue pair below.
func (q *pair) hand(qp rdma.QP, way path, wrs []rdma.SendWR) (n int, err error) {
	if q.plain(&wrs[0]) {
		return qp.PostSend(wrs)
	}
	return q.postChanged(qp, way, wrs)
}

// postChanged posts one request with the key or the copy that the device below needs. It
// restores the caller's request afterwards.
func (q *pair) postChanged(qp rdma.QP, way path, wrs []rdma.SendWR) (n int, err error) {
	d, wr := q.dev, &wrs[0]
	id, body, key, local, flags := wr.ID, wr.Body, wr.RKey, wr.LKey, wr.Flags
	if d.keyed(wr) {
		wr.LKey = d.locals.key(local, way)
	}
	if wr.Op != rdma.OpSend && d.rc != nil {
		wr.RKey = uint64(splitKey(key)[way])
	}
	copied := wr.Op != rdma.OpRead && flags&rdma.Inline != 0 && body.Len() > d.inlineBelow
	if copied && !d.takeCopy(wr, way) {
		err = rdma.ErrAgain
	} else if n, err = qp.PostSend(wrs); copied && n == 0 {
		d.copies.end(wr.ID)
	}
	wr.ID, wr.Body, wr.RKey, wr.LKey, wr.Flags = id, body, key, local, flags
	return n, err
}

// Close closes the queue pair with its connections. Accepted requests complete.
func (q *pair) Close() error {
	if q.closed {
		return nil
	}
	q.closed = true
	err := q.data.Close()
	if q.control == nil {
		return err
	}
	for _, c := range q.dev.slots {
		if c != nil {
			c.replays = false // its work is flushed, and reported to the user
			q.dev.closeConnection(c)
		}
	}
	for _, m := range q.dev.peers {
		if m != nil {
			q.dev.abandonRecords(m, rdma.StatusFlushed)
		}
	}
	if other := q.control.Close(); err == nil {
		err = other
	}
	if other := q.controlSRQ.Close(); err == nil {
		err = other
	}
	return err
}
