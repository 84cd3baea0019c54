package shm

import (
	"math/bits"

	"github.com/muster-mpi/muster/rdma"
)

// The shared queue accepts messages from any peer: a bounded queue with a sequence number
// in each cell (after D. Vyukov). A producer claims a position by advancing the tail and
// then fills the cell; only the owner consumes.
//
// A process that is killed between the two steps leaves a cell that never fills, and the
// owner sees nothing after it. The window is a few nanoseconds, and a job does not survive
// the loss of a rank for long; rings are not affected.

// kind is the kind of a message. Only kindData reaches the user.
type kind uint8

const (
	kindData kind = iota
	kindRingOpen
	kindRingClose
	kindHello
	kindWrite
	kindReadRequest
	kindReadReply
	kindAnswer
	kindCount
)

// packMeta packs the fields of a cell: source, block, kind, length.
func packMeta(source, block int, k kind, n int) uint64 {
	return uint64(source)<<48 | uint64(block)<<40 | uint64(k)<<32 | uint64(n)
}

func unpackMeta(m uint64) (source, block int, k kind, n int) {
	return int(m >> 48), int(m >> 40 & 0xff), kind(m >> 32), int(uint32(m))
}

// appendShared appends a message to the queue of s and reports whether there was room.
func (s *segment) appendShared(source int, k kind, wr *rdma.SendWR, fenced bool) bool {
	n := int(wr.HeadLen) + wr.Body.Len()
	block := noBlock
	if n > queueInline {
		// The block is filled first, so that the claimed cell is empty only for an
		// instant.
		i, mem := s.claimBlock(n)
		if i < 0 {
			return false
		}
		block = i
		fill(mem, wr)
	}
	shift := bits.TrailingZeros32(s.geo.cells)
	pos := s.head.tail.Load()
	for {
		c := &s.cells[pos&uint64(len(s.cells)-1)]
		free := pos >> shift << 1
		seq := c.seq.Load()
		if seq == free {
			if s.head.tail.CompareAndSwap(pos, pos+1) {
				if block == noBlock {
					fill(c.data[:], wr)
				}
				c.meta = packMeta(source, block, k, n)
				if fenced {
					c.seq.PublishFenced(free + 1)
				} else {
					c.seq.Publish(free + 1)
				}
				return true
			}
		} else if int64(seq-free) < 0 {
			break
		}
		// A full cell was claimed by advancing the tail; if the tail has not moved, the
		// owner's segment is damaged, and retrying would never end.
		next := s.head.tail.Load()
		if next == pos && seq != free {
			break
		}
		pos = next
	}
	if block != noBlock {
		s.freeBlock(block)
	}
	return false
}

// roomShared reports whether a message of n bytes would probably fit.
func (s *segment) roomShared(n int) bool {
	if n > queueInline && bits.TrailingZeros64(^s.head.largeUsed.Load()) >= int(s.geo.largeBlocks) {
		return false
	}
	pos := s.head.tail.Load()
	free := pos >> bits.TrailingZeros32(s.geo.cells) << 1
	return int64(s.cells[pos&uint64(len(s.cells)-1)].seq.Load()-free) >= 0
}

// fill writes Head and Body one after the other.
func fill(to []byte, wr *rdma.SendWR) {
	if len(to) >= ringInline && wr.HeadLen <= ringInline {
		copyHead((*[ringInline]byte)(to), &wr.Head) // excess bytes are overwritten by Body
		copy(to[wr.HeadLen:], wr.Body.Bytes())
		return
	}
	h := copy(to, wr.Head[:wr.HeadLen])
	copy(to[h:], wr.Body.Bytes())
}

// queueReader is the owner's end of its shared queue.
type queueReader struct {
	next  *queueCell // at pos
	full  uint64     // its sequence number when it is full
	seg   *segment
	pos   uint64 // next position to read
	freed uint64 // positions before this one were released
	shift uint8
}

func newQueueReader(s *segment) queueReader {
	q := queueReader{seg: s, shift: uint8(bits.TrailingZeros32(s.geo.cells))}
	q.locate()
	return q
}

func (q *queueReader) cell(pos uint64) *queueCell {
	return &q.seg.cells[pos&uint64(len(q.seg.cells)-1)]
}

// locate sets the cell for pos.
func (q *queueReader) locate() {
	q.next = q.cell(q.pos)
	q.full = q.pos>>(q.shift&63)<<1 + 1
}

// ready reports whether the next message has arrived.
func (q *queueReader) ready() bool { return q.next.seq.Load() == q.full }

// message returns the next message, once ready has returned true. Its memory stays valid
// until release. ok is false if its sender has written a kind, block or length that does
// not exist.
func (q *queueReader) message() (source int, k kind, data []byte, ok bool) {
	source, block, k, n := unpackMeta(q.next.meta)
	switch {
	case k >= kindCount:
	case block == noBlock && n <= queueInline:
		return source, k, q.next.data[:n], true
	case q.seg.hasBlock(block):
		if mem := q.seg.block(block); n <= len(mem) {
			return source, k, mem[:n], true
		}
	}
	return source, k, nil, false
}

// advance moves to the next cell.
func (q *queueReader) advance() {
	q.pos++
	q.locate()
}

// release frees all cells before pos.
func (q *queueReader) release() {
	for ; q.freed != q.pos; q.freed++ {
		c := q.cell(q.freed)
		if _, block, _, _ := unpackMeta(c.meta); block != noBlock {
			q.seg.freeBlock(block)
		}
		c.seq.Publish((q.freed>>(q.shift&63) + 1) << 1)
	}
}
