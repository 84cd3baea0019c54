package udrel

import (
	"context"
	"errors"
	"fmt"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/soft"
	"github.com/muster-mpi/muster/rdma/recvpool"
)

// A queue pair: PostSend accepts work requests and makes messages of them, end completes
// them. peer.go drives the peers, and send.go sends the packets.

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
	batch   batch
	depth   int
	pending int // requests that are not complete
	held    int // packets in reorder buffers
	closed  bool
}

var _ rdma.DrainQP = (*pair)(nil)

// NewQP creates a queue pair.
func (d *Device) NewQP(c rdma.QPConfig) (rdma.QP, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := &pair{dev: d, number: len(d.pairs), depth: c.Depth}
	var err error
	if q.sendCQ, q.recvCQ, q.recv, err = soft.QueuesOf[*queue, *receiveQueue](&d.soft, &c, rdma.RD); err != nil {
		return nil, err
	}
	if q.recv == nil {
		q.recv = new(receiveQueue)
		if err := d.soft.OpenOwn(&q.recv.SRQ); err != nil {
			return nil, err
		}
	}
	if q.depth <= 0 {
		q.depth = pairDepth
	}
	if err := q.openBelow(); err != nil {
		return nil, fmt.Errorf("udrel: a UD queue pair on %s: %w", d.below.Attr().Name, err)
	}
	if err := d.soft.StartThread(); err != nil {
		return nil, errors.Join(err, q.below.Close(), q.srq.Close())
	}
	d.pairs = append(d.pairs, q)
	return q, nil
}

// openBelow creates the UD queue pair and posts its buffers.
func (q *pair) openBelow() (err error) {
	d := q.dev
	c := recvpool.Config{Size: d.cfg.Packet, Least: d.cfg.Least, Most: d.cfg.Most}
	if q.srq, err = d.below.NewSRQ(rdma.SRQConfig{Depth: c.Depth(), LowWater: c.Watermark()}); err != nil {
		return err
	}
	// The IDs distinguish packets of several queue pairs.
	c.Post = func(wrs []rdma.RecvWR) (int, error) {
		for i := range wrs {
			wrs[i].ID |= uint64(q.number) << pairShift
		}
		return q.srq.PostRecv(wrs)
	}
	if q.pool, err = recvpool.New(c); err == nil {
		q.below, err = d.below.NewQP(rdma.QPConfig{Type: rdma.UD, SendCQ: d.cq, RecvCQ: d.cq, SRQ: q.srq})
	}
	if err != nil {
		return errors.Join(err, q.srq.Close())
	}
	if err = q.pool.Start(); err != nil {
		return errors.Join(err, q.below.Close(), q.srq.Close())
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
func (q *pair) PostRecv(wrs []rdma.RecvWR) (int, error) { return q.recv.PostOwn(wrs) }

// PostSend accepts requests and sends what may be sent at once.
func (q *pair) PostSend(wrs []rdma.SendWR) (n int, err error) {
	d := q.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if q.closed {
		return 0, rdma.ErrClosed
	}
	d.soft.Called()
	d.ticked = false
	d.tick()
	var last *peer
	for ; n < len(wrs); n++ {
		if err = d.soft.CheckSend(&wrs[n], &d.attr); err != nil {
			break
		}
		if q.pending == q.depth {
			err = rdma.ErrAgain
			break
		}
		p := q.peer(wrs[n].Peer)
		if p != last && last != nil {
			q.flushPeer(last)
		}
		last = p
		q.take(p, &wrs[n])
	}
	if last != nil {
		q.flushPeer(last)
		q.flush()
		if d.soft.Waiting() {
			d.soft.WakeAll() // waiters do not know about the new timers
		}
	}
	return n, err
}

// take makes a message of a request.
func (q *pair) take(p *peer, wr *rdma.SendWR) {
	d := q.dev
	inline := wr.Flags&rdma.Inline != 0
	beside := int(wr.HeadLen) // how much of the user's head fits beside ours
	if wr.HeadLen > longestHead {
		beside = 0
	}
	room := 0
	if inline && wr.Op != rdma.OpRead || beside != int(wr.HeadLen) {
		room = int(wr.HeadLen) - beside + wr.Body.Len()
	}
	one := d.messages.take(room)
	m := &one.Info
	m.peer, m.pair, m.id, m.op, m.body = p, q, wr.ID, wr.Op, wr.Body
	m.kind, m.silent, m.sending = kindSend, inline, true
	if room > 0 {
		m.kept = append(m.kept[:0], wr.Head[beside:wr.HeadLen]...)
		m.kept = append(m.kept, wr.Body.Bytes()...)
		m.body = rdma.MemOf(m.kept)
	}
	q.pending++
	if p.gone {
		m.sending = false
		q.end(one, rdma.StatusPeerGone)
		return
	}
	one.Length = m.body.Len()
	if wr.Op == rdma.OpSend {
		m.headLen = uint8(copy(m.head[:beside], wr.Head[:]))
		if wr.Flags&rdma.Solicited != 0 {
			m.flags |= flagSolicited
		}
		one.DelayAck = wr.Flags&(rdma.Inline|rdma.Lazy) != 0 && q.mayDelayAck(p, one)
	} else {
		q.access(p, one, wr)
	}
	p.Push(one)
	q.markBusy(p)
}

// mayDelayAck reports whether the ack of a message that nobody waits for may be delayed.
// It may not where much is pending: the queue pair would become full.
func (q *pair) mayDelayAck(p *peer, m *message) bool {
	return m.Length <= delayAckMax && q.pending < q.depth/4 && p.LossFree(q.dev.now)
}

// ended ends a list of messages that have arrived, or never will.
func (q *pair) ended(list *message, status rdma.Status) {
	for m := list; m != nil; {
		following := m.Following
		m.Info.sending = false
		q.end(m, status)
		m = following
	}
}

// end records the result of a message, and completes its request when nobody needs it
// any more.
func (q *pair) end(one *message, status rdma.Status) {
	m := &one.Info
	if m.status == rdma.StatusOK {
		m.status = status
	}
	if !m.over() {
		return
	}
	if m.kind != kindResponse {
		q.pending--
		if !m.silent || m.status != rdma.StatusOK {
			c := rdma.Completion{ID: m.id, Op: m.op, Peer: m.peer.id, Status: m.status}
			if m.status == rdma.StatusOK {
				c.Len = uint64(int(m.headLen) + m.body.Len())
			}
			q.sendCQ.push(c, loan{})
		}
	}
	q.dev.messages.put(one)
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
				q.writeAck(p, kindClose)
			}
		}
		q.flush()
	}
	err := errors.Join(q.below.Close(), q.srq.Close())
	for _, p := range q.peers {
		if p != nil {
			q.abandon(p, rdma.StatusFlushed)
			q.clear(p)
		}
	}
	for _, m := range d.messages.all { // the device below no longer reads
		if m.Info.pair == q && m.Info.below > 0 {
			m.Info.below = 0
			q.end(m, rdma.StatusFlushed)
		}
	}
	q.peers, q.busy, q.batch = nil, nil, batch{}
	d.pairs[q.number] = nil
	return err
}
