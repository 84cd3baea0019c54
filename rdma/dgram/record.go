package dgram

import (
	"math/bits"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/guard"
)

// Write-Records that come: catchRecord places a piece and notes it, endRecord tells the
// user which ranges are there, expireRecords ends what will not become whole.
//
// A piece is placed when it comes, wherever in its message it stands. A message ends
// when it is whole, when a later one of the same peer has ended, when the peer has begun
// too many, or when nothing of it has come for a while. What comes of it afterwards is
// dropped: the memory is the user's again. So numbers of messages that have ended are
// remembered, in a window behind the latest.
//
// Every piece is checked as if it were the whole message, by tag, bounds and right (RFC
// 5042 section 6.2.1). What a peer can occupy is bounded, and it pushes out its own
// messages before those of others (RFC 5042 section 6.4).

const (
	mostOpen     = 4   // messages of a peer that are not whole
	mostOpenAll  = 256 // of all peers of a queue pair
	mostUntold   = 4096
	recordSilent = 50 * time.Millisecond
)

// record is a message of which a part has come.
type record struct {
	recordHeader
	from   rdma.PeerID
	tag    ddp.Tag
	base   uint64 // where it begins at the target
	heard  time.Duration
	came   uint64 // pieces
	pieces [mostPieces / 64]uint64
}

// ended remembers which messages of a peer have ended.
type ended struct {
	before  uint64 // bit i: the one i before the latest
	latest  uint32
	serials serials // that were heard from it, of UD messages too
	strikes guard.Strikes
}

// late reports whether a message has ended, or is too old to know.
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

// note remembers a message that has ended.
func (e *ended) note(number uint32) {
	ahead := int32(number - e.latest)
	switch {
	case e.before == 0:
		e.latest, e.before = number, 1
	case ahead > 0:
		e.latest, e.before = number, e.before<<ahead|1 // a shift of 64 and more leaves nothing
	case ahead > -64:
		e.before |= 1 << -ahead
	}
}

// fits reports whether the parts of a piece agree.
func (r *recordHeader) fits(segment *ddp.Header, length int) bool {
	if r.number == 0 || r.cut == 0 || r.pieces() > mostPieces || uint64(r.index) >= r.pieces() {
		return false
	}
	last := uint64(r.index) == r.pieces()-1
	want := uint64(r.cut)
	if last {
		want = uint64(r.total) - r.offset()
	}
	return segment.Op == ddp.Write && segment.Last == last && uint64(length) == want
}

// catchRecord takes in a piece.
func (q *pair) catchRecord(segment []byte, from rdma.PeerID, r *recordHeader) {
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
	case d.guard.Bars(q.ended[from].strikes, d.peers[from].told):
		d.drops.Barred++
		return
	case q.ended[from].late(r.number):
		d.drops.Late++
		return
	case len(q.recvCQ.ready)-q.recvCQ.first >= mostUntold:
		d.drops.NoRoom++ // nobody looks at what has come
		return
	}
	q.placeRecord(segment, segment[n:], from, r, &h)
}

// placeRecord puts the bytes of a piece where they belong. Tag and address of no bytes
// are not checked (RFC 5040 section 5.1).
func (q *pair) placeRecord(segment, payload []byte, from rdma.PeerID, r *recordHeader, h *ddp.Header) {
	d := q.dev
	i := q.findRecord(from, r.number)
	base := h.TO - r.offset() // it may wrap, which is refused
	var mem []byte
	var fault ddp.Fault
	if r.total > 0 {
		if mem, fault = d.table.Placement(domain, ddp.StreamID(from)+1, h.Tag, base, uint64(r.total)); fault != ddp.NoFault {
			d.guard.Strike(&q.ended[from].strikes, d.peers[from].told, uint64(h.Tag))
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
	d.tick()
	one.heard = d.now
	if word, bit := &one.pieces[r.index/64], uint64(1)<<(r.index%64); *word&bit == 0 {
		*word |= bit
		one.came++
	}
	if one.came == r.pieces() {
		q.endEarlier(from, r.number)
		q.endRecord(q.findRecord(from, r.number))
	}
}

// findRecord is the place of a message in the list, or -1. The latest are at its end.
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

// beginRecord makes room for a message and puts it on the list.
func (q *pair) beginRecord(from rdma.PeerID, r *recordHeader, tag ddp.Tag, base uint64) int {
	own, oldest := 0, 0
	for i := len(q.records) - 1; i >= 0; i-- {
		if q.records[i].from == from {
			own++
			oldest = i
		}
	}
	switch {
	case own == mostOpen:
		q.endRecord(oldest)
	case len(q.records) == mostOpenAll:
		q.endRecord(0)
	}
	var one *record
	if n := len(q.spareRecords); n > 0 {
		one = q.spareRecords[n-1]
		q.spareRecords = q.spareRecords[:n-1]
	} else {
		one = new(record)
	}
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

// endRecord tells the user what has come of a message: one completion for each range.
func (q *pair) endRecord(i int) {
	one := q.records[i]
	last := len(q.records) - 1
	copy(q.records[i:], q.records[i+1:])
	q.records[last] = nil
	q.records = q.records[:last]
	q.ended[one.from].note(one.number)
	// A registration that has ended meanwhile has nothing to tell.
	if mem, fault := q.dev.table.Placement(domain, ddp.StreamID(one.from)+1, one.tag, one.base, uint64(one.total)); fault == ddp.NoFault {
		for lo, hi := one.run(0); lo < hi; lo, hi = one.run(hi) {
			from, to := lo*uint64(one.cut), min(hi*uint64(one.cut), uint64(one.total))
			q.recvCQ.push(rdma.Completion{ID: one.id, Op: rdma.OpRecord, Peer: one.from, Data: rdma.MemOf(mem[from:to]), Len: uint64(one.total)}, loan{})
		}
	}
	q.spareRecords = append(q.spareRecords, one)
}

// run is the first run of pieces that came, from a piece on. It is empty if none did.
func (o *record) run(from uint64) (lo, hi uint64) {
	lo = o.next(from, 0)
	return lo, o.next(lo, ^uint64(0))
}

// next is the first piece, from one on, whose bit is not that of flip's; or their number.
func (o *record) next(from, flip uint64) uint64 {
	for from < mostPieces {
		if word := (o.pieces[from/64] ^ flip) >> (from % 64); word != 0 {
			return min(from+uint64(bits.TrailingZeros64(word)), mostPieces)
		}
		from = (from/64 + 1) * 64
	}
	return mostPieces
}

// expireRecords ends messages of which nothing has come for a while.
func (q *pair) expireRecords(now time.Duration) {
	for i := 0; i < len(q.records); {
		if now-q.records[i].heard >= recordSilent {
			q.endRecord(i)
			continue
		}
		i++
	}
}

// recordsDue is when there is something to do for Write-Records.
func (q *pair) recordsDue() time.Duration {
	at := never
	if q.recordsLeave() {
		at = 0
	}
	for _, one := range q.records {
		at = min(at, one.heard+recordSilent)
	}
	return at
}
