package dgram

// Memory for datagrams that came. A slot holds one, or for a moment those that the kernel
// joined. It goes from the store to the
// socket, and back at once if the datagram is done with; one that came too early
// waits in its peer's reorder buffer, and one that is lent comes back with the next Poll.

const (
	batchSize = 32   // datagrams that go through the kernel at once
	maxSlots  = 1024 // of a device
	// reserve are slots that only the socket gets, or acks could not come in
	// while messages wait for buffers.
	reserve = 2 * batchSize
	// maxFilled is how much memory datagrams may fill before no more slots are made, but
	// for the least: who is flooded leaves the rest to the kernel, which drops it.
	maxFilled = 8 << 20
	minSlots  = 4 * batchSize
	// longSlot is what only a slot for what the kernel joins has filled.
	longSlot = 2 * pageSize
)

type slot struct {
	data   []byte
	n      int // bytes in it
	from   rawAddress
	lo     int // where the DDP segment begins and ends
	hi     int
	most   int    // bytes that were ever in it
	placed []byte // bytes that came and are not in data (inplace.go)
	each   int    // length of each of the datagrams in it, if the kernel joined several
	part   bool   // of another slot, whose memory it is
}

// store keeps the slots of a device. They are made when they are needed first, and
// the system gives them memory as far as datagrams fill them.
type store struct {
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

// makeable is how many slots may still be made.
func (s *store) makeable() int {
	if s.filled >= maxFilled {
		return max(minSlots-s.made, 0)
	}
	return maxSlots - s.made
}

// own gives a slot that may be kept: the same, or a copy of one that is part of another.
// It is nil if there is none left.
func (s *store) own(t *slot) *slot {
	if !t.part {
		return t
	}
	o := s.take()
	if o == nil {
		return nil
	}
	o.n = copy(o.data, t.data[:t.n])
	o.from, o.lo, o.hi, o.each = t.from, t.lo, t.hi, 0
	s.fill(o)
	return o
}

func (s *store) giveBack(t *slot) { s.free = append(s.free, t) }

// fill counts the memory that the longest datagram in a slot has taken.
func (s *store) fill(t *slot) {
	if t.n > t.most {
		s.filled += wholePages(t.n) - wholePages(t.most)
		t.most = t.n
	}
}

func wholePages(n int) int { return (n + pageSize - 1) &^ (pageSize - 1) }

const pageSize = 4096 // at least, and where it is more nobody loses by it

// ample reports whether a slot may be kept for later.
func (s *store) ample() bool { return len(s.free)+s.makeable() > reserve }

// reorder buffer holds the datagrams of a peer that came and could not be delivered yet.
type reorderBuffer [window]*slot

func (d *Device) takeReorderBuffer() *reorderBuffer {
	if n := len(d.reorderBuffers); n > 0 {
		s := d.reorderBuffers[n-1]
		d.reorderBuffers = d.reorderBuffers[:n-1]
		return s
	}
	return new(reorderBuffer)
}

// takeJoin gives memory for a message of several datagrams.
func (d *Device) takeJoin() []byte {
	if n := len(d.joinBuffers); n > 0 {
		b := d.joinBuffers[n-1]
		d.joinBuffers = d.joinBuffers[:n-1]
		return b
	}
	return make([]byte, maxSend)
}

func (d *Device) takeJoining() *joining {
	if n := len(d.joined); n > 0 {
		j := d.joined[n-1]
		d.joined = d.joined[:n-1]
		return j
	}
	return new(joining)
}

func (d *Device) giveBackJoining(j *joining) {
	*j = joining{}
	d.joined = append(d.joined, j)
}
