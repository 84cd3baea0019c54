package soft

import (
	"math/bits"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/guard"
)

// Received Write-Records. receiveRecord places a piece and records it, endRecord
// completes the ranges that have arrived, and expireRecords ends those that will not
// become complete.
//
// A piece is placed when it arrives, wherever it belongs in its message. A message ends
// when it is complete, when a later one of the same peer has ended, when the peer has
// started too many, or when none of its pieces has arrived for a while. Pieces that
// arrive after that are dropped: the memory belongs to the user again. So the numbers
// of ended messages are remembered, in a window behind the latest.
//
// Every piece is checked as if it were the whole message: tag, bounds and access right
// (RFC 5042 section 6.2.1). The memory that a peer can tie up is bounded, and a peer
// evicts its own messages before those of others (RFC 5042 section 6.4).

const (
	maxOpen      = 4   // incomplete messages of a peer
	maxOpenAll   = 256 // of all peers of a queue pair
	maxUnpolled  = 4096
	recordSilent = 50 * time.Millisecond
)

// record is a message that has arrived in part.
type record struct {
	recordHeader
	from         rdma.PeerID
	tag          ddp.Tag
	base         uint64 // tagged offset of its first byte
	lastReceived time.Duration
	came         uint64 // pieces that have arrived
	pieces       [maxPieces / 64]uint64
}

// ended records which messages of a peer have ended.
type ended struct {
	before  uint64 // bit i: the message i before the latest
	latest  uint32
	serials serials // received from it, with those of UD messages
	strikes guard.Strikes
}

// late reports whether a message has ended or is too old to tell.
func (e *ended) late(number uint32) bool {
	behind := int32(e.latest - number)
	switch {
	case e.before == 0 || behind < 0:
		return false
	case behind >= 64:
		return true
	}
	return e.before>>behind&1 != 0
}

// note records the end of a message.
func (e *ended) note(number uint32) {
	ahead := int32(number - e.latest)
	switch {
	case e.before == 0:
		e.latest, e.before = number, 1
	case ahead > 0:
		e.latest, e.before = number, e.before<<ahead|1 // a shift by 64 or more clears all
	case ahead > -64:
		e.before |= 1 << -ahead
	}
}

// fits reports whether the fields of a piece are consistent.
func (r *recordHeader) fits(segment *ddp.Header, length int) bool {
	if r.number == 0 || r.cut == 0 || r.pieces() > maxPieces || uint64(r.index) >= r.pieces() {
		return false
	}
	last := uint64(r.index) == r.pieces()-1
	want := uint64(r.cut)
	if last {
		want = uint64(r.total) - r.offset()
	}
	return segment.Op == ddp.Write && segment.Last == last && uint64(length) == want
}

// receiveRecord processes a piece.
func (q *pair) receiveRecord(segment []byte, from rdma.PeerID, r *recordHeader) {
	d := q.dev
	var h ddp.Header
	n, fault := h.Decode(segment, len(segment))
	if fault == ddp.NoFault && !r.fits(&h, len(segment)-n) {
		fault = ddp.FaultUnspecified
	}
	if fault != ddp.NoFault {
		d.drops.Malformed++
		q.refuse(from, r.number, fault, segment)
		return
	}
	switch {
	case d.guard.Bars(q.ended[from].strikes, d.peers.list[from].resolved):
		d.drops.Barred++
		return
	case q.ended[from].late(r.number):
		d.drops.Late++
		return
	case q.recvCQ.Len() >= maxUnpolled:
		d.drops.NoRoom++ // the application does not poll
		return
	}
	q.storeRecord(segment, segment[n:], from, r, &h)
}

// storeRecord copies the payload of a piece to its target. Tag and address of a
// zero-length message are not checked (RFC 5040 section 5.1).
func (q *pair) storeRecord(segment, payload []byte, from rdma.PeerID, r *recordHeader, h *ddp.Header) {
	d := q.dev
	i := q.findRecord(from, r.number)
	base := h.TO - r.offset() // it may wrap, which is refused
	var mem []byte
	var fault ddp.Fault
	if r.total > 0 {
		if mem, fault = d.table.Placement(domain, ddp.StreamID(from)+1, h.Tag, base, uint64(r.total)); fault != ddp.NoFault {
			d.guard.Strike(&q.ended[from].strikes, d.peers.list[from].resolved, uint64(h.Tag))
		}
	}
	if fault == ddp.NoFault && i >= 0 && !q.records[i].continues(r, h.Tag, base) {
		fault = ddp.FaultUnspecified
	}
	if fault != ddp.NoFault {
		if i >= 0 {
			q.endRecord(i)
		}
		q.ended[from].note(r.number)
		q.refuse(from, r.number, fault, segment)
		return
	}
	copy(mem[min(r.offset(), uint64(len(mem))):], payload)
	if r.pieces() == 1 {
		q.endEarlier(from, r.number)
		q.ended[from].note(r.number)
		q.recvCQ.push(rdma.Completion{ID: r.id, Op: rdma.OpRecord, Peer: from, Data: rdma.MemOf(mem), Len: uint64(r.total)}, loan{})
		return
	}
	if i < 0 {
		i = q.beginRecord(from, r, h.Tag, base)
	}
	one := q.records[i]
	d.clock.tick()
	one.lastReceived = d.clock.now
	if word, bit := &one.pieces[r.index/64], uint64(1)<<(r.index%64); *word&bit == 0 {
		*word |= bit
		one.came++
	}
	if one.came == r.pieces() {
		q.endEarlier(from, r.number)
		q.endRecord(q.findRecord(from, r.number))
	}
}

// findRecord returns the index of a message in the list, or -1. The latest are at the
// end.
func (q *pair) findRecord(from rdma.PeerID, number uint32) int {
	for i := len(q.records) - 1; i >= 0; i-- {
		if one := q.records[i]; one.from == from && one.number == number {
			return i
		}
	}
	return -1
}

// continues reports whether a piece belongs to the same message as those before it.
func (o *record) continues(r *recordHeader, tag ddp.Tag, base uint64) bool {
	return o.total == r.total && o.cut == r.cut && o.id == r.id && o.tag == tag && o.base == base
}

// beginRecord adds a message to the list and evicts another if needed.
func (q *pair) beginRecord(from rdma.PeerID, r *recordHeader, tag ddp.Tag, base uint64) int {
	own, oldest := 0, 0
	for i := len(q.records) - 1; i >= 0; i-- {
		if q.records[i].from == from {
			own++
			oldest = i
		}
	}
	switch {
	case own == maxOpen:
		q.endRecord(oldest)
	case len(q.records) == maxOpenAll:
		q.endRecord(0)
	}
	one := q.spareRecords.take()
	*one = record{recordHeader: *r, from: from, tag: tag, base: base}
	q.records = append(q.records, one)
	return len(q.records) - 1
}

// endEarlier ends the messages of a peer before one that has ended.
func (q *pair) endEarlier(from rdma.PeerID, number uint32) {
	for i := 0; i < len(q.records); {
		if one := q.records[i]; one.from == from && int32(one.number-number) < 0 {
			q.endRecord(i)
			continue
		}
		i++
	}
}

// endRecord ends a message and queues one completion for each range that has arrived.
func (q *pair) endRecord(i int) {
	one := q.records[i]
	last := len(q.records) - 1
	copy(q.records[i:], q.records[i+1:])
	q.records[last] = nil
	q.records = q.records[:last]
	q.ended[one.from].note(one.number)
	// No completion refers to a region that was deregistered meanwhile.
	if mem, fault := q.dev.table.Placement(domain, ddp.StreamID(one.from)+1, one.tag, one.base, uint64(one.total)); fault == ddp.NoFault {
		for lo, hi := one.run(0); lo < hi; lo, hi = one.run(hi) {
			from, to := lo*uint64(one.cut), min(hi*uint64(one.cut), uint64(one.total))
			q.recvCQ.push(rdma.Completion{ID: one.id, Op: rdma.OpRecord, Peer: one.from, Data: rdma.MemOf(mem[from:to]), Len: uint64(one.total)}, loan{})
		}
	}
	q.spareRecords.giveBack(one)
}

// run returns the first run of pieces that have arrived, at or after from. It is empty
// if there is none.
func (o *record) run(from uint64) (lo, hi uint64) {
	lo = o.next(from, 0)
	return lo, o.next(lo, ^uint64(0))
}

// next returns the first piece at or after from whose bit differs from flip's, or
// maxPieces.
func (o *record) next(from, flip uint64) uint64 {
	for from < maxPieces {
		if word := (o.pieces[from/64] ^ flip) >> (from % 64); word != 0 {
			return min(from+uint64(bits.TrailingZeros64(word)), maxPieces)
		}
		from = (from/64 + 1) * 64
	}
	return maxPieces
}

// expireRecords ends messages of which nothing has arrived for a while.
func (q *pair) expireRecords(now time.Duration) {
	for i := 0; i < len(q.records); {
		if now-q.records[i].lastReceived >= recordSilent {
			q.endRecord(i)
			continue
		}
		i++
	}
}

// recordsDue returns when there is work for Write-Records.
func (q *pair) recordsDue() time.Duration {
	at := never
	if q.recordsLeave() {
		at = 0
	}
	for _, one := range q.records {
		at = min(at, one.lastReceived+recordSilent)
	}
	return at
}
