package dgram

import (
	"context"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// A queue pair and the send path: PostSend accepts work requests, service drives the
// peers that are busy, write makes a datagram, and flush hands a batch of datagrams to
// the kernel.

const (
	pairDepth   = 512      // default maximum of pending sends
	delayAckMax = 16 << 10 // longest message whose ack may be delayed
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

var (
	_ rdma.DrainQP   = (*pair)(nil)
	_ rdma.KeepingQP = (*pair)(nil)
)

// NewQP creates a queue pair of type RD or UD.
func (d *Device) NewQP(c rdma.QPConfig) (rdma.QP, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, rdma.ErrClosed
	}
	if c.Type != rdma.RD && c.Type != rdma.UD {
		return nil, fmt.Errorf("dgram: only queue pairs of type RD and UD are supported: %w", rdma.ErrUnsupported)
	}
	if len(d.pairs) == maxPairs {
		return nil, fmt.Errorf("dgram: %d queue pairs were made on one socket: %w", maxPairs-1, rdma.ErrNoResources)
	}
	q := &pair{dev: d, kind: c.Type, number: uint16(len(d.pairs)), depth: c.Depth, counter: 1}
	var okSend, okRecv bool
	q.sendCQ, okSend = c.SendCQ.(*queue)
	q.recvCQ, okRecv = c.RecvCQ.(*queue)
	if !okSend || !okRecv || q.sendCQ.dev != d || q.recvCQ.dev != d {
		return nil, fmt.Errorf("dgram: a queue pair needs completion queues of its own device, not %T and %T", c.SendCQ, c.RecvCQ)
	}
	if c.SRQ == nil {
		q.recv = newReceiveQueue(d, rdma.SRQConfig{})
	} else if srq, ok := c.SRQ.(*receiveQueue); ok && srq.dev == d {
		q.recv = srq
	} else {
		return nil, fmt.Errorf("dgram: a queue pair needs a shared receive queue of its own device, not a %T", c.SRQ)
	}
	if q.depth <= 0 {
		q.depth = pairDepth
	}
	if err := d.startProgress(); err != nil {
		return nil, err
	}
	d.pairs = append(d.pairs, q)
	return q, nil
}

// Addr returns the address that peers resolve.
func (q *pair) Addr() rdma.Addr {
	a := address{at: endpoint{addrPort: q.dev.socket.local}, incarnation: q.dev.keys.incarnation, pair: q.number, name: q.dev.name}
	return rdma.Addr(a.String())
}

// Connect returns an error: datagrams need no connection.
func (q *pair) Connect(context.Context, rdma.Addr) error {
	return fmt.Errorf("dgram: queue pairs of datagrams need no connection; Resolve the address and name the peer in each request: %w", rdma.ErrUnsupported)
}

// Pending returns the number of messages not known to have arrived.
func (q *pair) Pending() int {
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	return q.pending
}

// Keep copies the messages in flight to a peer, so that their memory can be reused.
func (q *pair) Keep(id rdma.PeerID) {
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	if int(id) >= len(q.peers) || q.peers[id] == nil {
		return
	}
	for m := q.peers[id].Oldest(); m != nil; m = m.Following {
		if m.Info.role == roleSend && !m.Info.inline && m.Info.body.Len() > 0 {
			q.dev.keep(m)
		}
	}
}

// PostRecv posts buffers to a queue pair without a shared receive queue.
func (q *pair) PostRecv(wrs []rdma.RecvWR) (int, error) { return q.recv.PostRecv(wrs) }

// PostSend accepts work requests and sends what may be sent at once.
func (q *pair) PostSend(wrs []rdma.SendWR) (n int, err error) {
	d := q.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if q.closed {
		return 0, rdma.ErrClosed
	}
	d.called()
	d.serviceAt = 0
	if d.ticked = false; q.kind != rdma.UD {
		d.tick()
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
	d.copyBodies()
	if d.parked > 0 && (n > 0 || err != nil) {
		d.wakeAll() // waiters do not know about the new timers
	}
	return n, err
}

// check rejects a request that can never be sent.
func (q *pair) check(wr *rdma.SendWR) error {
	length := int(wr.HeadLen) + wr.Body.Len()
	switch {
	case !q.dev.attr.Ops.Has(wr.Op) || wr.Op != rdma.OpSend && (q.kind == rdma.UD) != (wr.Op == rdma.OpWriteRecord):
		return fmt.Errorf("dgram: operation %v: %w", wr.Op, rdma.ErrUnsupported)
	case int(wr.Peer) >= len(q.dev.peers):
		return fmt.Errorf("dgram: no peer has the handle %d; use one that Resolve or a completion returned", wr.Peer)
	case wr.HeadLen > rdma.HeadMax:
		return fmt.Errorf("dgram: a head of %d bytes for %v is longer than %d", wr.HeadLen, &q.dev.peers[wr.Peer], rdma.HeadMax)
	case wr.Op != rdma.OpSend && wr.Body.Len() > q.dev.attr.MaxTransfer:
		return fmt.Errorf("dgram: a %v of %d bytes at %v is longer than Attr.MaxTransfer, %d; split it", wr.Op, wr.Body.Len(), &q.dev.peers[wr.Peer], q.dev.attr.MaxTransfer)
	case wr.Op == rdma.OpWriteRecord && wr.Body.Len() > maxPieces*q.dev.recordCut():
		return fmt.Errorf("dgram: a write-record of %d bytes for %v is longer than %d datagrams carry; split it", wr.Body.Len(), &q.dev.peers[wr.Peer], maxPieces)
	case wr.Op == rdma.OpSend && length > maxSend:
		return fmt.Errorf("dgram: a message of %d bytes for %v is longer than Attr.MaxSend, %d; split it", length, &q.dev.peers[wr.Peer], maxSend)
	case wr.Flags&rdma.Inline != 0 && wr.Body.Len() > q.dev.attr.MaxInline:
		return fmt.Errorf("dgram: an inline body of %d bytes for %v is longer than Attr.MaxInline, %d; send it without Inline", wr.Body.Len(), &q.dev.peers[wr.Peer], q.dev.attr.MaxInline)
	case q.dev.attr.LocalKeys && wr.Flags&rdma.Inline == 0:
		return q.dev.checkLocal(wr.Op.String(), wr.Body, wr.LKey)
	}
	return nil
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
	if p.barred {
		q.refusePost(p, wr)
		return nil
	}
	m := d.newMessage()
	if !d.attachBody(m, wr) {
		d.freeMessage(m)
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
	return m.Length <= delayAckMax && q.pending < q.depth/4 && p.LossFree(q.dev.now)
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
		p := newPeer(q.dev.windowPool)
		p.id = id
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
	now := q.dev.now
	q.flushRecords()
	q.expireRecords(now)
	for i := 0; i < len(q.busy); {
		p := q.busy[i]
		if p.barred {
			q.dropBarred(p)
		}
		p.Expire(now)
		if !p.barred && p.peerTimedOut(now, q.dev.peerTimeout) {
			q.giveUp(p)
		}
		if now >= p.partialsDue() {
			q.dropPartials(p)
		}
		q.deliverReordered(p)
		q.flushPeer(p)
		if p.AckDue(now, 0) {
			if !q.dev.defersAck(p) {
				q.writeAck(p, false)
			}
		} else if now >= p.probeAt() {
			p.probed = uint32((now + time.Millisecond - 1) / time.Millisecond)
			q.writeAck(p, true)
		}
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

// defersAck reports whether a standalone ack should be deferred: this Poll returns
// completions to the application, and its reply may carry the ack. The next call does
// not defer.
func (d *Device) defersAck(p *peer) bool {
	if !d.shows || p.AckFull(0) {
		return false
	}
	d.idlePolls = 1
	return true
}

// flushPeer sends what may be sent to a peer.
func (q *pair) flushPeer(p *peer) {
	for {
		l := q.dev.nextPacket()
		if l == nil {
			return // the kernel accepts no more; segment only what has a slot
		}
		ack := 0
		if p.AckPending(0) {
			ack = ackLen + 8*min(p.AckWords(0), piggybackWords)
		}
		seg, more := p.Next(q.dev.now, 0, ack)
		if !more {
			q.dev.outbox.n--
			return
		}
		q.write(l, p, &seg)
	}
}

// write makes the datagram of a segment, or its packets.
func (q *pair) write(l *packet, p *peer, seg *transmission) {
	if seg.Packets > 1 {
		q.writeRun(l, p, seg)
		return
	}
	q.writeSegment(l, p, seg)
}

// writeSegment makes a segment. A pending ack goes with the last segment of a
// message. In the first segment it would make that datagram longer than the others, and
// the kernel accepts only datagrams of one length as a run, except for a shorter last
// one.
func (q *pair) writeSegment(l *packet, p *peer, seg *transmission) {
	d, m := q.dev, seg.Message
	h := header{kind: kindSegment, urgent: seg.Urgent, delayAck: seg.DelayAck, number: seg.Number, sequence: seg.Sequence}
	if h.hasAck = seg.Ack || seg.Packets == 1 && p.AckPending(0) && (seg.Last || p.AckDue(d.now, 0)); h.hasAck {
		p.WriteAck(d.now, 0, &h.ack, piggybackWords)
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

// writeAck makes a standalone ack. An urgent one requests an ack in return.
func (q *pair) writeAck(p *peer, urgent bool) {
	l := q.dev.nextPacket()
	if l == nil {
		return // the ack stays pending
	}
	h := header{kind: kindAck, hasAck: true, urgent: urgent}
	p.WriteAck(q.dev.now, 0, &h.ack, reliable.MaxWords)
	b := q.dev.begin(l, &h, q.number, p.id)
	l.addressKnown = p.AddressKnown()
	q.dev.seal(l, b, nil)
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
		q.dev.freeMessage(m)
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
	q.silences[p.id] = q.dev.now - since
	q.abandon(p, rdma.StatusPeerGone)
	q.recvCQ.push(rdma.Completion{Op: rdma.OpDisconnected, Peer: p.id, Status: rdma.StatusPeerGone}, loan{})
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
	if q.closed || d.closed {
		q.closed = true
		return
	}
	q.closed = true
	d.now = d.clock()
	for len(q.leaving) > 0 {
		q.shiftLeaving(rdma.StatusFlushed)
	}
	for _, p := range q.peers {
		if p == nil {
			continue
		}
		if p.AckPending(0) {
			q.writeAck(p, false)
		}
		q.abandon(p, rdma.StatusFlushed)
		q.clear(p)
	}
	d.flush()
	q.busy, q.peers = nil, nil
	d.pairs[q.number] = nil
}
