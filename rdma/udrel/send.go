package udrel

import (
	"errors"

	"github.com/muster-mpi/muster/rdma"
)

// The send path: flushPeer asks a sender for packets, write makes the request of one,
// and flush posts a batch of them to the device below. What that does not accept stays
// with its sender. An ack that it does not accept stays pending and is written anew.

const batchSize = 32

// batch is packets of one queue pair that are about to be sent.
type batch struct {
	wrs   [batchSize]rdma.SendWR
	owner [batchSize]packetOwner
	pair  *pair
	n     int
}

// packetOwner is whose packet it is. An ack has no message.
type packetOwner struct {
	peer    *peer
	message *message
	number  psn
}

// IDs of requests and buffers of the device below.
const (
	sendSign  = 1 << 63
	pairShift = 32
)

// nextRequest returns the next free request of the batch, or nil if the device below
// accepts no more.
func (q *pair) nextRequest() (*rdma.SendWR, *packetOwner) {
	k := &q.dev.batch
	if k.n == batchSize || k.n > 0 && k.pair != q {
		q.dev.flush()
	}
	if q.stuck {
		return nil, nil
	}
	k.pair = q
	return &k.wrs[k.n], &k.owner[k.n]
}

// flushPeer sends what may be sent to a peer.
func (q *pair) flushPeer(p *peer) {
	for {
		wr, owner := q.nextRequest()
		if wr == nil {
			return
		}
		number, f := p.next(q.dev.now, &q.dev.windowPool)
		if f == nil {
			return
		}
		q.write(wr, p, number, f)
		*owner = packetOwner{p, f.message, number}
		q.dev.batch.n++
	}
}

// write makes the request of a packet. A pending ack goes with it.
func (q *pair) write(wr *rdma.SendWR, p *peer, number psn, f *sentPacket) {
	m := f.message
	h := header{kind: m.kind, flags: m.flags, number: number, left: stampOf(q.dev.now)}
	end := int(f.offset + f.length)
	if m.whole && end == m.length() {
		h.flags |= flagLast
	}
	if p.urgent(f) {
		h.flags |= flagUrgent
	}
	if m.refused {
		h.flags |= flagRefused
	}
	h.target = m.targetAt(int(f.offset))
	p.receiver.write(q.dev.now, &h)
	wr.Op, wr.Peer, wr.Flags = rdma.OpSend, p.id, 0
	n := h.put(&wr.Head)
	if f.offset == 0 {
		n += copy(wr.Head[n:], m.head[:m.headLen])
	}
	wr.HeadLen = uint16(n)
	wr.ID = sendSign | uint64(m.slot)
	if m.refused || m.kind == kindRead {
		wr.Body, wr.Flags = rdma.Mem{}, rdma.Inline
		return
	}
	wr.Body = m.body.Slice(int(f.offset), end)
	if f.length <= int32(q.dev.below.Attr().MaxInline) {
		wr.Flags = rdma.Inline
	} else {
		m.below++
	}
	if m.flags&flagSolicited != 0 {
		wr.Flags |= rdma.Solicited
	}
}

// writeAck makes the request of an ack or close packet.
func (q *pair) writeAck(p *peer, k kind, flags uint8) {
	wr, owner := q.nextRequest()
	if wr == nil {
		return // the ack stays pending
	}
	h := header{kind: k, flags: flags, left: stampOf(q.dev.now)}
	p.receiver.write(q.dev.now, &h)
	wr.Op, wr.Peer, wr.Flags, wr.Body, wr.ID = rdma.OpSend, p.id, rdma.Inline, rdma.Mem{}, sendSign|noMessage
	wr.HeadLen = uint16(h.put(&wr.Head))
	*owner = packetOwner{peer: p}
	q.dev.batch.n++
	q.dev.traffic.acks++
}

// noMessage is the slot of packets without a message.
const noMessage = 1<<32 - 1

// flush posts the batch.
func (d *Device) flush() {
	k := &d.batch
	if k.n == 0 {
		return
	}
	q := k.pair
	for at := 0; at < k.n; at++ {
		var err error
		if !q.stuck {
			var taken int
			taken, err = q.below.PostSend(k.wrs[at:k.n])
			d.traffic.sent += uint64(taken)
			at += taken
		}
		if at == k.n {
			break
		}
		q.notSent(&k.owner[at], k.wrs[at].Flags&rdma.Inline == 0)
		if q.stuck = q.stuck || errors.Is(err, rdma.ErrAgain); !q.stuck {
			d.traffic.unsendable++
			q.abandon(k.owner[at].peer, rdma.StatusFault) // the peer cannot be reached at all
		}
	}
	for i := range k.n {
		k.wrs[i].Body, k.owner[i] = rdma.Mem{}, packetOwner{}
	}
	k.n, k.pair = 0, nil
}

// notSent undoes the sending of a packet.
func (q *pair) notSent(w *packetOwner, read bool) {
	if w.message == nil {
		w.peer.ackDelivered(q.dev.now)
		w.peer.ackNow = true
		return
	}
	w.peer.undoSend(w.number)
	if read {
		w.message.unread()
	}
}

// sent processes a completion of the device below: it has read a packet.
func (d *Device) sent(c *rdma.Completion) {
	slot := uint32(c.ID)
	if slot == noMessage || int(slot) >= len(d.messagePool.all) {
		return
	}
	// A failure is a loss like any other, and the packet is retransmitted.
	if m := d.messagePool.all[slot]; m.below > 0 {
		m.unread()
	}
}

// unread records that the device below reads one packet less.
func (m *message) unread() {
	if m.below--; m.over() {
		m.pair.end(m, rdma.StatusOK)
	}
}
