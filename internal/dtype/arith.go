package dtype

import "math"

// calc does 64-bit arithmetic and records any overflow, so that constructors
// check once at the end. After an overflow the results are undefined.
type calc struct{ overflow bool }

func (c *calc) add(a, b int64) int64 {
	s := a + b
	if (a > 0 && b > 0 && s <= 0) || (a < 0 && b < 0 && s >= 0) {
		c.overflow = true
	}
	return s
}

func (c *calc) sub(a, b int64) int64 {
	if b == math.MinInt64 {
		c.overflow = true
		return 0
	}
	return c.add(a, -b)
}

func (c *calc) mul(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	p := a * b
	if p/b != a || (a == -1 && b == math.MinInt64) || (b == -1 && a == math.MinInt64) {
		c.overflow = true
	}
	return p
}

// roundUp returns the next multiple of align that is not below n, or n if it is negative.
func (c *calc) roundUp(n, align int64) int64 {
	if r := n % align; r > 0 {
		return c.add(n, align-r)
	}
	return n
}

// span is a range of bytes [lo, hi), relative to an origin.
type span struct{ lo, hi int64 }

// at moves a span.
func (c *calc) at(s span, off int64) span {
	return span{c.add(s.lo, off), c.add(s.hi, off)}
}

// spread returns the span that count copies of s, stride apart, cover; count is
// not 0. The stride may be negative.
func (c *calc) spread(s span, count, stride int64) span {
	last := c.mul(count-1, stride)
	return span{c.add(s.lo, min(0, last)), c.add(s.hi, max(0, last))}
}

// cover returns the smallest span that holds both.
func (s span) cover(t span) span {
	return span{min(s.lo, t.lo), max(s.hi, t.hi)}
}
