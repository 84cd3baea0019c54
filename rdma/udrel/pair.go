package udrel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/guard"
	"github.com/muster-mpi/muster/rdma/recvpool"
)

// A queue pair and the send path: PostSend accepts work requests, and service drives
// the peers that are busy. send.go sends the packets.

// pairDepth is the default maximum of pending requests.
const pairDepth = 512

// pair is an RD queue pair, over its own UD queue pair.
type pair struct {
	dev     *Device
	below   rdma.QP
	srq     rdma.SRQ // of below
	pool    *recvpool.Pool
	number  int
	sendCQ  *queue
	recvCQ  *queue
	recv    *receiveQueue
	peers   []*peer // by PeerID
	busy    []*peer
	depth   int
	pending int // requests that are not complete
	held    int // packets in reorder buffers
	stuck   bool
	closed  bool
}

// peer is the state that a queue pair keeps about a peer.
type peer struct {
	sender
	receiver
	reorderBuffer *reorderBuffer // packets that have arrived and are not delivered
	join          *joining       // a message being reassembled
	accesses      *message       // that await a response, in order
	lastAccess    *message
	lastReceived  time.Duration
	givenUp       time.Duration // how long it was silent before it was declared gone; 0: it is not
	id            rdma.PeerID
	busy          bool
	gone          bool
	refuses       bool // the Write being received is refused
	strikes       guard.Strikes
	barred        bool // too many refused memory accesses
}

var _ rdma.DrainQP = (*pair)(nil)

// NewQP creates a queue pair.
func (d *Device) NewQP(c rdma.QPConfig) (rdma.QP, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, rdma.ErrClosed
	}
	if c.Type != rdma.RD {
		return nil, fmt.Errorf("udrel: only queue pairs of type RD are supported: %w", rdma.ErrUnsupported)
	}
	q := &pair{dev: d, number: len(d.pairs), depth: c.Depth}
	var okSend, okRecv bool
	q.sendCQ, okSend = queueOf(c.SendCQ)
	q.recvCQ, okRecv = queueOf(c.RecvCQ)
	if !okSend || !okRecv || q.sendCQ.dev != d || q.recvCQ.dev != d {
		return nil, fmt.Errorf("udrel: a queue pair needs completion queues of its own device, not %T and %T", c.SendCQ, c.RecvCQ)
	}
	if c.SRQ == nil {
		q.recv = newReceiveQueue(d, rdma.SRQConfig{})
	} else if srq, ok := c.SRQ.(*receiveQueue); ok && srq.dev == d {
		q.recv = srq
	} else {
		return nil, fmt.Errorf("udrel: a queue pair needs a shared receive queue of its own device, not a %T", c.SRQ)
	}
	if q.depth <= 0 {
		q.depth = pairDepth
	}
	if err := q.openBelow(); err != nil {
		return nil, err
	}
	d.startProgress()
	d.pairs = append(d.pairs, q)
	return q, nil
}

// openBelow creates the UD queue pair and posts its buffers.
func (q *pair) openBelow() (err error) {
	d := q.dev
	c := recvpool.Config{Size: d.cfg.Packet, Least: d.cfg.Least, Most: d.cfg.Most}
	if q.srq, err = d.below.NewSRQ(rdma.SRQConfig{Depth: c.Depth(), LowWater: c.Watermark()}); err != nil {
		return fmt.Errorf("udrel: a receive queue of %d packets: %w", c.Depth(), err)
	}
	// The IDs distinguish packets of several queue pairs.
	c.Post = func(wrs []rdma.RecvWR) (int, error) {
		for i := range wrs {
			wrs[i].ID |= uint64(q.number) << pairShift
		}
		return q.srq.PostRecv(wrs)
	}
	if q.below, err = d.below.NewQP(rdma.QPConfig{Type: rdma.UD, SendCQ: q.sendCQ.below, RecvCQ: q.recvCQ.below, SRQ: q.srq}); err == nil {
		if q.pool, err = recvpool.New(c); err == nil {
			err = q.pool.Start()
		}
	}
	if err != nil {
		if q.below != nil {
			_ = q.below.Close() // it was just created
		}
		_ = q.srq.Close() // the same
		return fmt.Errorf("udrel: a UD queue pair on %s: %w", d.below.Attr().Name, err)
	}
	return nil
}

// Addr returns the address that peers resolve.
func (q *pair) Addr() rdma.Addr { return q.below.Addr() }

// Connect returns an error: datagrams need no connection.
func (q *pair) Connect(context.Context, rdma.Addr) error {
	return fmt.Errorf("udrel: queue pairs of datagrams need no connection; Resolve the address and name the peer in each request: %w", rdma.ErrUnsupported)
}

// Pending returns the number of requests not known to have arrived.
func (q *pair) Pending() int {
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	return q.pending
}

// PostRecv posts buffers to a queue pair without a shared receive queue.
func (q *pair) PostRecv(wrs []rdma.RecvWR) (int, error) {
	if q.recv.shared {
		return 0, fmt.Errorf("udrel: the queue pair has a shared receive queue: %w", rdma.ErrUnsupported)
	}
	return q.recv.PostRecv(wrs)
}

// PostSend accepts requests and sends what may be sent at once.
func (q *pair) PostSend(wrs []rdma.SendWR) (n int, err error) {
	d := q.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if q.closed || d.closed {
		return 0, rdma.ErrClosed
	}
	d.calls++
	d.ticked = false
	d.tick()
	var last *peer
	for i := range wrs {
		wr := &wrs[i]
		if err = q.check(wr); err != nil {
			break
		}
		if q.pending == q.depth {
			err = rdma.ErrAgain
			break
		}
		if p := q.peer(wr.Peer); p != last && last != nil {
			q.flushPeer(last)
		}
		last = q.take(wr)
		n++
	}
	if last != nil {
		q.flushPeer(last)
		d.flush()
	}
	if d.parked > 0 && n > 0 {
		d.wakeAll() // waiters do not know about the new timers
	}
	return n, err
}

// check rejects a request that can never be sent.
func (q *pair) check(wr *rdma.SendWR) error {
	length := int(wr.HeadLen) + wr.Body.Len()
	switch {
	case !q.dev.attr.Ops.Has(wr.Op):
		return fmt.Errorf("udrel: operation %v: %w", wr.Op, rdma.ErrUnsupported)
	case wr.HeadLen > rdma.HeadMax:
		return fmt.Errorf("udrel: a head of %d bytes for peer %d is longer than %d", wr.HeadLen, wr.Peer, rdma.HeadMax)
	case wr.Op == rdma.OpSend && length > maxSend:
		return fmt.Errorf("udrel: a message of %d bytes for peer %d is longer than Attr.MaxSend, %d; split it", length, wr.Peer, maxSend)
	case wr.Flags&rdma.Inline != 0 && wr.Body.Len() > maxInline:
		return fmt.Errorf("udrel: an inline body of %d bytes for peer %d is longer than Attr.MaxInline, %d; send it without Inline", wr.Body.Len(), wr.Peer, maxInline)
	case wr.Op != rdma.OpSend && wr.Body.Len() > q.dev.cfg.MaxTransfer:
		return fmt.Errorf("udrel: a %v of %d bytes at peer %d is longer than Attr.MaxTransfer, %d; split it", wr.Op, wr.Body.Len(), wr.Peer, q.dev.cfg.MaxTransfer)
	}
	return nil
}

// take makes a message of a request.
func (q *pair) take(wr *rdma.SendWR) *peer {
	d, p := q.dev, q.peer(wr.Peer)
	inline := wr.Flags&rdma.Inline != 0
	beside := int(wr.HeadLen) // how much of the user's head fits beside ours
	if wr.HeadLen > longestHead {
		beside = 0
	}
	room := 0
	if inline && wr.Op != rdma.OpRead || beside != int(wr.HeadLen) {
		room = int(wr.HeadLen) - beside + wr.Body.Len()
	}
	m := d.messagePool.take(room)
	m.peer, m.pair, m.id, m.op, m.body = p, q, wr.ID, wr.Op, wr.Body
	m.kind, m.silent, m.sending, m.awaited = kindSend, inline, true, !inline
	m.room = d.cfg.Packet - headerLen
	if room > 0 {
		m.kept = append(m.kept[:0], wr.Head[beside:wr.HeadLen]...)
		m.kept = append(m.kept, wr.Body.Bytes()...)
		m.body = rdma.MemOf(m.kept)
	}
	q.pending++
	if p.gone {
		m.sending = false
		q.end(m, rdma.StatusPeerGone)
		return p
	}
	if wr.Op == rdma.OpSend {
		m.headLen = uint8(copy(m.head[:beside], wr.Head[:]))
		if wr.Flags&rdma.Solicited != 0 {
			m.flags |= flagSolicited
		}
	} else {
		m.setAccess(wr)
	}
	q.enqueue(p, m)
	return p
}

// enqueue passes a message to the sender of a peer.
func (q *pair) enqueue(p *peer, m *message) {
	if p.sender.idle() {
		p.lastReceived = q.dev.now // the peer timeout starts now
	}
	p.push(m)
	q.markBusy(p)
}

// peer returns the state of a peer, which is created with the first packet.
func (q *pair) peer(id rdma.PeerID) *peer {
	for int(id) >= len(q.peers) {
		q.peers = append(q.peers, nil)
	}
	if q.peers[id] == nil {
		q.peers[id] = &peer{id: id}
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
	now := q.dev.now
	q.stuck = false
	q.pool.Drained(now)
	for i := 0; i < len(q.busy); {
		p := q.busy[i]
		probe := p.expire(now)
		if !(p.sender.idle() && p.accesses == nil) && now-p.lastReceived > q.dev.cfg.PeerTimeout {
			p.givenUp = now - p.lastReceived
			q.abandon(p, rdma.StatusPeerGone)
			q.recvCQ.push(rdma.Completion{Op: rdma.OpDisconnected, Peer: p.id, Status: rdma.StatusPeerGone}, loan{})
		}
		q.deliverReordered(p)
		q.flushPeer(p)
		switch {
		case probe:
			q.writeAck(p, kindAck, flagUrgent)
		case p.ackDue(now):
			q.writeAck(p, kindAck, 0)
		}
		if !p.inactive() {
			i++
			continue
		}
		p.busy = false
		last := len(q.busy) - 1
		q.busy[i], q.busy[last] = q.busy[last], nil
		q.busy = q.busy[:last]
	}
	q.dev.flush()
}

// inactive reports whether there is no work for a peer until a packet arrives.
func (p *peer) inactive() bool {
	return p.sender.idle() && p.accesses == nil && p.ackPending == 0 && p.reorderBuffer == nil
}

// wake returns when service has work.
func (q *pair) wake() time.Duration {
	at := never
	if q.stuck {
		at = q.dev.now + sendRetryDelay
	}
	for _, p := range q.busy {
		at = min(at, p.sender.wake(), p.receiver.wake())
		if p.accesses != nil {
			at = min(at, p.lastReceived+q.dev.cfg.PeerTimeout)
		}
	}
	return at
}

// sendRetryDelay is how long to wait when the device below accepts no more packets.
const sendRetryDelay = 100 * time.Microsecond

// ended ends a list of messages that have arrived, or never will.
func (q *pair) ended(list *message, status rdma.Status) {
	for m := list; m != nil; {
		following := m.following
		m.sending, m.following = false, nil
		q.end(m, status)
		m = following
	}
}

// end records the result of a message, and completes its request when nobody needs it
// any more.
func (q *pair) end(m *message, status rdma.Status) {
	if m.status == rdma.StatusOK {
		m.status = status
	}
	if !m.over() {
		return
	}
	if m.kind != kindResponse {
		q.pending--
		if !m.silent || m.status != rdma.StatusOK {
			q.sendCQ.push(rdma.Completion{ID: m.id, Op: m.op, Peer: m.peer.id, Len: m.moved(), Status: m.status}, loan{})
		}
	} else if m.region != nil {
		m.region.shown--
	}
	q.dev.messagePool.put(m)
}

// moved returns the bytes that a completed request has transferred.
func (m *message) moved() uint64 {
	if m.status != rdma.StatusOK {
		return 0
	}
	return uint64(int(m.headLen) + m.body.Len())
}

// abandon declares a peer gone. That is permanent, because the sequence numbers would
// no longer match.
func (q *pair) abandon(p *peer, status rdma.Status) {
	p.gone = true
	q.ended(p.sender.abandon(&q.dev.windowPool), status)
	for p.accesses != nil {
		q.endAccess(p, status)
	}
}

// Close sends a close packet to the peers, so that none of them waits, and completes
// everything pending as flushed.
func (q *pair) Close() error {
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	return q.shut()
}

// closeRepeats is how often a close packet is sent to a busy peer: it may be lost.
const closeRepeats = 3

func (q *pair) shut() error {
	d := q.dev
	if q.closed {
		return nil
	}
	q.closed = true
	d.ticked = false
	d.tick()
	for i := range closeRepeats {
		for _, p := range q.peers {
			if p != nil && !p.gone && (i == 0 || p.busy) {
				q.writeAck(p, kindClose, 0)
			}
		}
		d.flush()
	}
	err := errors.Join(q.below.Close(), q.srq.Close())
	for _, p := range q.peers {
		if p != nil {
			q.abandon(p, rdma.StatusFlushed)
			q.clear(p)
		}
	}
	for _, m := range d.messagePool.all { // the device below no longer reads
		if m.pair == q && m.below > 0 {
			m.below = 0
			q.end(m, rdma.StatusFlushed)
		}
	}
	q.peers, q.busy = nil, nil
	d.pairs[q.number] = nil
	return err
}
