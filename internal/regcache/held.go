package regcache

// The regions in use, by key, so that a protocol can release a region by the key it has.
// The table holds only regions in use: they are few and were accessed recently, so it
// stays in the processor's cache however many regions are registered. It uses linear
// probing; a removal shifts the following entries, so there are no tombstones.

import "math/bits"

type held struct {
	slots []*region // a power of two
	n     int
}

const heldMin = 64

func (h *held) home(key uint64) int {
	return int(key * golden >> (64 - uint(bits.TrailingZeros(uint(len(h.slots))))))
}

// find returns the region with a key, or nil.
func (h *held) find(key uint64) *region {
	if h.n == 0 {
		return nil
	}
	for i := h.home(key); h.slots[i] != nil; i = (i + 1) & (len(h.slots) - 1) {
		if h.slots[i].rkey == key {
			return h.slots[i]
		}
	}
	return nil
}

func (h *held) add(r *region) {
	if 2*(h.n+1) > len(h.slots) {
		old := h.slots
		h.slots = make([]*region, max(heldMin, 2*len(old)))
		for _, o := range old {
			if o != nil {
				h.insert(o)
			}
		}
	}
	h.insert(r)
	h.n++
}

func (h *held) insert(r *region) {
	i := h.home(r.rkey)
	for h.slots[i] != nil {
		i = (i + 1) & (len(h.slots) - 1)
	}
	h.slots[i] = r
}

func (h *held) remove(r *region) {
	mask := len(h.slots) - 1
	i := h.home(r.rkey)
	for h.slots[i] != r {
		i = (i + 1) & mask
	}
	h.n--
	for j := (i + 1) & mask; h.slots[j] != nil; j = (j + 1) & mask {
		// The entry at j may move to i unless its home lies between.
		if (j-h.home(h.slots[j].rkey))&mask >= (j-i)&mask {
			h.slots[i] = h.slots[j]
			i = j
		}
	}
	h.slots[i] = nil
}

// overlapping counts the regions in use that overlap [lo, hi).
func (h *held) overlapping(lo, hi uint64) (n int) {
	for _, r := range h.slots {
		if r != nil && r.lo < hi && lo < r.hi {
			n++
		}
	}
	return n
}

func (h *held) all() []*region {
	list := make([]*region, 0, h.n)
	for _, r := range h.slots {
		if r != nil {
			list = append(list, r)
		}
	}
	return list
}
