package sparse

import "math/bits"

// Table holds pointers by index. It is a hash table with open addressing, at most half full,
// so its memory depends on the entries that are set and not on their indices. The zero Table
// is empty. Only one goroutine may use it at a time.
type Table[T any] struct {
	slots []slot[T] // length is a power of two
	shift uint8     // from a hash to a slot
	used  int       // slots with a key
}

type slot[T any] struct {
	key   int // index + 1; 0: unused
	entry *T
}

const firstSlots = 8

// Get returns the entry of an index, nil if none was set.
func (t *Table[T]) Get(i int) *T {
	if len(t.slots) == 0 {
		return nil
	}
	for n := t.home(i); ; n++ {
		switch s := &t.slots[n&(len(t.slots)-1)]; s.key {
		case i + 1:
			return s.entry
		case 0:
			return nil
		}
	}
}

// home returns the slot at which the search for an index starts. The factor is 2⁶⁴ divided
// by the golden ratio (Knuth, The Art of Computer Programming, volume 3, section 6.4):
// ranks that are a power of two apart, as peers in a collective are, get different slots.
func (t *Table[T]) home(i int) int { return int(uint64(i) * 0x9E3779B97F4A7C15 >> (t.shift & 63)) }

// Set sets the entry of an index, which must not be negative.
func (t *Table[T]) Set(i int, v *T) {
	if 2*t.used >= len(t.slots) {
		t.grow()
	}
	t.set(i, v)
}

func (t *Table[T]) set(i int, v *T) {
	for n := t.home(i); ; n++ {
		s := &t.slots[n&(len(t.slots)-1)]
		if s.key == 0 {
			s.key = i + 1
			t.used++
		}
		if s.key == i+1 {
			s.entry = v
			return
		}
	}
}

func (t *Table[T]) grow() {
	old := t.slots
	t.slots = make([]slot[T], max(firstSlots, 2*len(old)))
	t.shift = uint8(64 - bits.TrailingZeros(uint(len(t.slots))))
	t.used = 0
	for _, s := range old {
		if s.entry != nil {
			t.set(s.key-1, s.entry)
		}
	}
}

// All yields the entries that are not nil, in no order. It allocates nothing.
func (t *Table[T]) All(yield func(i int, v *T) bool) {
	for _, s := range t.slots {
		if s.entry != nil && !yield(s.key-1, s.entry) {
			return
		}
	}
}

// Len returns the number of indices that were set.
func (t *Table[T]) Len() int { return t.used }

// Words returns the number of words that the table takes memory for.
func (t *Table[T]) Words() int { return 2 * len(t.slots) }
