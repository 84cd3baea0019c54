package hybrid

import (
	"errors"

	"github.com/muster-mpi/muster/rdma"
)

// What a lost connection has not delivered is sent again by datagram. A connection
// completes a Send when the kernel has its bytes, and then its memory belongs to the user
// again; so a history keeps each request, with a copy of its bytes, until the peer's
// kernel has acked them. The kernel bounds its size: what was posted and not acked is in
// the socket's send buffer (tcp_wmem, 4 MB by default) or waits for it, and a full socket
// accepts no more requests than the queue pair's depth.
//
// Reads and Writes are kept without a copy: their memory belongs to the device until they
// complete. A Write may be placed twice. The first one cannot have been observed: the peer
// has received no message that follows it, or it would not be repeated, and its origin has
// seen no completion.

// record is a request that was posted to a connection.
type record struct {
	wr         rdma.SendWR // as posted by the user; Body is the copy, if there is one
	user       rdma.Mem    // Body as posted by the user
	message    uint64      // messages to the peer over connections, including this one
	size       int         // bytes of the ring that it uses
	ring       uint32      // which ring
	unfinished bool        // the connection was lost before it completed
}

// history holds the requests of one connection that may have to be repeated, in the order of
// posting. Requests are numbered from 0, as iwarp.RetainQP does.
type history struct {
	list  []record // ring buffer; its length is a power of two
	first uint64   // number of the oldest
	next  uint64   // number of the next request
	bytes []byte   // ring buffer of copies
	at    int      // offset of the next copy
	used  int      // bytes of it in use
	rings uint32   // number of rings so far; bytes is the last
	since int      // requests since the last check of acks
	fresh int      // bytes since then
}

const (
	historyList  = 64
	historyBytes = 64 << 10
	// ackEvery and ackBytes are the numbers of requests and bytes posted between two
	// checks of acks. A check is a system call.
	ackEvery = 64
	ackBytes = 64 << 10
)

// record returns the record of a request.
func (h *history) record(number uint64) *record { return &h.list[number&uint64(len(h.list)-1)] }

// add stores a request.
func (h *history) add(wr *rdma.SendWR, message uint64) {
	if int(h.next-h.first) == len(h.list) {
		larger := make([]record, max(2*len(h.list), historyList))
		for i := h.first; i < h.next; i++ {
			larger[i&uint64(len(larger)-1)] = *h.record(i)
		}
		h.list = larger
	}
	r := h.record(h.next)
	h.next++
	h.since++
	r.wr, r.user, r.message, r.size, r.unfinished = *wr, wr.Body, message, 0, false
	if n := wr.Body.Len(); n > 0 && (wr.Op == rdma.OpSend || wr.Op == rdma.OpWrite && wr.Flags&rdma.Inline != 0) {
		b := h.room(n, r)
		copy(b, wr.Body.Bytes())
		r.wr.Body = rdma.MemOf(b)
		h.fresh += n
	}
}

// room allocates bytes from the ring. The copies of an outgrown ring stay in place until
// they are dropped.
func (h *history) room(n int, r *record) []byte {
	if h.used == 0 {
		h.at = 0
	}
	skip := 0
	if h.at+n > len(h.bytes) { // the end of the ring is too short for it
		skip, h.at = len(h.bytes)-h.at, 0
	}
	if h.used+skip+n > len(h.bytes) {
		h.bytes, h.at, h.used, skip = make([]byte, max(2*len(h.bytes), historyBytes, n)), 0, 0, 0
		h.rings++
	}
	b := h.bytes[h.at : h.at+n : h.at+n]
	h.at += n
	h.used += skip + n
	r.size, r.ring = skip+n, h.rings
	return b
}

// drop removes the requests before a number.
func (h *history) drop(number uint64) {
	for ; h.first < min(number, h.next); h.first++ {
		r := h.record(h.first)
		if r.size > 0 && r.ring == h.rings {
			h.used -= r.size
		}
		r.wr.Body, r.user = rdma.Mem{}, rdma.Mem{}
	}
}

// memory returns the memory of the history.
func (h *history) memory() uint64 { return uint64(len(h.list))*historyRecord + uint64(len(h.bytes)) }

const historyRecord = 168 // bytes of a record

// remember stores a request that a connection has accepted.
func (c *connection) remember(wr *rdma.SendWR, message uint64) {
	h := &c.history
	h.add(wr, message)
	if h.since >= ackEvery || h.fresh >= ackBytes {
		h.since, h.fresh = 0, 0
		h.drop(c.qp.CountAcked())
	}
}

// retire closes a lost connection if everything has been received from it, and marks its
// unfinished requests.
func (c *connection) retire() bool {
	h := &c.history
	if !c.qp.CloseDrained(func(number uint64) {
		if number >= h.first && number < h.next {
			h.record(number).unfinished = true
		}
	}) {
		return false
	}
	m := c.peer
	m.records = m.records[:0]
	for i := h.first; i < h.next; i++ {
		m.records = append(m.records, *h.record(i))
	}
	c.history = history{}
	return true
}

// countDropped returns the number of messages to a peer, the oldest, that were not kept. A
// connection that ended for another reason than a loss has completed its work with errors,
// which the user has seen: nothing of it can be sent again.
func (m *peerState) countDropped(c *connection) uint64 {
	if !c.replays {
		return m.sent[byConnection]
	}
	n := uint64(0)
	for i := range m.records {
		if m.records[i].wr.Op == rdma.OpSend {
			n++
		}
	}
	return m.sent[byConnection] - n
}

// selectRecords keeps the records that are to be sent again to a peer that has received
// got messages. Requests known to have arrived complete.
func (d *Device) selectRecords(m *peerState, got uint64) {
	last := -1 // the last request that has certainly arrived
	for i := range m.records {
		if r := &m.records[i]; r.wr.Op == rdma.OpSend && r.message <= got {
			last = i
		}
	}
	kept := m.records[:0]
	for i := range m.records {
		r := &m.records[i]
		switch {
		case r.wr.Op == rdma.OpSend && r.message > got:
		case !r.unfinished:
			continue
		case r.wr.Op != rdma.OpRead && i <= last: // it has arrived, but could not be confirmed
			d.finish(m, r, rdma.StatusOK)
			continue
		}
		kept = append(kept, *r)
	}
	clear(m.records[len(kept):])
	m.records = kept
}

// finish completes a request that its connection could not complete.
func (d *Device) finish(m *peerState, r *record, status rdma.Status) {
	if !r.unfinished || r.wr.Flags&rdma.Inline != 0 && r.wr.Op != rdma.OpRead && status == rdma.StatusOK {
		return
	}
	c := rdma.Completion{ID: r.wr.ID, Peer: m.id, Op: r.wr.Op, Status: status}
	if status == rdma.StatusOK {
		c.Len = uint64(r.wr.HeadLen) + uint64(r.user.Len())
		if r.wr.Op != rdma.OpSend {
			c.Len = uint64(r.user.Len())
		}
	}
	d.pair.sendCQ.inject(c)
}

// resend posts the requests to be sent again. It returns false if there is no room for all
// of them now.
func (d *Device) resend(m *peerState) bool {
	for len(m.records) > 0 {
		r := &m.records[0]
		wrs := [1]rdma.SendWR{r.wr}
		wr := &wrs[0]
		wr.Peer = m.id
		switch inline := wr.Flags&rdma.Inline != 0 && wr.Op != rdma.OpRead; {
		case inline:
		case r.unfinished:
			wr.Body = r.user // it still belongs to the device
		default: // the user has seen its completion
			if wr.ID, wr.LKey = d.ids.replay, 0; wr.Body.Len() <= d.attr.MaxInline {
				wr.Flags |= rdma.Inline
			}
		}
		_, err := d.pair.data.PostSend(wrs[:])
		switch {
		case errors.Is(err, rdma.ErrAgain):
			return false
		case err != nil:
			m.unreachable()
			return true
		}
		if wr.Op == rdma.OpSend {
			m.sent[byDatagram]++
		}
		*r = record{}
		m.records = m.records[1:]
	}
	m.records = nil
	if m.endReplay(); !m.planned {
		d.losses.repaired++
	}
	return true
}

// abandonRecords completes the requests that cannot be sent again.
func (d *Device) abandonRecords(m *peerState, status rdma.Status) {
	for i := range m.records {
		d.finish(m, &m.records[i], status)
	}
	m.records = nil
}
