package soft

import (
	"context"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
	base "github.com/muster-mpi/muster/rdma/internal/soft"
)

// A queue pair and the send path: PostSend accepts work requests, service drives the
// peers that are busy, writeSegment makes a datagram, and flush hands a batch of datagrams to
// the kernel.

const (
	pairDepth   = 512      // default maximum of pending sends
	delayAckMax = 16 << 10 // longest message whose ack may be delayed
	longRun     = 16       // packets of a run that does not wait for others in the outbox
)

// pair is a queue pair. Its number distinguishes it from others on the same socket.
type pair struct {
	dev    *Device
	kind   rdma.Transport
	number uint16
	sendCQ *queue
	recvCQ *queue
	// silences holds how long each peer was silent that was declared gone. It is a map
	// because few ever are.
	silences map[rdma.PeerID]time.Duration
	recv     *receiveQueue
	depth    int
	pending  int // messages accepted and not known to have arrived
	closed   bool

	peers   []*peer // RD: by PeerID
	busy    []*peer
	counter uint32 // UD: number of the next message
	unreliable
}

// NewQP creates a queue pair of type RD or UD.
func (d *Device) NewQP(c rdma.QPConfig) (rdma.QP, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	send, recv, srq, err := base.QueuesOf[*queue, *receiveQueue](&d.soft, &c, d.attr.Transports)
	if err != nil {
		return nil, err
	}
	if len(d.pairs) == maxPairs {
		return nil, fmt.Errorf("soft: %d queue pairs were made on one socket: %w", maxPairs-1, rdma.ErrNoResources)
	}
	q := &pair{dev: d, kind: c.Type, number: uint16(len(d.pairs)), depth: c.Depth, counter: 1, sendCQ: send, recvCQ: recv, recv: srq}
	if srq == nil {
		q.recv = new(receiveQueue)
		if err := d.soft.OpenOwn(&q.recv.SRQ); err != nil {
			return nil, err
		}
	}
	if q.depth <= 0 {
		q.depth = pairDepth
	}
	if err := d.soft.StartThread(); err != nil {
		return nil, err
	}
	d.pairs = append(d.pairs, q)
	return q, nil
}

// Addr returns the address that peers resolve.
func (q *pair) Addr() rdma.Addr {
	a := address{incarnation: q.dev.keys.incarnation, pair: q.number, name: q.dev.name}
	return rdma.Addr(q.dev.ownEndpoints() + "/" + a.identity())
}

// Connect returns an error: datagrams need no connection.
func (q *pair) Connect(context.Context, rdma.Addr) error {
	return fmt.Errorf("soft: queue pairs of datagrams need no connection; Resolve the address and name the peer in each request: %w", rdma.ErrUnsupported)
}

// Pending returns the number of messages not known to have arrived.
func (q *pair) Pending() int {
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	return q.pending
}

// PostRecv posts buffers to a queue pair without a shared receive queue.
func (q *pair) PostRecv(wrs []rdma.RecvWR) (int, error) { return q.recv.PostOwn(wrs) }

// PostSend accepts work requests and sends what may be sent at once.
func (q *pair) PostSend(wrs []rdma.SendWR) (n int, err error) {
	d := q.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if q.closed {
		return 0, rdma.ErrClosed
	}
	d.soft.CountCall()
	d.polls.serviceAt = 0
	if d.clock.fresh = false; q.kind != rdma.UD {
		d.clock.tick()
	}
	for i := range wrs {
		if err = q.check(&wrs[i]); err != nil {
			break
		}
		switch {
		case wrs[i].Op == rdma.OpWriteRecord:
			err = q.sendRecord(&wrs[i])
		case q.kind == rdma.UD:
			err = q.sendUD(&wrs[i])
		case wrs[i].Op == rdma.OpSend:
			err = q.take(&wrs[i])
		default:
			err = q.request(&wrs[i])
		}
		if err != nil {
			break
		}
		n++
	}
	d.flush()
	d.outgoing.copyBodies()
	if d.soft.Waiting() && (n > 0 || err != nil) {
		d.soft.WakeAll() // waiters do not know about the new timers
	}
	return n, err
}

// check rejects a request that can never be sent.
func (q *pair) check(wr *rdma.SendWR) error {
	switch {
	case wr.Op != rdma.OpSend && (q.kind == rdma.UD) != (wr.Op == rdma.OpWriteRecord):
		return fmt.Errorf("soft: operation %v: %w", wr.Op, rdma.ErrUnsupported)
	case int(wr.Peer) >= len(q.dev.peers.list):
		return fmt.Errorf("soft: no peer has the handle %d; use one that Resolve or a completion returned", wr.Peer)
	case wr.Op == rdma.OpWriteRecord && wr.Body.Len() > maxPieces*q.dev.recordCut():
		return fmt.Errorf("soft: a write-record of %d bytes for %v is longer than %d datagrams carry; split it", wr.Body.Len(), &q.dev.peers.list[wr.Peer], maxPieces)
	}
	return q.dev.soft.CheckSend(wr, &q.dev.attr)
}

// sendUD sends a UD message. It is complete when the kernel has accepted it (T1 6.3).
func (q *pair) sendUD(wr *rdma.SendWR) error {
	d := q.dev
	l := d.nextPacket()
	if l == nil {
		return rdma.ErrAgain
	}
	h := header{kind: kindUnreliable}
	b := d.begin(l, &h, q.number, wr.Peer)
	b = appendDDP(b, &ddp.Header{Op: sendOpcode(wr.Flags), Last: true, QN: ddp.QueueSend, MSN: q.remember(wr.ID, wr.Peer)})
	b = append(b, wr.Head[:wr.HeadLen]...)
	d.seal(l, b, wr.Body.Bytes())
	if wr.Flags&rdma.Inline == 0 {
		q.sendCQ.push(rdma.Completion{ID: wr.ID, Op: rdma.OpSend, Peer: wr.Peer, Len: uint64(int(wr.HeadLen) + wr.Body.Len())}, loan{})
	}
	return nil
}

// take queues an RD message and sends as much as may be sent.
func (q *pair) take(wr *rdma.SendWR) error {
	if q.pending == q.depth {
		return rdma.ErrAgain
	}
	d := q.dev
	p := q.peer(wr.Peer)
	if p.barred || p.gone {
		q.refusePost(p, wr)
		return nil
	}
	m := d.outgoing.newMessage()
	if !d.outgoing.attachBody(m, wr) {
		d.outgoing.freeMessage(m)
		return rdma.ErrAgain
	}
	m.Overhead = untaggedOverhead
	m.Info.id, m.Length = wr.ID, int(wr.HeadLen)+wr.Body.Len()
	m.Info.role, m.Info.opcode = roleSend, sendOpcode(wr.Flags)
	m.DelayAck = wr.Flags&(rdma.Inline|rdma.Lazy) != 0 && q.mayDelayAck(p, m)
	m.Info.number = p.sendNumber
	p.sendNumber++
	m.Info.headLen = copy(m.Info.head[:wr.HeadLen], wr.Head[:])
	q.pending++
	p.Push(m)
	q.markBusy(p)
	q.flushPeer(p)
	return nil
}

// refusePost completes a request to a barred peer with an error.
func (q *pair) refusePost(p *peer, wr *rdma.SendWR) {
	q.pending++
	q.complete(p, wr.ID, wr.Op, 0, false, rdma.StatusPeerGone)
}

// mayDelayAck reports whether the ack of a message that nobody waits for may be
// delayed. It may not where much is pending: the copies would use up the memory for
// them.
func (q *pair) mayDelayAck(p *peer, m *message) bool {
	return m.Length <= delayAckMax && q.pending < q.depth/4 && p.LossFree(q.dev.clock.now)
}

func sendOpcode(f rdma.Flags) ddp.Opcode {
	if f&rdma.Solicited != 0 {
		return ddp.SendSolicited
	}
	return ddp.Send
}

// peer returns the state of a peer, which is created with the first message.
func (q *pair) peer(id rdma.PeerID) *peer {
	for int(id) >= len(q.peers) {
		q.peers = append(q.peers, nil)
	}
	if q.peers[id] == nil {
		p := newPeer(q.dev.outgoing.windowPool)
		p.id = id
		q.reachPaths(&p)
		p.tokenKnown = q.dev.net.below != nil // it sends no runs
		q.peers[id] = &p
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

// working reports whether service has work.
func (q *pair) working() bool { return len(q.busy)+len(q.leaving)+len(q.records) > 0 }

// service drives the peers on the busy list.
func (q *pair) service() {
	now := q.dev.clock.now
	q.flushRecords()
	// After a stop of this process, more of a message, or acks of other peers, may still be in
	// the socket.
	quiet, unread := !q.dev.polls.arrived, q.dev.polls.unread(now)
	if quiet {
		q.expireRecords(now)
	}
	for i := 0; i < len(q.busy); {
		p := q.busy[i]
		if p.barred {
			q.dropBarred(p)
		}
		p.Expire(now, unread)
		if !p.barred && quiet && p.peerTimedOut(now, q.dev.peerTimeout) {
			q.giveUp(p)
		}
		if quiet && now >= p.partialsDue() {
			q.dropPartials(p)
		}
		q.deliverReordered(p)
		q.flushPeer(p)
		q.sendAcks(p)
		if !p.inactive() {
			i++
			continue
		}
		p.Rest()
		p.busy = false
		last := len(q.busy) - 1
		q.busy[i], q.busy[last] = q.busy[last], nil
		q.busy = q.busy[:last]
	}
}

// sendAcks sends the acks that are due, or a probe.
func (q *pair) sendAcks(p *peer) {
	now, due := q.dev.clock.now, false
	for k := range p.Paths() {
		if !p.AckDue(now, k) {
			continue
		}
		if due = true; !q.dev.defersAck(p, k) {
			q.writeAck(p, k, p.ReplyPath(k), kindAck, false)
		}
	}
	if due || now < p.probeAt() {
		return
	}
	p.probed = uint32((now + time.Millisecond - 1) / time.Millisecond)
	for on := range q.dev.Rails() {
		q.writeAck(p, max(p.pendingAck(on), 0), on, kindAck, true)
	}
}

// defersAck reports whether a standalone ack should be deferred: this Poll returns
// completions to the application, and its reply may carry the ack. The next call does
// not defer.
func (d *Device) defersAck(p *peer, k int) bool {
	if !d.polls.shows || p.AckFull(k) {
		return false
	}
	d.polls.idle = 1
	return true
}

// flushPeer sends what may be sent to a peer.
func (q *pair) flushPeer(p *peer) {
	for {
		l := q.dev.nextPacket()
		if l == nil {
			return // the kernel accepts no more; segment only what has a slot
		}
		on := p.Pick(q.dev.clock.now)
		if on < 0 {
			q.dev.outgoing.outbox.n--
			return
		}
		seg, more := p.Next(q.dev.clock.now, on, p.ackRoom(on))
		if !more {
			q.dev.outgoing.outbox.n--
			return
		}
		if seg.Packets > 1 {
			q.writeRun(l, p, &seg, on)
		} else {
			q.writeSegment(l, p, &seg, on)
		}
		if seg.Packets >= longRun && !seg.Lone {
			q.dev.flush() // it is still in the cache, and the peer can begin
			q.dev.clock.read()
		}
	}
}

// writeSegment makes a segment. A pending ack goes with the last segment of a
// message. In the first segment it would make that datagram longer than the others, and
// the kernel accepts only datagrams of one length as a run, except for a shorter last
// one.
func (q *pair) writeSegment(l *packet, p *peer, seg *transmission, on int) {
	d, m := q.dev, seg.Message
	h := header{kind: kindSegment, path: uint8(on), urgent: seg.Urgent, delayAck: seg.DelayAck, number: seg.Number, sequence: seg.Sequence}
	if k := p.pendingAck(on); k >= 0 && (seg.Ack || seg.Packets == 1 && (seg.Last || p.AckDue(d.clock.now, k))) {
		h.hasAck = true
		p.WriteAck(d.clock.now, k, &h.ack, piggybackWords)
	}
	b := d.begin(l, &h, q.number, p.id)
	l.addressKnown = p.AddressKnown()
	var bytes []byte
	switch {
	case m.Info.role == roleResponse:
		b, bytes = d.appendResponse(b, p, m, seg)
	case m.Info.opcode == ddp.Write:
		b = appendDDP(b, &ddp.Header{Op: m.Info.opcode, Last: seg.Last, Tag: m.Info.tag, TO: m.Info.address + uint64(seg.Offset)})
		b, bytes = m.Info.appendTo(b, seg.Offset, seg.Length)
	default:
		b = appendDDP(b, &ddp.Header{Op: m.Info.opcode, Last: seg.Last, QN: queueOf(m.Info.opcode), MSN: m.Info.number, MO: uint32(seg.Offset)})
		b, bytes = m.Info.appendTo(b, seg.Offset, seg.Length)
	}
	if seg.Again {
		bytes = toRepeat(bytes)
	}
	if seg.Packets > 1 && !seg.Lone {
		l.data, l.body = b[:tagLen+len(b)], bytes
		copy(l.data[tagLen:], b) // the tag is in front
		return
	}
	d.seal(l, b, bytes)
}

func queueOf(op ddp.Opcode) uint32 {
	if op == ddp.ReadRequestOp {
		return ddp.QueueRequest
	}
	return ddp.QueueSend
}

// writeAck makes a standalone ack for a path of the peer, on one of ours, or a close. An
// urgent one requests an ack in return.
func (q *pair) writeAck(p *peer, k, on int, as kind, urgent bool) {
	l := q.dev.nextPacket()
	if l == nil {
		return // the ack stays pending
	}
	h := header{kind: as, path: uint8(on), hasAck: true, urgent: urgent}
	p.WriteAck(q.dev.clock.now, k, &h.ack, reliable.MaxWords)
	b := q.dev.begin(l, &h, q.number, p.id)
	l.addressKnown = p.AddressKnown()
	q.dev.seal(l, b, nil)
	q.dev.traffic.acks++
}

// finish completes a list of messages.
func (q *pair) finish(m *message, p *peer, status rdma.Status) {
	for m != nil {
		following := m.Following
		switch m.Info.role {
		case roleSend:
			q.complete(p, m.Info.id, rdma.OpSend, m.Length, m.Info.inline, status)
		case roleResponse:
			p.responses--
		}
		q.dev.outgoing.freeMessage(m)
		m = following
	}
}

// complete queues the completion of a request. A successful inline one makes none.
func (q *pair) complete(p *peer, id uint64, op rdma.Op, n int, inline bool, status rdma.Status) {
	q.pending--
	if !inline || status != rdma.StatusOK {
		q.sendCQ.push(rdma.Completion{ID: id, Op: op, Peer: p.id, Len: uint64(n), Status: status}, loan{})
	}
}

// giveUp declares a silent peer gone. It also informs a user that only receives.
func (q *pair) giveUp(p *peer) {
	since := p.lastReceived
	if !p.Idle() {
		since = p.LastAck()
	}
	if q.silences == nil {
		q.silences = map[rdma.PeerID]time.Duration{}
	}
	q.silences[p.id], p.gone = q.dev.clock.now-since, true
	q.abandon(p, rdma.StatusPeerGone)
	q.recvCQ.push(rdma.Completion{Op: rdma.OpDisconnected, Peer: p.id, Status: rdma.StatusPeerGone}, loan{})
}

// Abandon ends what is under way to a peer that has failed.
func (d *Device) Abandon(id rdma.PeerID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.pairs {
		if q == nil || q.closed || q.kind == rdma.UD || int(id) >= len(q.peers) {
			continue
		}
		if p := q.peers[id]; p != nil && !p.gone {
			p.gone = true
			q.abandon(p, rdma.StatusPeerGone)
		}
	}
}

// abandon completes everything in flight to a peer with the given status.
func (q *pair) abandon(p *peer, status rdma.Status) {
	q.finish(p.Abandon(), p, status)
	for p.requests != nil {
		q.completeRequest(p, status)
	}
}

// Close sends pending acks, so that no peer waits for them, and flushes all requests.
func (q *pair) Close() error {
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	q.shut()
	return nil
}

func (q *pair) shut() {
	d := q.dev
	if q.closed || d.soft.Closed {
		q.closed = true
		return
	}
	q.closed = true
	d.clock.read()
	for len(q.leaving) > 0 {
		q.shiftLeaving(rdma.StatusFlushed)
	}
	if d.net.below != nil {
		q.sendClose()
	}
	for _, p := range q.peers {
		if p == nil {
			continue
		}
		for k := range p.Paths() {
			if p.AckPending(k) {
				q.writeAck(p, k, p.ReplyPath(k), kindAck, false)
			}
		}
		q.abandon(p, rdma.StatusFlushed)
		q.clear(p)
	}
	d.flush()
	q.busy, q.peers = nil, nil
	d.pairs[q.number] = nil
}
