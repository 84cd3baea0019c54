package soft

import "github.com/muster-mpi/muster/rdma/internal/reliable"

// Memory for received datagrams. A slot holds one, or for a moment those that the
// kernel coalesced. It goes from the store to the socket, and back at once when the
// datagram is processed. A datagram that is early waits in its peer's reorder buffer,
// and a lent one comes back with the next Poll.

const (
	batchSize = 32   // datagrams per system call
	maxSlots  = 1024 // of a device
	// reserve is the number of slots that only the socket gets, or acks could not be
	// received while messages wait for buffers.
	reserve = 2 * batchSize
	// maxFilled is how much memory datagrams may fill before no more slots are made,
	// except for minSlots: under a flood the rest stays in the kernel, which drops it.
	maxFilled = 8 << 20
	minSlots  = 4 * batchSize
	// bulkMessage is the length from which coalesced datagrams are received one by one, and
	// bulkBatch is how many of them before acks are sent.
	bulkMessage = 32 << 10
	bulkBatch   = 4
	// longSlot is a fill that only coalesced datagrams reach.
	longSlot = 2 * pageSize
)

type slot struct {
	data      []byte
	n         int // bytes in it
	from      rawAddress
	lo        int // the DDP segment is data[lo:hi]
	hi        int
	most      int    // high-water mark of n
	placed    []byte // payload received elsewhere (inplace.go)
	each      int    // length of each of several coalesced datagrams
	part      bool   // part of another slot, whose memory it uses
	run       int    // packets in which it arrived together; 0: one
	wire      int    // length of these packets if data has them with their indexes; 0: it has not
	spoiled   bool   // a packet of the run is corrupt
	encrypted bool   // the packets are, except the first (run_encrypted.go)
	id        uint32 // of the buffer of the device below that it is
	partial
}

// length returns the length of the DDP segment.
func (s *slot) length() int {
	switch {
	case s.wire > 0 && s.encrypted:
		return s.n - s.lo - (s.run-1)*sealedAt - s.run*tagLen
	case s.wire > 0:
		return s.n - s.lo - (s.run-1)*indexLen
	}
	return s.hi - s.lo + len(s.placed)
}

// put copies the DDP segment behind its headers to its target, unless it was received
// there. It returns false if a packet of the run is corrupt.
func (d *Device) put(target []byte, s *slot, headers int) bool {
	switch {
	case s.wire > 0 && s.encrypted:
		return d.putEncrypted(target, s, headers)
	case s.wire > 0:
		return d.keys.putRun(target, s, headers)
	case s.placed == nil:
		copy(target, s.data[s.lo+headers:s.hi])
	case len(s.placed) > 0 && &target[0] != &s.placed[0]:
		copy(target, s.placed)
	}
	return true
}

// store keeps the slots of a device. Slots are allocated on demand, and the system
// backs them with memory as far as datagrams fill them.
type store struct {
	below  *carrier // whose buffers are the slots, nil: there is none
	free   []*slot
	made   int
	filled int // bytes of the pages that datagrams have filled
}

func (s *store) take() *slot {
	if n := len(s.free); n > 0 {
		t := s.free[n-1]
		s.free = s.free[:n-1]
		return t
	}
	if s.makeable() == 0 {
		return nil
	}
	s.made++
	return &slot{data: make([]byte, maxDatagram)}
}

// makeable returns how many slots may still be allocated.
func (s *store) makeable() int {
	if s.filled >= maxFilled {
		return max(minSlots-s.made, 0)
	}
	return maxSlots - s.made
}

// own returns a slot that may be kept: t itself, or a copy if t is part of another. It
// returns nil if there is none left, or a packet of the run is corrupt.
func (d *Device) own(t *slot) *slot {
	if !t.part {
		return t
	}
	o := d.incoming.store.take()
	if o == nil {
		return nil
	}
	o.from, o.lo, o.hi, o.n, o.each, o.run, o.wire = t.from, t.lo, t.hi, t.n, 0, t.run, 0
	if t.wire == 0 {
		copy(o.data, t.data[:t.n])
	} else if o.lo, o.hi, o.n = 0, t.length(), t.length(); !d.put(o.data, t, 0) {
		d.incoming.store.giveBack(o)
		return nil
	}
	d.incoming.store.fill(o)
	return o
}

func (s *store) giveBack(t *slot) {
	if s.below != nil {
		s.below.giveBack(t)
		return
	}
	s.free = append(s.free, t)
}

// fill accounts for the memory that the longest datagram in a slot has used.
func (s *store) fill(t *slot) {
	if t.n > t.most {
		s.filled += wholePages(t.n) - wholePages(t.most)
		t.most = t.n
	}
}

func wholePages(n int) int { return (n + pageSize - 1) &^ (pageSize - 1) }

const pageSize = 4096 // at least; a larger page only makes the estimate low

// ample reports whether a slot may be kept for later.
func (s *store) ample() bool {
	if s.below != nil {
		return s.below.kept < s.below.most*3/4 // the others are for acks
	}
	return len(s.free)+s.makeable() > reserve
}

// reorderBuffer holds the datagrams of a peer that have arrived and are not deliverable
// yet.
type reorderBuffer [reliable.Window]*slot

// joinBuffer is memory in which a message of several datagrams is reassembled.
type joinBuffer [maxSend]byte

// freeList keeps memory that busy peers have returned for the next ones.
type freeList[T any] []*T

func (f *freeList[T]) take() *T {
	n := len(*f)
	if n == 0 {
		return new(T)
	}
	t := (*f)[n-1]
	*f = (*f)[:n-1]
	return t
}

func (f *freeList[T]) giveBack(t *T) { *f = append(*f, t) }
