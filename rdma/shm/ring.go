package shm

import (
	"math/bits"

	"github.com/muster-mpi/muster/rdma"
)

// A ring carries the messages of one busy sender. It has 64-byte cells, each
// tagged with the lap in which it was written, so that one line carries a short
// message and the news that it is there; longer messages lie in a byte ring
// beside the cells, Head and Body in one piece. The consumer publishes how far it
// has come only now and then, and the producer looks only when it seems full, so
// in steady state nothing but the message itself travels between the cores.

// ringTag packs a cell's tag. Laps begin at 1: zeroed memory is an empty ring.
func ringTag(lap uint32, k kind, n int) uint64 {
	return uint64(lap)<<32 | uint64(k)<<24 | uint64(n)
}

// ringWriter is the producer's end.
type ringWriter struct {
	mem       *ringMemory
	shift     int
	pos, at   uint64 // next cell, next byte
	cellsSeen uint64 // what the consumer had consumed when last asked
	bytesSeen uint64
	number    int
}

// openRingWriter continues where the last user of ring number i stopped.
func openRingWriter(s *segment, i int) *ringWriter {
	m := s.ring(i)
	w := &ringWriter{mem: m, shift: bits.TrailingZeros32(s.geo.ringCells), number: i}
	w.pos, w.at = m.head.cells.load(), m.head.bytes.load()
	w.cellsSeen, w.bytesSeen = w.pos, w.at
	return w
}

// push appends a message and reports whether there was room.
func (w *ringWriter) push(k kind, wr *rdma.SendWR, fenced bool) bool {
	cells := w.mem.cells
	if w.pos-w.cellsSeen >= uint64(len(cells)) {
		w.cellsSeen = w.mem.head.cells.load()
		if w.pos-w.cellsSeen >= uint64(len(cells)) {
			return false
		}
	}
	c := &cells[w.pos&uint64(len(cells)-1)]
	n := int(wr.HeadLen) + wr.Body.Len()
	if n <= ringInline {
		// What is too much of Head is overwritten by Body or lies behind the length.
		copyHead(&c.data, &wr.Head)
		copy(c.data[wr.HeadLen:], wr.Body.Bytes())
	} else {
		from, next := span(w.at, n, len(w.mem.bytes))
		if next-w.bytesSeen > uint64(len(w.mem.bytes)) {
			w.bytesSeen = w.mem.head.bytes.load()
			if next-w.bytesSeen > uint64(len(w.mem.bytes)) {
				return false
			}
		}
		fill(w.mem.bytes[from:from+n], wr)
		w.at = next
	}
	tag := ringTag(uint32(w.pos>>w.shift)+1, k, n)
	if fenced {
		c.tag.publishFenced(tag)
	} else {
		c.tag.publish(tag)
	}
	w.pos++
	return true
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
	mem       *ringMemory
	shift     int
	pos, at   uint64
	cellsTold uint64 // what the producer knows
	bytesTold uint64
	source    int
	closing   bool // the sender has closed: drop it at the next poll
	number    int
}

func openRingReader(s *segment, i, source int) *ringReader {
	m := s.ring(i)
	r := &ringReader{mem: m, shift: bits.TrailingZeros32(s.geo.ringCells), source: source, number: i}
	r.pos, r.at = m.head.cells.load(), m.head.bytes.load()
	r.cellsTold, r.bytesTold = r.pos, r.at
	return r
}

// peek is the next cell and its tag; the cell is nil when there is none.
func (r *ringReader) peek() (*ringCell, uint64) {
	c := &r.mem.cells[r.pos&uint64(len(r.mem.cells)-1)]
	tag := c.tag.load()
	if uint32(tag>>32) != uint32(r.pos>>r.shift)+1 {
		return nil, 0
	}
	return c, tag
}

// pop passes over the cell that peek showed and returns its message, which stays
// where it is until release.
func (r *ringReader) pop(c *ringCell, tag uint64) []byte {
	r.pos++
	n := int(tag & 0xffffff)
	if n <= ringInline {
		return c.data[:n]
	}
	from, next := span(r.at, n, len(r.mem.bytes))
	r.at = next
	return r.mem.bytes[from : from+n]
}

// release gives back what was popped, if that is worth the cache line that the
// news costs the producer. Less than a quarter is held back. As a message needs
// little more than a quarter of the byte ring and skips at most as much again, the
// producer of a ring that was read to the end always finds room.
func (r *ringReader) release() {
	if r.pos-r.cellsTold >= uint64(len(r.mem.cells))/4 || r.at-r.bytesTold >= uint64(len(r.mem.bytes))/4 {
		r.tell()
	}
}

func (r *ringReader) tell() {
	r.cellsTold, r.bytesTold = r.pos, r.at
	r.mem.head.bytes.publish(r.at)
	r.mem.head.cells.publish(r.pos)
}
