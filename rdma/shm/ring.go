package shm

import (
	"math/bits"

	"github.com/muster-mpi/muster/rdma"
)

// A ring carries the messages of one busy sender. It has 64-byte cells, each tagged with
// the lap in which it was written, so that one cache line carries both a short message and
// its arrival notice. Longer messages are in a byte ring beside the cells, Head and Body
// contiguous. The consumer publishes its position only now and then, and the producer
// reads it only when the ring seems full, so in steady state only the message itself
// travels between the cores.

// ringTag packs a cell's tag. Laps begin at 1: zeroed memory is an empty ring.
func ringTag(lap uint32, k kind, n int) uint64 {
	return uint64(lap)<<32 | uint64(k)<<24 | uint64(n)
}

// ringLength is the mask of the length in a tag.
const ringLength = 1<<24 - 1

// ringWriter is the producer's end.
type ringWriter struct {
	cells     []ringCell
	bytes     []byte // nil: not allocated yet (heap mode)
	size      int    // of bytes
	pos, at   uint64 // next cell, next byte
	cellsSeen uint64 // the consumer's position when last read
	bytesSeen uint64
	head      *ringHead
	shift     uint8  // shift from positions to laps
	came      uint64 // messages received when this rank last sent
	streak    int    // messages sent since
	memory    *ringMemory
}

// openRingWriter continues where the previous user of ring i stopped.
func openRingWriter(s *segment, i int) *ringWriter {
	m := s.ring(i)
	w := &ringWriter{cells: m.cells, bytes: m.bytes, size: int(s.geo.ringBytes), head: m.head, memory: m, shift: uint8(bits.TrailingZeros32(s.geo.ringCells))}
	w.pos, w.at = m.head.cells.Load(), m.head.bytes.Load()
	w.cellsSeen, w.bytesSeen = w.pos, w.at
	return w
}

// push appends a message and reports whether there was room.
func (w *ringWriter) push(k kind, wr *rdma.SendWR, fenced bool) bool {
	if w.pos-w.cellsSeen >= uint64(len(w.cells)) {
		w.cellsSeen = w.head.cells.Load()
		if w.pos-w.cellsSeen >= uint64(len(w.cells)) {
			return false
		}
	}
	c := &w.cells[w.pos&uint64(len(w.cells)-1)]
	n := int(wr.HeadLen) + wr.Body.Len()
	if n <= ringInline {
		// Excess bytes of Head are overwritten by Body or lie beyond the length.
		copyHead(&c.data, &wr.Head)
		copy(c.data[wr.HeadLen:], wr.Body.Bytes())
	} else {
		from, next := span(w.at, n, w.size)
		if next-w.bytesSeen > uint64(w.size) {
			w.bytesSeen = w.head.bytes.Load()
			if next-w.bytesSeen > uint64(w.size) {
				return false
			}
		}
		if w.bytes == nil {
			w.bytes = w.memory.allocate(w.size)
		}
		fill(w.bytes[from:from+n], wr)
		if n <= demoteUpTo && w.streak == 0 {
			demote(&w.bytes[from], n)
		}
		w.at = next
	}
	tag := ringTag(uint32(w.pos>>(w.shift&63))+1, k, n)
	if fenced {
		c.tag.PublishFenced(tag)
	} else {
		c.tag.Publish(tag)
	}
	w.pos++
	if n > ringInline && k == kindData {
		w.prepare(n)
	}
	return true
}

// reach prefetches cells ahead for writing, once this rank has sent some messages without
// receiving any: in a stream each line would otherwise be waited for.
func (w *ringWriter) reach() {
	at := w.pos + reachAhead
	if w.streak == reachAfter+1 { // a stream begins: none was prefetched yet
		at = w.pos
	}
	for ; at <= w.pos+reachAhead && at-w.cellsSeen < uint64(len(w.cells)); at++ {
		prefetchWrite(&w.cells[at&uint64(len(w.cells)-1)].data[0], 1)
	}
}

// claimNext prefetches the next cell for writing, for a rank that gets answers: it waits now,
// and the consumer does not check that cell before it has answered (await).
func (w *ringWriter) claimNext() {
	prefetchWrite(&w.cells[w.pos&uint64(len(w.cells)-1)].data[0], 1)
}

// note counts the messages sent since the last one was received: a stream.
func (w *ringWriter) note(came uint64) {
	if w.came != came {
		w.came, w.streak = came, 0
		return
	}
	w.streak++
}

// demoteUpTo is the longest message whose lines are demoted at once. For longer ones the
// copying out begins before the last lines have arrived, and is slower then (measured:
// 5–10 % better at 128 B to 1 KB, level at 2 KB, 15 % worse at 8 KB). In a stream it
// halves the bandwidth.
const demoteUpTo = 1536

// reachAhead is the prefetch distance in cells: as many as fit into the time that a line
// takes from one core to the other. reachAfter is the number of messages without an answer
// before the prefetching begins: a window of 64 messages is a stream almost from its start.
const (
	reachAhead = 6
	reachAfter = 1
)

// prepare prefetches the bytes of the next message, assuming that it is as long as this
// one. The consumer read those lines in the last lap, and taking them back is a third of
// the time of a message of some KB; a rank that sends and then waits for an answer has the
// time for it now.
func (w *ringWriter) prepare(n int) {
	from, next := span(w.at, n, w.size)
	if next-w.bytesSeen <= uint64(w.size) { // not while it may still be read
		prefetchWrite(&w.bytes[from], n)
	}
}

// room reports whether a message of n bytes fits. If it does not, it requests a wake-up
// from the consumer once there is more room.
//
// No wake-up is lost: this side stores wanted before it checks again, and the consumer
// stores its positions before it reads wanted (publishPositions), both with a fence. A
// producer that is about to sleep calls room once more after it has set its sleeper word.
func (w *ringWriter) room(n int) bool {
	if w.fits(n) {
		return true
	}
	if w.head.wanted.Load() == 0 {
		w.head.wanted.PublishFenced(1)
	}
	return w.fits(n)
}

func (w *ringWriter) fits(n int) bool {
	w.cellsSeen = w.head.cells.Load()
	if w.pos-w.cellsSeen >= uint64(len(w.cells)) {
		return false
	}
	if n <= ringInline {
		return true
	}
	_, next := span(w.at, n, w.size)
	w.bytesSeen = w.head.bytes.Load()
	return next-w.bytesSeen <= uint64(w.size)
}

// span returns the offset of n bytes in a byte ring of the given size, from position at
// on, and the position after them. A message does not wrap, so the rest of the lap is
// skipped when it is too short. Both ends compute the same.
func span(at uint64, n, size int) (from int, next uint64) {
	from = int(at) & (size - 1)
	n = (n + lineBytes - 1) &^ (lineBytes - 1)
	if from+n > size {
		at += uint64(size - from)
		from = 0
	}
	return from, at + uint64(n)
}

// ringReader is the consumer's end.
type ringReader struct {
	cell         *ringCell // the next one
	lap          uint32    // its tag when it is full
	shift        uint8
	pos, at      uint64
	publishCells uint64 // publish to the producer when pos or at reach these
	publishBytes uint64
	cells        []ringCell
	bytes        []byte // nil: not known yet (heap mode)
	size         int    // of bytes
	head         *ringHead
	source       int
	number       int
	sent         uint64 // messages sent by this rank when something last arrived
	streak       int    // arrivals since
	pause        int    // polls still to be skipped
	asked        uint64 // messages this rank had sent at the last poll
	late         bool   // the first poll after the last of them found no answer
	dev          *Device
	memory       *ringMemory
}

func openRingReader(d *Device, i, source int) *ringReader {
	m := d.seg.ring(i)
	r := &ringReader{cells: m.cells, bytes: m.bytes, size: int(d.seg.geo.ringBytes), head: m.head, memory: m, dev: d, source: source, number: i,
		shift: uint8(bits.TrailingZeros32(d.seg.geo.ringCells))}
	r.pos, r.at = m.head.cells.Load(), m.head.bytes.Load()
	r.locate()
	r.rest()
	return r
}

// locate sets the cell and the lap for pos. They are stored, because an idle poll should
// have them at hand.
func (r *ringReader) locate() {
	r.cell = &r.cells[r.pos&uint64(len(r.cells)-1)]
	r.lap = uint32(r.pos>>(r.shift&63)) + 1
}

// ready reports whether the next message has arrived.
func (r *ringReader) ready() bool { return uint32(r.cell.tag.Load()>>32) == r.lap }

// A consumer that is faster than its producer reads each cell while it is being written,
// and takes the line away from the producer for every message, which doubles its cost or
// more. So in a stream that brings only few messages at a time, some polls skip the ring,
// and the producer gets ahead. A stream is what arrives while this rank sends nothing: a
// rank that waits for an answer has sent a request.
const (
	streamAfter = 8 // arrivals since this rank last sent
	streamBatch = 4 // with at least this many found, the producer need not get ahead
	streamPause = 8 // polls to skip
)

// due reports whether to receive messages now.
func (r *ringReader) due() bool {
	if r.pause > 0 {
		r.pause--
		return false
	}
	return r.ready()
}

// await is ready for a rank that polls for an answer. Each check of a cell that has not been
// written takes its line from the producer, which then has to get it back before it can
// write. An answer takes at least two transfers of a line and the peer's time, so after a
// send the first check is delayed by a part of that, unless the last answer had arrived by
// then: ranks that send to each other at the same time do not wait. Nor does one that can
// copy meanwhile.
func (r *ringReader) await(sent uint64) bool {
	if r.asked == sent {
		return r.ready()
	}
	r.asked = sent
	if r.late && !r.dev.copies.busy() {
		for range answerDelay {
		}
	}
	r.late = !r.ready()
	return !r.late
}

// answerDelay is the number of iterations of an empty loop, about 60 ns.
const answerDelay = 150

// saw records that a check found k messages, when this rank had sent so many.
func (r *ringReader) saw(k int, sent uint64) {
	if r.sent != sent {
		r.sent, r.streak = sent, 0
		return
	}
	if r.streak++; k < streamBatch && r.streak > streamAfter {
		r.pause = streamPause
	}
}

// lookAhead prefetches the next cells if all of them have been written: then their lines
// arrive at once, and not each when its message is processed. One load decides. A cell that
// has not been written is not touched otherwise, because that would take it from the
// producer.
func (r *ringReader) lookAhead() {
	i := r.pos & uint64(len(r.cells)-1)
	if i+lookCells >= uint64(len(r.cells)) {
		return
	}
	if uint32(r.cells[i+lookCells].tag.Load()>>32) == r.lap {
		prefetchRead(&r.cells[i+1].data[0], (lookCells-1)*lineBytes)
	}
}

// lookCells is the number of cells that lookAhead prefetches; a power of two.
const lookCells = 8

// kind returns the kind of the next message, once ready has returned true.
func (r *ringReader) kind() kind { return kind(r.cell.tag.Load() >> 24) }

// stop ends the reading of a ring whose sender cannot be trusted. The ring is not given to
// another sender, because the last one may still write into it.
func (r *ringReader) stop() { r.cell, r.lap = new(ringCell), 1 }

// pop removes the next message and returns it. Its memory stays valid until release. The
// sender can write the tag at any time, so the length is bounded here again, whatever was
// read before.
func (r *ringReader) pop() []byte {
	c := r.cell
	n := int(c.tag.Load() & ringLength)
	r.pos++
	r.locate()
	if n <= ringInline {
		return c.data[:n]
	}
	n = min(n, maxSend)
	from, next := span(r.at, n, r.size)
	if r.bytes == nil {
		r.bytes = r.memory.allocate(r.size)
	}
	r.at = next
	prefetchRead(&r.bytes[from], n)
	return r.bytes[from : from+n]
}

// take is pop for a piece of a copy, without prefetching: in a stream that uses the full
// memory bandwidth prefetching takes a third of the time and gains nothing.
func (r *ringReader) take() []byte {
	c := r.cell
	n := min(int(c.tag.Load()&ringLength), maxSend)
	r.pos++
	r.locate()
	if n <= ringInline {
		return c.data[:n]
	}
	from, next := span(r.at, n, r.size)
	if r.bytes == nil {
		r.bytes = r.memory.allocate(r.size)
	}
	r.at = next
	return r.bytes[from : from+n]
}

// release returns the popped messages' room, if that is worth the cache line that the
// update costs the producer. It holds back less than a quarter. As a message needs little
// more than a quarter of the byte ring and skips at most as much again, the producer of a
// ring that was read to the end always finds room.
func (r *ringReader) release() {
	if r.pos >= r.publishCells || r.at >= r.publishBytes {
		r.publishPositions()
	}
}

// publishPositions publishes how far the consumer has read.
func (r *ringReader) publishPositions() {
	r.head.bytes.Publish(r.at)
	r.head.cells.PublishFenced(r.pos) // before the load of wanted, see room
	r.rest()
	if r.head.wanted.Load() != 0 {
		r.announceRoom()
	}
}

// announceRoom wakes a producer that waits for room. A producer that this rank has not
// resolved is not woken: it polls after starvedPark.
func (r *ringReader) announceRoom() {
	if p := r.dev.peer(rdma.PeerID(r.source)); p != nil {
		r.head.wanted.Publish(0)
		r.dev.wakePeer(p, true)
	}
}

// rest sets the positions at which to publish next.
func (r *ringReader) rest() {
	r.publishCells = r.pos + uint64(len(r.cells))/4
	r.publishBytes = r.at + uint64(r.size)/4
}
