package rail

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// A queue pair has one on each rail. PostSend makes operations of requests, progress
// processes what the rails have received, and Close closes all.

const (
	pairDepth = 512      // default maximum of pending requests
	maxInline = 32 << 10 // such a message is copied, so that it can be sent again
	// idlePolls is after how many empty polls a rail is polled less often, and how
	// often then.
	idlePolls = 8
)

// railPair is a queue pair of one rail.
type railPair struct {
	qp     rdma.QP
	cq     rdma.CQ
	beside rdma.BesideCQ // cq, if it can be polled concurrently with the application
	srq    rdma.SRQ
	known  []*flow // by the rail's handle of the peer
	idle   int     // consecutive polls without a completion
	RailCounts
}

type pair struct {
	dev            *Device
	incarnation    uint64
	sendCQ         *queue
	recvCQ         *queue
	recv           *receiveQueue
	rails          []railPair
	flows          []*flow // by PeerID
	busy           []*flow
	depth          int
	pending        int  // operations of the user that have not ended
	pendingReplies int  // responses that peers wait for
	latest         int  // the rail that had completions last
	polls          int  // calls of progress so far
	copies         bool // messages are not lent from a rail's buffers
	closed         bool
	borrowed       []*arrival // kept in this Poll in a rail's buffers
	one            [1]rdma.SendWR
}

var _ rdma.DrainQP = (*pair)(nil)

// NewQP creates a queue pair of type RD.
func (d *Device) NewQP(c rdma.QPConfig) (rdma.QP, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	send, recv, srq, err := soft.QueuesOf[*queue, *receiveQueue](&d.soft, &c, rdma.RD)
	if err != nil {
		return nil, err
	}
	q := &pair{dev: d, depth: c.Depth, sendCQ: send, recvCQ: recv, recv: srq}
	if srq == nil {
		q.recv = new(receiveQueue)
		if err := d.soft.OpenOwn(&q.recv.SRQ); err != nil {
			return nil, err
		}
	}
	if q.depth <= 0 {
		q.depth = pairDepth
	}
	// Polling a separate send queue must not end what a rail has lent.
	q.copies = q.sendCQ != q.recvCQ
	var number [8]byte
	rand.Read(number[:]) // never fails: crypto/rand
	q.incarnation = binary.LittleEndian.Uint64(number[:])
	for i := range d.rails {
		r, err := newRailPair(&d.rails[i])
		if err != nil {
			return nil, errors.Join(fmt.Errorf("rail: make a queue pair on %s: %w", d.rails[i].Name, err), q.closeRails())
		}
		q.rails = append(q.rails, r)
	}
	if err := q.attach(); err != nil {
		q.detach()
		return nil, errors.Join(err, q.closeRails())
	}
	d.pairs = append(d.pairs, q)
	return q, nil
}

func newRailPair(on *Rail) (r railPair, err error) {
	if r.cq, err = on.Device.NewCQ(0); err != nil {
		return r, err
	}
	r.beside, _ = r.cq.(rdma.BesideCQ)
	if r.srq, err = on.Device.NewSRQ(rdma.SRQConfig{Lend: true}); err != nil {
		return r, errors.Join(err, r.close())
	}
	if r.qp, err = on.Device.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: r.cq, RecvCQ: r.cq, SRQ: r.srq}); err != nil {
		return r, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *railPair) close() (err error) {
	if r.qp != nil {
		err = r.qp.Close()
	}
	if r.srq != nil {
		err = errors.Join(err, r.srq.Close())
	}
	return errors.Join(err, r.cq.Close())
}

func (q *pair) closeRails() (err error) {
	for i := range q.rails {
		err = errors.Join(err, q.rails[i].close())
	}
	return err
}

// Addr returns the address that peers resolve: the addresses of the pair on all rails.
func (q *pair) Addr() rdma.Addr {
	a := address{incarnation: q.incarnation, name: q.dev.name}
	for i := range q.rails {
		a.rails = append(a.rails, railAddress{q.dev.rails[i].Network, q.rails[i].qp.Addr()})
	}
	return a.text()
}

// Connect returns an error: datagrams need no connection.
func (q *pair) Connect(context.Context, rdma.Addr) error {
	return fmt.Errorf("rail: queue pairs of datagrams need no connection; Resolve the address and name the peer in each request: %w", rdma.ErrUnsupported)
}

// Pending returns the number of messages not known to have arrived.
func (q *pair) Pending() int {
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	return q.pending + q.pendingReplies
}

// PostRecv posts buffers to a queue pair without a shared receive queue.
func (q *pair) PostRecv(wrs []rdma.RecvWR) (int, error) { return q.recv.PostOwn(wrs) }

// PostSend accepts requests and gives the rails what they accept at once.
func (q *pair) PostSend(wrs []rdma.SendWR) (n int, err error) {
	d := q.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if q.closed {
		return 0, rdma.ErrClosed
	}
	d.soft.Called()
	d.now = d.clock()
	for i := range wrs {
		if err = q.check(&wrs[i]); err == nil {
			err = q.take(&wrs[i])
		}
		if err != nil {
			break
		}
		n++
	}
	if d.soft.Waiting() {
		d.soft.WakeAll() // waiters do not know about the new timers
	}
	return n, err
}

// check rejects a request that can never be sent.
func (q *pair) check(wr *rdma.SendWR) error {
	if int(wr.Peer) >= len(q.dev.peers) {
		return fmt.Errorf("rail: no peer has the handle %d; use one that Resolve or a completion returned", wr.Peer)
	}
	return q.dev.soft.CheckSend(wr, &q.dev.attr)
}

// take makes an operation of a request.
func (q *pair) take(wr *rdma.SendWR) error {
	d, f := q.dev, q.flow(wr.Peer)
	if q.pending == q.depth || wr.Op != rdma.OpSend && !f.hasRequestSlot() {
		return rdma.ErrAgain
	}
	if f.barred {
		q.sendCQ.Push(rdma.Completion{ID: wr.ID, Op: wr.Op, Peer: wr.Peer, Status: rdma.StatusPeerGone})
		return nil
	}
	var op *operation
	switch wr.Op {
	case rdma.OpSend:
		op = d.newOperation(kindMessage)
	case rdma.OpWrite:
		op = d.newOperation(kindData)
	default:
		op = d.newOperation(kindRequest)
		op.left = wr.Body.Len()
	}
	q.pending++
	op.ours, op.reported = true, false
	op.id, op.what, op.body, op.key, op.address = wr.ID, wr.Op, wr.Body, wr.RKey, wr.Remote
	op.inline, op.solicited = wr.Flags&rdma.Inline != 0 && wr.Op != rdma.OpRead, wr.Flags&rdma.Solicited != 0
	if wr.Op == rdma.OpSend && wr.HeadLen > headRoom {
		// The head is too long to fit beside our header: the message is sent from a
		// copy.
		op.buffer = d.takeBuffer(int(wr.HeadLen) + wr.Body.Len())
		n := copy(op.buffer, wr.Head[:wr.HeadLen])
		n += copy(op.buffer[n:], wr.Body.Bytes())
		op.body = rdma.MemOf(op.buffer[:n])
	} else {
		if wr.Op == rdma.OpSend {
			op.headLen = uint8(copy(op.head[:wr.HeadLen], wr.Head[:]))
		}
		if op.inline && wr.Body.Len() > 0 {
			op.buffer = d.takeBuffer(wr.Body.Len())
			op.body = rdma.MemOf(op.buffer[:copy(op.buffer, wr.Body.Bytes())])
		}
	}
	if wr.Op != rdma.OpSend {
		f.addRequest(op)
	}
	f.push(op)
	f.flush()
	return nil
}

// flow returns the state of a peer, which is created with the first message.
func (q *pair) flow(id rdma.PeerID) *flow {
	for int(id) >= len(q.flows) {
		q.flows = append(q.flows, nil)
	}
	f := q.flows[id]
	if f == nil {
		f = &flow{q: q, peer: id, paths: make([]path, len(q.rails)), preferred: int(id) % len(q.rails)}
		for i := range f.paths {
			f.paths[i].speed = q.dev.speeds[i]
		}
		q.flows[id] = f
		q.dev.reach(f)
	}
	return f
}

// pollMode is which rails are polled, and how.
type pollMode uint8

const (
	pollSome   pollMode = iota // those that are likely to have completions
	pollAll                    // all
	pollBeside                 // all, without ending what the last Poll lent
)

// progress processes the completions of the rails, but at most room messages if
// possible: a rail lends them until the next Poll, and what is not returned at once is
// copied. Polling a rail costs a system call, so an idle rail is polled less often,
// unless how requires all.
func (q *pair) progress(room int, how pollMode) {
	d := q.dev
	q.polls++
	came := false
	for i := range q.rails {
		r := &q.rails[i]
		if r.idle > idlePolls && i != q.latest && (q.polls+i)%idlePolls != 0 && how == pollSome {
			continue
		}
		batch := d.scratch[:]
		if !q.copies && how != pollBeside { // in the background everything is copied
			batch = d.scratch[:max(min(len(batch), room-q.recvCQ.Len()), 0)]
		}
		n := 0
		if how == pollBeside {
			n = r.beside.PollBeside(batch)
		} else {
			n = r.cq.Poll(batch)
		}
		if r.idle++; n > 0 {
			r.idle, q.latest, came = 0, i, true
		}
		q.takeIn(i, batch[:n])
	}
	for i := 0; i < len(q.busy); {
		f := q.busy[i]
		if !came && f.waits(d.now) {
			i++
			continue
		}
		f.service(d.now)
		if !f.inactive() {
			i++
			continue
		}
		f.releaseMemory()
		f.busy = false
		end := len(q.busy) - 1
		q.busy[i], q.busy[end] = q.busy[end], nil
		q.busy = q.busy[:end]
	}
	q.copyBorrowed()
}

// Close completes all operations as flushed and closes the pairs on the rails.
func (q *pair) Close() error {
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	return q.end()
}

func (q *pair) end() error {
	if q.closed {
		return nil
	}
	q.closed = true
	for _, f := range q.flows {
		if f == nil {
			continue
		}
		f.fail(rdma.StatusFlushed)
		for i := 0; f.in.reorderBuffer != nil && i < window; i++ {
			q.dev.giveBack(f.in.reorderBuffer[i].buffer)
		}
	}
	q.detach()
	q.flows, q.busy, q.borrowed = nil, nil, nil
	return q.closeRails()
}
