package mpiio

import (
	"iter"
	"math/bits"
)

// Cover records which bytes of a range of the file somebody has: a bit for each. Overlaps do no harm.
type Cover struct {
	words []uint64
	n     int64
}

// Reset begins a range of n bytes that nobody has.
func (c *Cover) Reset(n int64) {
	words := int((n + 63) / 64)
	if cap(c.words) < words {
		c.words = make([]uint64, words)
	}
	c.words, c.n = c.words[:words], n
	clear(c.words)
}

// Add records that somebody has n bytes from off on.
func (c *Cover) Add(off, n int64) {
	if n <= 0 {
		return
	}
	first, last := off>>6, (off+n-1)>>6
	low, high := ^uint64(0)<<(off&63), ^uint64(0)>>(63-(off+n-1)&63)
	if first == last {
		c.words[first] |= low & high
		return
	}
	c.words[first] |= low
	for i := first + 1; i < last; i++ {
		c.words[i] = ^uint64(0)
	}
	c.words[last] |= high
}

// Runs iterates over the longest pieces without a hole: offset and length.
func (c *Cover) Runs() iter.Seq2[int64, int64] {
	return func(yield func(off, n int64) bool) {
		for off := c.next(0, 0); off < c.n; {
			end := c.next(off, ^uint64(0))
			if !yield(off, end-off) {
				return
			}
			off = c.next(end, 0)
		}
	}
}

// next returns the first byte from off on whose bit differs from those of skip, or the end.
func (c *Cover) next(off int64, skip uint64) int64 {
	for i := off >> 6; i < int64(len(c.words)); i++ {
		w := c.words[i] ^ skip
		if i == off>>6 {
			w &= ^uint64(0) << (off & 63)
		}
		if w != 0 {
			return min(c.n, i<<6+int64(bits.TrailingZeros64(w)))
		}
	}
	return c.n
}
