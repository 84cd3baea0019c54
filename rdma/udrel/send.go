package udrel

import (
	"errors"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// The send path: flushPeer asks package reliable for transmissions, write makes the
// request of one, and flush posts a batch of them to the device below. What that does
// not accept now stays in the batch, and nothing more is transmitted when it is full.

const (
	batchSize = 32
	// askEvery is how many bytes are sent before an ack is requested: Config.AckEvery
	// long packets may be more than the window, which would be used up before an ack.
	askEvery = 128 << 10
)

// batch is packets that are about to be sent: those from first to n.
type batch struct {
	wrs      [batchSize]rdma.SendWR
	peers    [batchSize]*peer
	messages [batchSize]*message // nil: an ack
	first, n int
}

// IDs of requests and buffers of the device below.
const (
	sendSign  = 1 << 63
	pairShift = 32
	// noMessage is the slot of packets without a message.
	noMessage = 1<<32 - 1
)

// hasRoom reports whether another packet can be made. The device below may accept no
// more.
func (q *pair) hasRoom() bool {
	if q.batch.n == batchSize {
		q.flush()
	}
	return q.batch.n < batchSize
}

// add adds a packet to the batch, and the ID, Peer and Op of its request.
func (q *pair) add(p *peer, m *message) *rdma.SendWR {
	k := &q.batch
	wr := &k.wrs[k.n]
	k.peers[k.n], k.messages[k.n] = p, m
	k.n++
	wr.Op, wr.Peer, wr.Flags, wr.Body, wr.ID = rdma.OpSend, p.id, rdma.Inline, rdma.Mem{}, sendSign|noMessage
	if m != nil {
		m.Info.below++
		wr.ID = sendSign | uint64(m.Info.slot)
	}
	return wr
}

// flushPeer sends what may be sent to a peer.
func (q *pair) flushPeer(p *peer) {
	for q.hasRoom() {
		t, more := p.Next(q.dev.now, 0, 0)
		if !more {
			return
		}
		q.write(p, &t)
	}
}

// write makes the packet of a segment. A pending ack goes with it, if there is room for
// what it must report.
func (q *pair) write(p *peer, t *transmission) {
	d, m := q.dev, &t.Message.Info
	wr := q.add(p, t.Message)
	h := header{kind: m.kind, flags: m.flags, sequence: t.Sequence, number: t.Number, target: m.target}
	room := rdma.HeadMax - numberedLen
	switch m.kind {
	case kindWrite:
		h.target = m.target.from(t.Offset)
		room -= targetLen
	case kindRead:
		room -= targetLen
	case kindResponse:
		h.flags |= d.source(p, m, t, wr)
	}
	if t.Offset == 0 {
		room -= int(m.headLen)
	}
	if t.Last {
		h.flags |= flagLast
	}
	if p.unasked += int32(t.Length); t.Urgent || p.unasked >= askEvery {
		h.flags |= flagUrgent
		p.unasked = 0
	}
	if t.DelayAck {
		h.flags |= flagDelayAck
	}
	if words := (room - ackLen) / 8; p.AckPending(0) && room >= ackLen && (words > 0 || p.Complete()) {
		h.flags |= flagAck
		p.WriteAck(d.now, 0, &h.ack, words)
	}
	n := h.put(&wr.Head)
	if t.Offset == 0 {
		n += copy(wr.Head[n:], m.head[:m.headLen])
	}
	wr.HeadLen = uint16(n)
	if m.kind == kindSend || m.kind == kindWrite {
		wr.Body = m.body.Slice(t.Offset, t.Offset+t.Length)
	}
	if t.Again {
		wr.Body = toRepeat(wr.Body)
	}
	if wr.Body.Len() > d.maxInlineBelow {
		wr.Flags &^= rdma.Inline
	}
	if m.flags&flagSolicited != 0 {
		wr.Flags |= rdma.Solicited
	}
}

// source sets the body of a piece of a response. It looks up the source for every
// packet, also for retransmissions: after Deregister no byte of it may be sent (RFC
// 5042 section 6.3.3), and a refusal is sent instead.
func (d *Device) source(p *peer, m *posted, t *transmission, wr *rdma.SendWR) (flags uint8) {
	if t.Length > 0 {
		mem, fault := d.soft.Table.Source(soft.Domain, streamOf(p), m.target.tag, m.target.address+uint64(t.Offset), uint64(t.Length))
		if fault != ddp.NoFault {
			return flagRefused
		}
		wr.Body = rdma.MemOf(mem)
	}
	return 0
}

// writeAck makes an ack or close packet.
func (q *pair) writeAck(p *peer, k kind) {
	if !q.hasRoom() {
		return // the ack stays pending
	}
	h := header{kind: k, flags: flagAck}
	p.WriteAck(q.dev.now, 0, &h.ack, maxWords)
	wr := q.add(p, nil)
	wr.HeadLen = uint16(h.put(&wr.Head))
	q.dev.traffic.acks++
}

// flush posts the batch.
func (q *pair) flush() {
	k := &q.batch
	for k.first < k.n {
		taken, err := q.below.PostSend(k.wrs[k.first:k.n])
		for range taken {
			q.shift(k.wrs[k.first].Flags&rdma.Inline != 0)
		}
		switch {
		case err == nil || k.first == k.n:
		case errors.Is(err, rdma.ErrAgain):
			return
		default:
			p := k.peers[k.first]
			q.shift(true)
			q.abandon(p, rdma.StatusFault) // the peer cannot be reached at all
		}
	}
	k.first, k.n = 0, 0
}

// shift removes the first packet of the batch. read means that the device below no
// longer reads its body.
func (q *pair) shift(read bool) {
	k := &q.batch
	if m := k.messages[k.first]; m != nil && read {
		q.unread(m)
	}
	k.wrs[k.first].Body, k.peers[k.first], k.messages[k.first] = rdma.Mem{}, nil, nil
	k.first++
}

// sent processes a completion of the device below: it has read a packet. A failure is a
// loss like any other, and the packet is retransmitted.
func (d *Device) sent(c *rdma.Completion) {
	if slot := uint32(c.ID); int(slot) < len(d.messages.all) {
		if m := d.messages.all[slot]; m.Info.below > 0 {
			m.Info.pair.unread(m)
		}
	}
}

// unread records that one packet less of a message is to be read.
func (q *pair) unread(m *message) {
	if m.Info.below--; m.Info.over() {
		q.end(m, rdma.StatusOK)
	}
}
