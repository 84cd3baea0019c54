package udrel

import (
	"errors"

	"github.com/muster-mpi/muster/rdma"
)

// Packets on their way out: pump asks a sender for packets, write makes the request of one,
// flush hands a batch of them to the device below. What that does not take stays with its
// sender; a receipt that it does not take stays owed, as it is written anew.

const parcelSize = 32

// parcel is packets of one queue pair that are about to leave.
type parcel struct {
	wrs   [parcelSize]rdma.SendWR
	whose [parcelSize]departing
	pair  *pair
	n     int
}

// departing is whose packet it is; there is no message with a receipt.
type departing struct {
	peer    *peer
	message *message
	number  psn
}

// What the ID of a request, or of a buffer, of the device below tells.
const (
	sendSign  = 1 << 63
	pairShift = 32
)

// next gives the place for the next request, nil if the device below takes no more.
func (q *pair) nextRequest() (*rdma.SendWR, *departing) {
	k := &q.dev.parcel
	if k.n == parcelSize || k.n > 0 && k.pair != q {
		q.dev.flush()
	}
	if q.stuck {
		return nil, nil
	}
	k.pair = q
	return &k.wrs[k.n], &k.whose[k.n]
}

// pump sends what may go to a peer.
func (q *pair) pump(p *peer) {
	for {
		wr, whose := q.nextRequest()
		if wr == nil {
			return
		}
		number, f := p.next(q.dev.now, &q.dev.hangar)
		if f == nil {
			return
		}
		q.write(wr, p, number, f)
		*whose = departing{p, f.message, number}
		q.dev.parcel.n++
	}
}

// write makes the request of a packet. What is owed to the peer goes with it.
func (q *pair) write(wr *rdma.SendWR, p *peer, number psn, f *flight) {
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
	h.place = m.placeAt(int(f.offset))
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

// writeReceipt makes the request of a packet that is a receipt alone.
func (q *pair) writeReceipt(p *peer, k kind, flags uint8) {
	wr, whose := q.nextRequest()
	if wr == nil {
		return // it stays owed
	}
	h := header{kind: k, flags: flags, left: stampOf(q.dev.now)}
	p.receiver.write(q.dev.now, &h)
	wr.Op, wr.Peer, wr.Flags, wr.Body, wr.ID = rdma.OpSend, p.id, rdma.Inline, rdma.Mem{}, sendSign|noMessage
	wr.HeadLen = uint16(h.put(&wr.Head))
	*whose = departing{peer: p}
	q.dev.parcel.n++
	q.dev.traffic.receipts++
}

// noMessage is the slot of none.
const noMessage = 1<<32 - 1

// flush hands on what is about to leave.
func (d *Device) flush() {
	k := &d.parcel
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
		q.stayed(&k.whose[at], k.wrs[at].Flags&rdma.Inline == 0)
		if q.stuck = q.stuck || errors.Is(err, rdma.ErrAgain); !q.stuck {
			d.traffic.unsendable++
			q.abandon(k.whose[at].peer, rdma.StatusFault) // it cannot be sent to at all
		}
	}
	for i := range k.n {
		k.wrs[i].Body, k.whose[i] = rdma.Mem{}, departing{}
	}
	k.n, k.pair = 0, nil
}

// stayed takes back that a packet has left.
func (q *pair) stayed(w *departing, read bool) {
	if w.message == nil {
		w.peer.lag(q.dev.now)
		w.peer.hurry = true
		return
	}
	w.peer.stays(w.number)
	if read {
		w.message.unread()
	}
}

// sent takes a completion of the device below: it has read a packet.
func (d *Device) sent(c *rdma.Completion) {
	slot := uint32(c.ID)
	if slot == noMessage || int(slot) >= len(d.shelf.all) {
		return
	}
	// A failure is a loss like any other, and the packet goes again.
	if m := d.shelf.all[slot]; m.below > 0 {
		m.unread()
	}
}

// unread notes that the device below reads one packet less.
func (m *message) unread() {
	if m.below--; m.over() {
		m.pair.end(m, rdma.StatusOK)
	}
}
