package soft

import (
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// What UD keeps about messages that it has sent. sendRecord accepts a Write-Record,
// flushRecords segments it into datagrams as fast as the kernel accepts them, and
// remember records who was sent which message, so that a refusal (refuse.go) finds its
// work request.
//
// A Write-Record is a tagged Write of which parts may be lost (Grant, Rashti, Afsahi
// and Balaji, IPDPS 2011). A tagged segment carries neither message number nor message
// length (RFC 5041 section 4.2), because a stream loses no segment. Here each datagram
// carries both in front of the segment.

const (
	// maxPieces is the maximum number of datagrams of a Write-Record: the target keeps
	// a bit for each.
	maxPieces = 4096
	// recordBurst is how many bytes are sent in one call: they fit into a socket buffer
	// of default size.
	recordBurst = 128 << 10
	// remembered is how many messages are kept for refusals.
	remembered = 256
)

// recordHeader precedes each segment of a Write-Record.
type recordHeader struct {
	number uint32 // of the message
	total  uint32 // bytes of the message
	cut    uint16 // bytes in each datagram but the last
	index  uint16 // of this datagram in the message
	id     uint64 // of the work request
}

// pieces returns the number of datagrams of the message. An empty message has one.
func (r *recordHeader) pieces() uint64 {
	return max(1, (uint64(r.total)+uint64(r.cut)-1)/uint64(r.cut))
}

// offset returns the offset of this datagram's payload in the message.
func (r *recordHeader) offset() uint64 { return uint64(r.index) * uint64(r.cut) }

// unreliable is the UD state of a queue pair.
type unreliable struct {
	sentUD       *[remembered]sentUD // by number
	leaving      []leaving
	records      []*record // received in part, in order of their first piece
	spareRecords freeList[record]
	ended        []ended // by PeerID
}

// leaving is a Write-Record that the kernel has not accepted completely.
type leaving struct {
	message *message
	to      rdma.PeerID
}

// sentUD is a message that the kernel has accepted.
type sentUD struct {
	id     uint64
	to     rdma.PeerID
	number uint32 // 0: none, or already refused
}

// recordCut returns how many bytes of a Write-Record fit into one datagram.
func (d *Device) recordCut() int {
	return d.datagram - headerLen - recordLen - ddp.TaggedLen - sealLen
}

// sendRecord queues a Write-Record and sends as much as the kernel accepts.
func (q *pair) sendRecord(wr *rdma.SendWR) error {
	if q.pending == q.depth {
		return rdma.ErrAgain
	}
	m := q.dev.outgoing.newMessage()
	if !q.dev.outgoing.attachBody(m, wr) {
		q.dev.outgoing.freeMessage(m)
		return rdma.ErrAgain
	}
	m.Info.id, m.Length, m.Cut, m.Info.headLen = wr.ID, wr.Body.Len(), 0, 0
	m.Info.number, m.Info.address, m.Info.tag = q.remember(wr.ID, wr.Peer), wr.Remote, 0
	if wr.RKey>>32 == 0 {
		m.Info.tag = ddp.Tag(wr.RKey) // no tag is longer, and tag 0 is refused
	}
	q.pending++
	q.leaving = append(q.leaving, leaving{m, wr.Peer})
	q.flushRecords()
	return nil
}

// remember assigns a number to a message and records its request.
func (q *pair) remember(id uint64, to rdma.PeerID) uint32 {
	if q.sentUD == nil {
		q.sentUD = new([remembered]sentUD)
	}
	number := q.counter
	if q.counter++; q.counter == 0 { // 0 means none
		q.counter = 1
	}
	q.sentUD[number%remembered] = sentUD{id: id, to: to, number: number}
	return number
}

// flushRecords sends what the kernel accepts, at most recordBurst bytes per call. A
// Write-Record is complete when the kernel has accepted all of it (T1 6.3.6).
func (q *pair) flushRecords() {
	for left := 0; len(q.leaving) > 0 && left < recordBurst; {
		l := q.dev.nextPacket()
		if l == nil {
			return
		}
		m := q.leaving[0].message
		left += q.writeRecord(l, m, q.leaving[0].to)
		if m.Cut == m.Length {
			q.shiftLeaving(rdma.StatusOK)
		}
	}
}

// recordsLeave reports whether flushRecords can send something now.
func (q *pair) recordsLeave() bool { return len(q.leaving) > 0 && q.dev.outgoing.outbox.n < batchSize }

// writeRecord makes the next datagram of a Write-Record and returns its payload length.
func (q *pair) writeRecord(l *packet, m *message, to rdma.PeerID) int {
	d, cut := q.dev, q.dev.recordCut()
	n := min(cut, m.Length-m.Cut)
	h := header{kind: kindRecord, record: recordHeader{number: m.Info.number, total: uint32(m.Length), cut: uint16(cut), index: uint16(m.Cut / cut), id: m.Info.id}}
	b := d.begin(l, &h, q.number, to)
	b = appendDDP(b, &ddp.Header{Op: ddp.Write, Last: m.Cut+n == m.Length, Tag: m.Info.tag, TO: m.Info.address + uint64(m.Cut)})
	front, bytes := m.Info.appendTo(b, m.Cut, n)
	d.seal(l, front, bytes)
	m.Cut += n
	return n
}

// shiftLeaving completes the first Write-Record in leaving. A successful inline one
// makes no completion.
func (q *pair) shiftLeaving(status rdma.Status) {
	one := q.leaving[0]
	q.leaving = q.leaving[:copy(q.leaving, q.leaving[1:])]
	q.pending--
	if m := one.message; !m.Info.inline || status != rdma.StatusOK {
		q.sendCQ.push(rdma.Completion{ID: m.Info.id, Op: rdma.OpWriteRecord, Peer: one.to, Len: uint64(m.Length), Status: status}, loan{})
	}
	q.dev.outgoing.freeMessage(one.message)
}
