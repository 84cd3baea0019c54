package hybrid

import (
	"context"
	"errors"
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
	control    rdma.QP
	controlSRQ rdma.SRQ
	text       []byte // buffers of notices
	textKey    uint32 // in strict mode
	sendCQ     *queue
	recvCQ     *queue
	srq        *sharedQueue
	closed     bool
}

// sharedQueue is a shared receive queue of both devices.
type sharedQueue struct {
	rdma.SRQ // for datagrams
	rc       rdma.SRQ
	dev      *Device
}

// NewSRQ creates a shared receive queue. It must lend: buffers that a user posts would have
// to be divided between two devices.
func (d *Device) NewSRQ(c rdma.SRQConfig) (rdma.SRQ, error) {
	if d.closed {
		return nil, rdma.ErrClosed
	}
	if !c.Lend {
		return nil, fmt.Errorf("hybrid: a receive queue for posted buffers: %w; create it with Lend, or use a device without connections", rdma.ErrUnsupported)
	}
	rd, err := d.rd.NewSRQ(c)
	if err != nil {
		return nil, err
	}
	rc, err := d.rc.NewSRQ(c)
	if err != nil {
		_ = rd.Close() // it was created a moment ago
		return nil, err
	}
	return &sharedQueue{SRQ: rd, rc: rc, dev: d}, nil
}

// Close closes both.
func (s *sharedQueue) Close() error { return errors.Join(s.SRQ.Close(), s.rc.Close()) }

// NewQP creates the queue pair of the device. There can be only one.
func (d *Device) NewQP(c rdma.QPConfig) (rdma.QP, error) {
	if d.closed {
		return nil, rdma.ErrClosed
	}
	if c.Type != rdma.RD {
		return nil, fmt.Errorf("hybrid: a queue pair of this device is RD: %w; packages rdma/soft and rdma/iwarp have the others", rdma.ErrUnsupported)
	}
	q := &pair{dev: d}
	var okSend, okRecv, okSRQ bool
	q.sendCQ, okSend = c.SendCQ.(*queue)
	q.recvCQ, okRecv = c.RecvCQ.(*queue)
	q.srq, okSRQ = c.SRQ.(*sharedQueue)
	switch {
	case !okSend || !okRecv || q.sendCQ.dev != d || q.recvCQ.dev != d || c.SRQ != nil && (!okSRQ || q.srq.dev != d):
		return nil, fmt.Errorf("hybrid: a queue pair needs queues of its own device, not %T, %T and %T", c.SendCQ, c.RecvCQ, c.SRQ)
	case !okSRQ:
		return nil, fmt.Errorf("hybrid: a queue pair without a shared receive queue: %w; use one that lends", rdma.ErrUnsupported)
	case d.pair != nil && !d.pair.closed:
		return nil, fmt.Errorf("hybrid: a second queue pair of a device with connections: %w; close the first one", rdma.ErrNoResources)
	}
	below := rdma.QPConfig{Type: rdma.RD, SendCQ: q.sendCQ.rd, RecvCQ: q.recvCQ.rd, SRQ: q.srq.SRQ, Depth: c.Depth}
	var err error
	if q.data, err = d.rd.NewQP(below); err != nil {
		return nil, err
	}
	if err := q.openControl(below); err != nil {
		_ = q.data.Close() // it was created a moment ago
		return nil, err
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
	if q.dev.attr.LocalKeys {
		mr, err := q.dev.rd.Register(q.text, 0) // until the device is closed
		if err != nil {
			return fmt.Errorf("hybrid: register the buffers of notices: %w", err)
		}
		q.textKey = mr.LKey
	}
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
func (q *pair) Addr() rdma.Addr { return q.data.Addr() + addressSign + q.control.Addr() }

// Connect returns ErrUnsupported: RD needs no connection.
func (q *pair) Connect(context.Context, rdma.Addr) error {
	return fmt.Errorf("hybrid: an RD queue pair makes its connections itself; Resolve the address and name the peer in each request: %w", rdma.ErrUnsupported)
}

// PostRecv posts buffers to a queue pair without a shared receive queue.
func (q *pair) PostRecv(wrs []rdma.RecvWR) (int, error) { return q.data.PostRecv(wrs) }

// Pending returns the number of messages that have not left the process.
func (q *pair) Pending() (n int) {
	n = q.data.Pending()
	for _, c := range q.dev.conns.slots {
		if c != nil && !c.closed {
			n += c.qp.Pending()
		}
	}
	return n
}

// Abandon ends the datagrams to a peer that has failed. Its connection, if any, has a queue
// of its own.
func (d *Device) Abandon(id rdma.PeerID) {
	if d.pair != nil && !d.pair.closed {
		d.rd.Abandon(id)
	}
}

// PostSend accepts a prefix of wrs.
func (q *pair) PostSend(wrs []rdma.SendWR) (n int, err error) {
	if q.closed {
		return 0, rdma.ErrClosed
	}
	for n < len(wrs) {
		by, err := q.carrier(&wrs[n])
		if err != nil {
			return n, err
		}
		run := 1
		for n+run < len(wrs) {
			if other, err := q.carrier(&wrs[n+run]); err != nil || other != by {
				break
			}
			run++
		}
		taken, err := q.post(by, wrs[n:n+run])
		if n += taken; err != nil {
			return n, err
		}
	}
	return n, nil
}

// carrier returns the connection that carries a request now, nil for datagrams, or why the
// request cannot be posted.
func (q *pair) carrier(wr *rdma.SendWR) (*connection, error) {
	d := q.dev
	if err := soft.CheckSend("hybrid", wr, &d.attr); err != nil {
		return nil, err
	}
	m := d.knownPeer(wr.Peer)
	if m == nil {
		return nil, nil
	}
	if err := d.postError(m); err != nil || m.path == byDatagram {
		return nil, err
	}
	return m.conn, nil
}

// post passes requests to the device that carries their peers.
func (q *pair) post(by *connection, wrs []rdma.SendWR) (n int, err error) {
	qp, way := q.data, byDatagram
	if by != nil {
		qp, way = by.qp, byConnection
	}
	n, err = qp.PostSend(wrs)
	for i := range wrs[:n] {
		wr := &wrs[i]
		m := q.dev.peer(wr.Peer)
		if wr.Op == rdma.OpSend {
			m.sent[way]++
		}
		if by != nil {
			by.remember(wr, m.sent[way])
		}
		q.dev.used(m, wr.Body.Len())
	}
	if n > 0 {
		q.recvCQ.prefer(way)
		q.recvCQ.left[way] = 0 // it may hold messages back until the next Poll
	}
	return n, err
}

// Close closes the queue pair with its connections. Accepted requests complete.
func (q *pair) Close() error {
	if q.closed {
		return nil
	}
	q.closed = true
	err := q.data.Close()
	for _, c := range q.dev.conns.slots {
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
	return errors.Join(err, q.control.Close(), q.controlSRQ.Close())
}
