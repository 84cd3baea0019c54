package dgram

import (
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// The outbox: datagrams that are ready, until the kernel takes them in one call. Each
// is one piece of memory, because CRC and tag run over it anyway.

// letter is a datagram that is ready.
type letter struct {
	data []byte
	to   rawAddress
}

type outbox struct {
	letters [batchSize]letter
	n       int
}

func newOutbox() (o outbox) {
	for i := range o.letters {
		o.letters[i].data = make([]byte, 0, mostDatagram)
	}
	return o
}

// nextLetter is the place for another datagram, or nil when the kernel takes no more.
func (d *Device) nextLetter() *letter {
	if d.outbox.n == batchSize {
		if d.flush(); d.outbox.n == batchSize {
			return nil
		}
	}
	d.outbox.n++
	return &d.outbox.letters[d.outbox.n-1]
}

// begin addresses a letter and writes the header into it.
func (d *Device) begin(l *letter, h *header, from uint16, to rdma.PeerID) []byte {
	a := &d.peers[to]
	l.to = a.at.raw
	h.to, h.from, h.toLife, h.name = a.pair, from, a.life, d.name
	if !d.keys.stampHeader(h) {
		// 2^48 datagrams at a million a second are nine years.
		panic("dgram: the serial numbers of this device are used up")
	}
	return h.append(l.data[:0])
}

func appendDDP(b []byte, h *ddp.Header) []byte {
	n := len(b)
	b = b[:n+h.Len()]
	h.Put(b[n:])
	return b
}

// flush hands the letters to the kernel. What it does not take now stays; what it
// refuses for good is dropped, and RD will see it as lost.
func (d *Device) flush() {
	o := &d.outbox
	if d.disturb != nil {
		d.disturb(o)
	}
	if o.n == 0 {
		return
	}
	d.orderBeforeSending()
	done := 0
	for done < o.n {
		n, full := d.socket.send(o.letters[done:o.n])
		done += n
		d.traffic.sent += uint64(n)
		if full {
			break
		}
		if n == 0 {
			d.drops.Unsendable++
			done++
		}
	}
	for i := done; i < o.n; i++ { // memory is exchanged, not copied
		o.letters[i-done], o.letters[i] = o.letters[i], o.letters[i-done]
	}
	o.n -= done
}

// newMessage takes a message from those that are done with, or makes one.
func (d *Device) newMessage() *message {
	if n := len(d.spare); n > 0 {
		m := d.spare[n-1]
		d.spare = d.spare[:n-1]
		return m
	}
	return new(message)
}

// forget keeps a message for the next one, without the user's memory.
func (d *Device) forget(m *message) {
	m.body, m.following = rdma.Mem{}, nil
	d.spare = append(d.spare, m)
}

// appendTo appends the octets [offset, offset+n) of head and body.
func (m *message) appendTo(b []byte, offset, n int) []byte {
	if offset < m.headLen {
		part := min(n, m.headLen-offset)
		b = append(b, m.head[offset:offset+part]...)
		offset, n = offset+part, n-part
	}
	offset -= m.headLen
	return append(b, m.body.Bytes()[offset:offset+n]...)
}
