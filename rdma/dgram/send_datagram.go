package dgram

import (
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// What UD keeps of messages that it has sent: sendRecord takes a Write-Record,
// flushRecords cuts it into datagrams as fast as the kernel takes them, and remember
// notes who got which message, so that a refusal (refuse.go) finds its work request.
//
// A Write-Record is a tagged Write of which parts may be lost (Grant, Rashti, Afsahi
// and Balaji, IPDPS 2011). A tagged segment has no message number and no length of the
// message (RFC 5041 section 4.2), because a stream does not lose any. Here each
// datagram carries them in front of it.

const (
	// maxPieces is how many datagrams a Write-Record may have: the target keeps a bit
	// for each.
	maxPieces = 4096
	// recordBurst is how many bytes leave in one call: a socket that nobody enlarged
	// has room for them.
	recordBurst = 128 << 10
	// remembered is how many messages a refusal may be late.
	remembered = 256
)

// recordHeader stands before each segment of a Write-Record.
type recordHeader struct {
	number uint32 // of the message
	total  uint32 // bytes of the message
	cut    uint16 // bytes in each datagram but the last
	index  uint16 // of this datagram in the message
	id     uint64 // of the work request
}

// pieces is the number of datagrams of the message. One of no bytes has one.
func (r *recordHeader) pieces() uint64 {
	return max(1, (uint64(r.total)+uint64(r.cut)-1)/uint64(r.cut))
}

// offset is where this datagram's bytes begin in the message.
func (r *recordHeader) offset() uint64 { return uint64(r.index) * uint64(r.cut) }

// unreliable is what a UD queue pair keeps of messages.
type unreliable struct {
	sentUD       *[remembered]sentUD // by number
	leaving      []leaving
	records      []*record // that came in part, in the order in which they began
	spareRecords []*record
	ended        []ended // by PeerID
}

// leaving is a Write-Record that is not all handed on.
type leaving struct {
	message *message
	to      rdma.PeerID
}

// thrown is a message that was handed on.
type sentUD struct {
	id     uint64
	to     rdma.PeerID
	number uint32 // 0: none, or it was refused already
}

// recordCut is what of a Write-Record goes into one datagram.
func (d *Device) recordCut() int {
	return d.datagram - headerLen - recordLen - ddp.TaggedLen - sealLen
}

// sendRecord takes a Write-Record and hands on what the kernel takes of it.
func (q *pair) sendRecord(wr *rdma.SendWR) error {
	if q.pending == q.depth {
		return rdma.ErrAgain
	}
	m := q.dev.newMessage()
	if !q.dev.attachBody(m, wr) {
		q.dev.freeMessage(m)
		return rdma.ErrAgain
	}
	m.id, m.length, m.cut, m.headLen = wr.ID, wr.Body.Len(), 0, 0
	m.number, m.address, m.tag = q.remember(wr.ID, wr.Peer), wr.Remote, 0
	if wr.RKey>>32 == 0 {
		m.tag = ddp.Tag(wr.RKey) // a longer key is nobody's, and 0 is refused
	}
	q.pending++
	q.leaving = append(q.leaving, leaving{m, wr.Peer})
	q.flushRecords()
	return nil
}

// remember gives a message its number.
func (q *pair) remember(id uint64, to rdma.PeerID) uint32 {
	if q.sentUD == nil {
		q.sentUD = new([remembered]sentUD)
	}
	number := q.counter
	if q.counter++; q.counter == 0 { // 0 is the number of none
		q.counter = 1
	}
	q.sentUD[number%remembered] = sentUD{id: id, to: to, number: number}
	return number
}

// flushRecords hands on what the kernel takes, but no more in one call than the peer may
// have room for. A Write-Record is complete when it has been handed on (T1 6.3.6).
func (q *pair) flushRecords() {
	for left := 0; len(q.leaving) > 0 && left < recordBurst; {
		l := q.dev.nextPacket()
		if l == nil {
			return
		}
		m := q.leaving[0].message
		left += q.writeRecord(l, m, q.leaving[0].to)
		if m.cut == m.length {
			q.shiftLeaving(rdma.StatusOK)
		}
	}
}

// recordsLeave reports whether flushRecords has something to do at once.
func (q *pair) recordsLeave() bool { return len(q.leaving) > 0 && q.dev.outbox.n < batchSize }

// writeRecord makes the next datagram of a Write-Record, and says how long it is.
func (q *pair) writeRecord(l *packet, m *message, to rdma.PeerID) int {
	d, cut := q.dev, q.dev.recordCut()
	n := min(cut, m.length-m.cut)
	h := header{kind: kindRecord, record: recordHeader{number: m.number, total: uint32(m.length), cut: uint16(cut), index: uint16(m.cut / cut), id: m.id}}
	b := d.begin(l, &h, q.number, to)
	b = appendDDP(b, &ddp.Header{Op: ddp.Write, Last: m.cut+n == m.length, Tag: m.tag, TO: m.address + uint64(m.cut)})
	front, bytes := m.appendTo(b, m.cut, n)
	d.seal(l, front, bytes)
	m.cut += n
	return n
}

// shiftLeaving completes the first Write-Record that leaves. A success of an inline one
// is silent.
func (q *pair) shiftLeaving(status rdma.Status) {
	one := q.leaving[0]
	q.leaving = q.leaving[:copy(q.leaving, q.leaving[1:])]
	q.pending--
	if m := one.message; !m.inline || status != rdma.StatusOK {
		q.sendCQ.push(rdma.Completion{ID: m.id, Op: rdma.OpWriteRecord, Peer: one.to, Len: uint64(m.length), Status: status}, loan{})
	}
	q.dev.freeMessage(one.message)
}
