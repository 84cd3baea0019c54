package shm

import (
	"math/bits"

	"github.com/muster-mpi/muster/rdma"
)

// A ring carries the messages of one busy sender. It has 64-byte cells, each
// tagged with the lap in which it was written, so that one line carries a short
// message and the news that it is there; longer messages lie in a byte ring
// beside the cells, Head and Body in one piece. The consumer publishes how far it
// has arrived only now and then, and the producer looks only when it seems full, so
// in steady state nothing but the message itself travels between the cores.

// ringTag packs a cell's tag. Laps begin at 1: zeroed memory is an empty ring.
func ringTag(lap uint32, k kind, n int) uint64 {
	return uint64(lap)<<32 | uint64(k)<<24 | uint64(n)
}

// ringLength is the part of a tag that holds the length.
const ringLength = 1<<24 - 1

// ringWriter is the producer's end.
type ringWriter struct {
	cells     []ringCell
	bytes     []byte
	pos, at   uint64 // next cell, next byte
	cellsSeen uint64 // what the consumer had consumed when last asked
	bytesSeen uint64
	head      *ringHead
	shift     uint8  // positions to laps
	came      uint64 // messages that had come when this rank last sent
	streak    int    // messages sent since
}

// openRingWriter continues where the last user of ring number i stopped.
func openRingWriter(s *segment, i int) *ringWriter {
	m := s.ring(i)
	w := &ringWriter{cells: m.cells, bytes: m.bytes, head: m.head, shift: uint8(bits.TrailingZeros32(s.geo.ringCells))}
	w.pos, w.at = m.head.cells.load(), m.head.bytes.load()
	w.cellsSeen, w.bytesSeen = w.pos, w.at
	return w
}

// push appends a message and reports whether there was room.
func (w *ringWriter) push(k kind, wr *rdma.SendWR, fenced bool) bool {
	if w.pos-w.cellsSeen >= uint64(len(w.cells)) {
		w.cellsSeen = w.head.cells.load()
		if w.pos-w.cellsSeen >= uint64(len(w.cells)) {
			return false
		}
	}
	c := &w.cells[w.pos&uint64(len(w.cells)-1)]
	n := int(wr.HeadLen) + wr.Body.Len()
	if n <= ringInline {
		// What is too much of Head is overwritten by Body or lies behind the length.
		copyHead(&c.data, &wr.Head)
		copy(c.data[wr.HeadLen:], wr.Body.Bytes())
	} else {
		from, next := span(w.at, n, len(w.bytes))
		if next-w.bytesSeen > uint64(len(w.bytes)) {
			w.bytesSeen = w.head.bytes.load()
			if next-w.bytesSeen > uint64(len(w.bytes)) {
				return false
			}
		}
		fill(w.bytes[from:from+n], wr)
		if n <= demoteUpTo && w.streak == 0 {
			demote(&w.bytes[from], n)
		}
		w.at = next
	}
	tag := ringTag(uint32(w.pos>>(w.shift&63))+1, k, n)
	if fenced {
		c.tag.publishFenced(tag)
	} else {
		c.tag.publish(tag)
	}
	w.pos++
	if n > ringInline && k == kindData {
		w.prepare(n)
	}
	return true
}

// reach fetches a cell some places ahead, to be written, once this rank has sent
// several messages without getting any: in a stream the lines would otherwise be
// waited for one by one. Whoever gets answers is better off without, because the
// consumer looks at the next cell before it answers, and should find it in its own
// cache.
func (w *ringWriter) reach() {
	if ahead := w.pos + reachAhead; ahead-w.cellsSeen < uint64(len(w.cells)) {
		prefetchWrite(&w.cells[ahead&uint64(len(w.cells)-1)].data[0], 1)
	}
}

// note counts messages sent without any having come: a stream.
func (w *ringWriter) note(came uint64) {
	if w.came != came {
		w.came, w.streak = came, 0
		return
	}
	w.streak++
}

// demoteUpTo is the longest message whose lines are sent on their way at once. For
// longer ones the copying out begins before the last of them are there, and is
// slower then (measured: 5–10 % better at 128 B to 1 KB, level at 2 KB, 15 % worse
// at 8 KB). In a stream it halves the bandwidth.
const demoteUpTo = 1536

// reachAhead is how many cells ahead: as many as fit into the time that a line
// takes from one core to the other.
const reachAhead = 6

// prepare fetches the place of the next message, in the belief that it will be as
// long as this one. The consumer read those lines in the last lap, and taking
// them back is a third of the way of a message of some KB; whoever sends and then
// waits for an answer has the time for it now.
func (w *ringWriter) prepare(n int) {
	from, next := span(w.at, n, len(w.bytes))
	if next-w.bytesSeen <= uint64(len(w.bytes)) { // not while it may still be read
		prefetchWrite(&w.bytes[from], n)
	}
}

// room reports whether a message of n bytes fits. If it does not, the consumer is
// asked to wake this rank once there is more room.
//
// No wake-up is lost: this side stores wanted before it looks again, and the consumer
// stores its positions before it looks at wanted (tell), both with a fence. A producer
// that is about to park calls room once more after it has said that it sleeps.
func (w *ringWriter) room(n int) bool {
	if w.fits(n) {
		return true
	}
	if w.head.wanted.load() == 0 {
		w.head.wanted.publishFenced(1)
	}
	return w.fits(n)
}

func (w *ringWriter) fits(n int) bool {
	w.cellsSeen = w.head.cells.load()
	if w.pos-w.cellsSeen >= uint64(len(w.cells)) {
		return false
	}
	if n <= ringInline {
		return true
	}
	_, next := span(w.at, n, len(w.bytes))
	w.bytesSeen = w.head.bytes.load()
	return next-w.bytesSeen <= uint64(len(w.bytes))
}

// span finds the place of n bytes in a byte ring of the given size, from
// position at on: the offset, and the position behind it. A message does not
// wrap, so the rest of the lap is skipped when it is too short. Both ends compute
// the same.
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
	cell         *ringCell // the next
	lap          uint32    // its tag, when it is full
	shift        uint8
	pos, at      uint64
	publishCells uint64 // publish the producer when pos or at come here
	publishBytes uint64
	cells        []ringCell
	bytes        []byte
	head         *ringHead
	source       int
	number       int
	sent         uint64 // by this rank, when something last came
	streak       int    // times that something came since
	pause        int    // polls yet to pass over
	dev          *Device
}

func openRingReader(d *Device, i, source int) *ringReader {
	m := d.seg.ring(i)
	r := &ringReader{cells: m.cells, bytes: m.bytes, head: m.head, dev: d, source: source, number: i,
		shift: uint8(bits.TrailingZeros32(d.seg.geo.ringCells))}
	r.pos, r.at = m.head.cells.load(), m.head.bytes.load()
	r.advanceSeq()
	r.rest()
	return r
}

// advanceSeq finds the cell and the lap of pos. They are kept, because an idle poll
// should find them at hand.
func (r *ringReader) advanceSeq() {
	r.cell = &r.cells[r.pos&uint64(len(r.cells)-1)]
	r.lap = uint32(r.pos>>(r.shift&63)) + 1
}

// ready reports whether the next message is there.
func (r *ringReader) ready() bool { return uint32(r.cell.tag.load()>>32) == r.lap }

// A consumer that is quicker than its producer reads each cell while it is being
// written, and takes the line away from the producer for every single message,
// which then costs twice as much or more. So in a stream that brings only few at a
// time some polls pass the ring over, and the producer gets ahead. A stream is
// what comes while this rank sends nothing: who waits for an answer has asked.
const (
	streamAfter = 8 // times that something came since we sent something
	streamBatch = 4 // found at least this many: no need to let it get ahead
	streamPause = 8 // polls that pass over
)

// due reports whether to take messages now.
func (r *ringReader) due() bool {
	if r.pause > 0 {
		r.pause--
		return false
	}
	return r.ready()
}

// saw notes that a look found k messages, when this rank had sent so many.
func (r *ringReader) saw(k int, sent uint64) {
	if r.sent != sent {
		r.sent, r.streak = sent, 0
		return
	}
	if r.streak++; k < streamBatch && r.streak > streamAfter {
		r.pause = streamPause
	}
}

// kind is that of the next message, once ready has found it.
func (r *ringReader) kind() kind { return kind(r.cell.tag.load() >> 24) }

// stop ends the reading of a ring whose sender cannot be trusted. The ring is not given
// to another sender, because the last one may still write into it.
func (r *ringReader) stop() { r.cell, r.lap = new(ringCell), 1 }

// pop passes over the next message and returns it. It stays where it is until
// release. The tag is the sender's to write, so the length is bounded here again,
// whatever was seen of it before.
func (r *ringReader) pop() []byte {
	c := r.cell
	n := int(c.tag.load() & ringLength)
	r.pos++
	r.advanceSeq()
	if n <= ringInline {
		return c.data[:n]
	}
	n = min(n, maxSend)
	from, next := span(r.at, n, len(r.bytes))
	r.at = next
	prefetchRead(&r.bytes[from], n)
	return r.bytes[from : from+n]
}

// take is pop for a piece of a copy. Nothing is fetched ahead: in a stream that uses all
// of the memory's bandwidth that takes a third of the time and gains nothing.
func (r *ringReader) take() []byte {
	c := r.cell
	n := min(int(c.tag.load()&ringLength), maxSend)
	r.pos++
	r.advanceSeq()
	if n <= ringInline {
		return c.data[:n]
	}
	from, next := span(r.at, n, len(r.bytes))
	r.at = next
	return r.bytes[from : from+n]
}

// release gives back what was popped, if that is worth the cache line that the
// news costs the producer. Less than a quarter is held back. As a message needs
// little more than a quarter of the byte ring and skips at most as much again, the
// producer of a ring that was read to the end always finds room.
func (r *ringReader) release() {
	if r.pos >= r.publishCells || r.at >= r.publishBytes {
		r.publish()
	}
}

func (r *ringReader) publish() {
	r.head.bytes.publish(r.at)
	r.head.cells.publishFenced(r.pos) // before the look at wanted, see room
	r.rest()
	if r.head.wanted.load() != 0 {
		r.announceRoom()
	}
}

// announceRoom wakes a producer that waits for room. One that this rank does not know
// yet is left waiting: it looks by itself after starvedPark.
func (r *ringReader) announceRoom() {
	if p := r.dev.peer(rdma.PeerID(r.source)); p != nil {
		r.head.wanted.publish(0)
		r.dev.rouse(p, true)
	}
}

// rest reports when the producer is to be told next.
func (r *ringReader) rest() {
	r.publishCells = r.pos + uint64(len(r.cells))/4
	r.publishBytes = r.at + uint64(len(r.bytes))/4
}
