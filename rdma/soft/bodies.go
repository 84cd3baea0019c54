package soft

import (
	"math/bits"

	"github.com/muster-mpi/muster/rdma"
)

// Copies of inline bodies. The caller gets the memory back when PostSend returns, and
// RD may have to retransmit later, so a copy is needed. It need not be made first:
// attachBody only reserves memory, the kernel reads the bytes from the caller, and
// copyBodies makes the copies when everything is sent, while the peers process it. The
// memory is kept by size and bounded. When it is used up, PostSend returns ErrAgain.

const (
	shortBody = 128      // longest body that needs no extra memory: it is copied at once
	minBody   = 512      // smallest size class
	maxInline = 32 << 10 // largest size class
	maxKept   = 2 << 20  // bytes of all copies
	bodySizes = 6 + 1    // 512, 1024 ... 32768
	strictMax = 16 << 10 // MaxInline in strict mode: a library keeps registered buffers for copies of that length
)

// bodies is memory for copies.
type bodies struct {
	free [bodySizes][][]byte
	made int        // bytes allocated, in use and free
	due  []*message // whose copies are not made yet
}

func sizeOfBody(n int) (index, size int) {
	index = bits.Len(uint(max(n, minBody)-1)) - bits.Len(uint(minBody-1))
	return index, minBody << index
}

// take returns memory for n bytes, or nil if there is none left.
func (b *bodies) take(n int) []byte {
	i, size := sizeOfBody(n)
	if last := len(b.free[i]) - 1; last >= 0 {
		body := b.free[i][last]
		b.free[i] = b.free[i][:last]
		return body[:n]
	}
	for other := 0; other < bodySizes && b.made+size > maxKept; other++ {
		b.made -= len(b.free[other]) * (minBody << other)
		b.free[other] = nil
	}
	if b.made+size > maxKept {
		return nil
	}
	b.made += size
	return make([]byte, n, size)
}

func (b *bodies) giveBack(body []byte) {
	i, _ := sizeOfBody(cap(body))
	b.free[i] = append(b.free[i], body)
}

// attachBody attaches the body of a request to a message, and reserves memory for the
// copy of a long inline one. It returns false if there is none.
func (s *sendSide) attachBody(m *message, wr *rdma.SendWR) bool {
	m.Info.body = wr.Body
	switch m.Info.inline = wr.Flags&rdma.Inline != 0; {
	case !m.Info.inline:
	case wr.Body.Len() <= shortBody:
		m.Info.body = rdma.MemOf(m.Info.short[:copy(m.Info.short[:], wr.Body.Bytes())])
	default:
		if m.Info.kept = s.bodies.take(wr.Body.Len()); m.Info.kept == nil {
			m.Info.body = rdma.Mem{}
			return false
		}
		s.bodies.due = append(s.bodies.due, m)
	}
	return true
}

// copyBodies makes the copies that are due.
func (s *sendSide) copyBodies() {
	for i, m := range s.bodies.due {
		copy(m.Info.kept, m.Info.body.Bytes())
		m.Info.body = rdma.MemOf(m.Info.kept)
		s.bodies.due[i] = nil
	}
	s.bodies.due = s.bodies.due[:0]
}

// releaseBody returns the memory of a copy.
func (s *sendSide) releaseBody(m *message) {
	if m.Info.kept != nil {
		s.bodies.giveBack(m.Info.kept)
		m.Info.kept = nil
	}
}
