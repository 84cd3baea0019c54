package engine

import "math/bits"

// scratchPool is the free scratch memory of a rank's collectives and windows. They return it
// at the end, and the next one of that size reuses it.
type scratchPool [][]byte

const (
	keepTmps = 8        // blocks kept
	keepTmp  = 64 << 20 // largest block kept
)

// get returns n bytes of scratch memory: the smallest free block that fits.
func (p *scratchPool) get(n int) []byte {
	if n == 0 {
		return nil
	}
	free := *p
	best := -1
	for i, t := range free {
		if cap(t) >= n && (best < 0 || cap(t) < cap(free[best])) {
			best = i
		}
	}
	if best < 0 {
		// Powers of two, so that calls of slowly growing sizes reuse blocks.
		return make([]byte, n, 1<<bits.Len(uint(max(n, 64)-1)))
	}
	t := free[best]
	last := len(free) - 1
	free[best], free[last] = free[last], nil
	*p = free[:last]
	return t[:n]
}

// put returns scratch memory.
func (p *scratchPool) put(t []byte) {
	if cap(t) == 0 || cap(t) > keepTmp {
		return
	}
	free := *p
	if len(free) < keepTmps {
		*p = append(free, t)
		return
	}
	least := 0
	for i := range free {
		if cap(free[i]) < cap(free[least]) {
			least = i
		}
	}
	if cap(t) > cap(free[least]) {
		free[least] = t
	}
}

// bytes returns the memory of all blocks.
func (p scratchPool) bytes() (n int) {
	for _, t := range p {
		n += cap(t)
	}
	return n
}
