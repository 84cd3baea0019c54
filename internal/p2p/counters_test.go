package p2p

import (
	"math/bits"
	"testing"
)

func TestSizeClasses(t *testing.T) {
	for _, c := range []struct{ bytes, class int }{
		{0, 0}, {1, 1}, {2, 2}, {3, 2}, {4, 3}, {1023, 10}, {1024, 11}, {1 << 20, 21}, {maxTotal, bits.Len64(maxTotal)},
	} {
		var s Sizes
		s.add(protoPut, c.bytes)
		s.add(protoPut, c.bytes)
		if got, want := s[protoPut][c.class], (SizeCount{2, 2 * uint64(c.bytes)}); got != want {
			t.Errorf("two messages of %d bytes: class %d has %+v, want %+v", c.bytes, c.class, got, want)
		}
	}
}

// Unexpected messages are counted once, and their peak is recorded.
func TestUnexpectedPeak(t *testing.T) {
	m := New(Config{}, nil)
	var held []*Msg
	for _, n := range []int{100, 300} {
		m.keepEager(&Link{}, pattern{1, 0, int32(n)}, 0, 0, n, make([]byte, n), false, 0)
		held = append(held, m.Take(1, 0, int32(n)))
	}
	for _, g := range held {
		m.putMsg(g)
	}
	m.keepEager(&Link{}, pattern{1, 0, 7}, 0, 0, 50, make([]byte, 50), false, 0)
	f := m.Footprint(func(func(*Link)) {})
	if m.kept.bytes != 50 || f.UnexpectedPeak != 400 {
		t.Errorf("%d bytes wait and at most %d did, want 50 and 400", m.kept.bytes, f.UnexpectedPeak)
	}
	if f.Matching == 0 || f.Operations == 0 {
		t.Errorf("the envelopes and the free message take memory: %+v", f)
	}
}
