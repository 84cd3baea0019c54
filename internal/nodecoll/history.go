package nodecoll

// The record of a rank's calls on a communicator, in its team or by messages.

import (
	"encoding/binary"

	"github.com/muster-mpi/muster/internal/coll"
)

// Kept is the number of calls that a History records.
const Kept = 8

// History records the calls of a rank on a communicator. One goroutine at a time adds to
// it; others may read it meanwhile.
type History struct {
	hash   uint64
	last   uint64  // number of the latest call
	shared *record // in the rank's section while there is a team; else nil
	own    record
	// Tolerant keeps differences in the length of short calls out of the hash and of
	// comparisons. It is set before the first call.
	Tolerant bool
}

// record holds the latest calls and their number.
type record struct {
	log    [Kept]word
	number word
}

func (h *History) record() *record {
	if h.shared != nil {
		return h.shared
	}
	return &h.own
}

// share moves the record into a section, or back.
func (h *History) share(r *record) {
	from := h.record()
	h.shared = r
	to := h.record()
	for i := range from.log {
		to.log[i].Publish(from.log[i].Load())
	}
	to.number.Publish(from.number.Load())
}

// Add records a call and returns its signature.
func (h *History) Add(c coll.Call) coll.Sign {
	s := c.SignAfter(h.hash)
	h.note(c)
	return s
}

func (h *History) note(c coll.Call) {
	h.last++
	h.hash = h.significant(c).Hash(h.hash)
	r := h.record()
	r.log[h.last%Kept].Note(uint64(c.WithNumber(h.last)))
	r.number.Note(h.last)
}

// significant returns the part of a call in which ranks must not differ.
func (h *History) significant(c coll.Call) coll.Call {
	if h.Tolerant {
		return c.Coarse()
	}
	return c
}

// same reports whether two calls do not differ.
func (h *History) same(a, b coll.Call) bool { return h.significant(a) == h.significant(b) }

// Tolerates reports whether a call of another rank, given by its signature, differs from
// this rank's in the length only, and such differences are tolerated.
func (h *History) Tolerates(what uint64, mine, theirs uint32) bool {
	_, ok := coll.Call(what).LengthIn(coll.Sign(mine), coll.Sign(theirs))
	return h.Tolerant && ok
}

// Hash returns a hash of all calls. Only the rank itself may call it.
func (h *History) Hash() uint64 { return h.hash }

// Latest returns the latest call and its number.
func (h *History) Latest() (number, what uint64) {
	r := h.record()
	n := r.number.Load()
	return n, r.log[n%Kept].Load()
}

// At returns call n, if it has been made and is still recorded.
func (h *History) At(n uint64) (c coll.Call, ok bool) { return h.record().at(n) }

func (r *record) at(n uint64) (c coll.Call, ok bool) {
	if n == 0 || n > r.number.Load() {
		return 0, false
	}
	c = coll.Call(r.log[n%Kept].Load())
	return c, n+Kept > r.number.Load()+1 && c.Numbered(n) // otherwise it is being overwritten
}

// Differs reports whether another rank's call of a number differs from this rank's, as far
// as it is recorded.
func (h *History) Differs(number, what uint64) bool {
	c, ok := h.At(number)
	return ok && !h.same(c, coll.Call(what))
}

// Difference is the first call that two ranks have made differently.
type Difference struct {
	Number       uint64
	Mine, Theirs coll.Call
}

// HistoryBytes is the length of an encoded History.
const HistoryBytes = 8 * (1 + Kept)

// Append appends the encoded history to b, for another rank.
func (h *History) Append(b []byte) []byte {
	r := h.record()
	b = binary.LittleEndian.AppendUint64(b, r.number.Load())
	for i := range r.log {
		b = binary.LittleEndian.AppendUint64(b, r.log[i].Load())
	}
	return b
}

// Number returns the number of the latest call in an encoded history.
func Number(encoded []byte) uint64 {
	if len(encoded) < HistoryBytes {
		return 0
	}
	return binary.LittleEndian.Uint64(encoded)
}

// Compare finds the first call that differs from that of another rank, among those that
// both have recorded.
func (h *History) Compare(theirs []byte) (d Difference, differ bool) {
	number := Number(theirs)
	last := min(number, h.record().number.Load())
	for n := max(last, Kept) - Kept + 1; n <= last; n++ {
		mine, ok := h.At(n)
		other := coll.Call(binary.LittleEndian.Uint64(theirs[8+8*(n%Kept):]))
		if ok && n+Kept > number+1 && other.Numbered(n) && !h.same(mine, other) {
			return Difference{n, mine, other}, true
		}
	}
	return d, false
}
