package reliable

import (
	"reflect"
	"time"
)

// Params are the properties of a carrier.
type Params struct {
	Single   int // bytes of a message in a segment of one packet
	Each     int // bytes in each packet of a longer segment
	MaxRun   int // packets in a segment
	AckEvery int // packets that make an ack due
	AskEvery int // bytes sent after which the sender requests an ack; 0: none
	// DelayFloor is the window in bytes below which delay alone does not shrink it. It is
	// for carriers whose peers have no network between them: their delay is that of
	// processes that wait for a core.
	DelayFloor int

	// AckDelay is how long an ack may wait for a packet to be piggybacked on.
	AckDelay time.Duration
	// LongAckDelay is the delay of an ack whose sender only needs it to free its copy.
	LongAckDelay time.Duration
}

// packet returns the bytes in a full packet.
func (p *Params) packet() int {
	if p.MaxRun > 1 {
		return p.Each
	}
	return p.Single
}

// Pool keeps memory for the busy peers of a device. An idle peer has none of it.
type Pool[T any] struct {
	Params
	Retransmitted uint64 // packets
	Probes        uint64 // first timeouts of a path
	Timeouts      uint64 // further ones, without an ack in between
	Counts        [MaxPaths]PathCounts

	segments  rings[segment[T]]
	packets   rings[packet]
	kept      []*Kept
	gaps      []*gaps
	histories []*history
	made      int // of kept, gaps and histories, in bytes
}

// NewPool returns a pool for peers with these parameters.
func NewPool[T any](p Params) *Pool[T] {
	h := &Pool[T]{Params: p}
	h.segments.longest, h.packets.longest = Window, packetWindow
	return h
}

// Memory returns how many bytes are allocated, in use and free.
func (h *Pool[T]) Memory() int { return h.segments.memory() + h.packets.memory() + h.made }

func sizeOf[E any]() int { return int(reflect.TypeFor[E]().Size()) }

const (
	shortRing = 16
	// Upper bounds on the free rings of a pool.
	maxShort, maxLong = 256, 32
)

// ring holds what is in flight, by number. Its length is a power of two.
type ring[E any] struct{ entries []E }

func (r *ring[E]) at(n uint32) *E { return &r.entries[n&uint32(len(r.entries)-1)] }

func (r *ring[E]) size() int {
	if r == nil {
		return 0
	}
	return len(r.entries)
}

// rings keeps short and long rings. Most peers with something in flight need a short
// one.
type rings[E any] struct {
	short, long []*ring[E]
	longest     int
	made        int // entries
}

func (h *rings[E]) take(size int) *ring[E] {
	free := &h.short
	if size > shortRing {
		free = &h.long
	}
	if n := len(*free); n > 0 {
		r := (*free)[n-1]
		*free = (*free)[:n-1]
		return r
	}
	h.made += size
	return &ring[E]{make([]E, size)}
}

func (h *rings[E]) giveBack(r *ring[E]) {
	switch {
	case r == nil:
	case len(r.entries) == shortRing && len(h.short) < maxShort:
		h.short = append(h.short, r)
	case len(r.entries) > shortRing && len(h.long) < maxLong:
		h.long = append(h.long, r)
	default:
		h.made -= len(r.entries)
	}
}

// fit returns a ring with room for more entries than [first, fresh), which r has.
func (h *rings[E]) fit(r *ring[E], first, fresh uint32, more int) *ring[E] {
	need := int(fresh-first) + more
	if need <= r.size() {
		return r
	}
	size := h.longest
	if need <= shortRing {
		size = shortRing
	}
	longer := h.take(size)
	for n := first; n != fresh; n++ {
		*longer.at(n) = *r.at(n)
	}
	if r != nil {
		clear(r.entries)
		h.giveBack(r)
	}
	return longer
}

func (h *rings[E]) memory() int { return h.made * sizeOf[E]() }

// takeFree returns an element of a free list, or a new one, which made counts in bytes.
func takeFree[E any](free *[]*E, made *int) *E {
	if n := len(*free); n > 0 {
		e := (*free)[n-1]
		*free = (*free)[:n-1]
		return e
	}
	*made += sizeOf[E]()
	return new(E)
}

func (h *Pool[T]) takeKept() *Kept { return takeFree(&h.kept, &h.made) }
func (h *Pool[T]) takeGaps() *gaps { return takeFree(&h.gaps, &h.made) }

func (h *Pool[T]) giveBackKept(k *Kept) {
	if k != nil {
		h.kept = append(h.kept, k)
	}
}

// PathMemory returns the memory of the paths of a peer, besides the peer itself.
func (s *Peer[T]) PathMemory() int {
	if s.only.multi == nil {
		return 0
	}
	return s.Paths()*sizeOf[multi]() + cap(s.only.multi.more)*sizeOf[path]()
}
