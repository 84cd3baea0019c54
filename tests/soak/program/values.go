package program

import (
	"encoding/binary"
	"math/rand/v2"
)

// mix returns a pseudo-random number derived from its arguments (a Weyl sequence with a
// finalizer like murmur's).
func mix(parts ...int) uint64 {
	x := uint64(0x9E3779B97F4A7C15)
	for _, p := range parts {
		x = (x ^ uint64(p)) * 0xD1B54A32D192ED03
		x ^= x >> 29
	}
	x *= 0xD6E8FEB86659FD93
	return x ^ x>>32
}

// key identifies the values of a step on a group.
func (r *run) key(g *group) int {
	return int(mix(int(r.cfg.Seed), r.generation, r.step, len(g.members), g.members[0]) >> 1)
}

// fill writes the bytes that belong to a number.
func fill(buf []byte, x uint64) {
	for len(buf) >= 8 {
		binary.LittleEndian.PutUint64(buf, x)
		buf, x = buf[8:], x*0x9E3779B97F4A7C15+1
	}
	for i := range buf {
		buf[i] = byte(x >> (8 * i))
	}
}

// guard is what a receive buffer has behind the message, and must still have afterwards.
const guard = 0xA5

// newBuffer returns a buffer of n bytes for a receive, with guards behind it.
func newBuffer(n int) []byte {
	buf := make([]byte, n+16)
	for i := range buf {
		buf[i] = guard
	}
	return buf
}

// checkBytes compares what was received into buf.
func checkBytes(buf []byte, got, want int, x uint64, what string) error {
	if got != want {
		return wrong("%s has %d bytes, want %d", what, got, want)
	}
	expected := make([]byte, want)
	fill(expected, x)
	if string(buf[:want]) != string(expected) {
		for i := range expected {
			if buf[i] != expected[i] {
				return wrong("%s of %d bytes differs from byte %d on: %#x, want %#x", what, want, i, buf[i:min(i+16, want)], expected[i:min(i+16, want)])
			}
		}
	}
	for i, b := range buf[want:] {
		if b != guard {
			return wrong("%s of %d bytes: byte %d behind it was changed to %#x", what, want, i, b)
		}
	}
	return nil
}

// size returns a random length: most are short, some are long.
func size(random *rand.Rand, largest int) int {
	switch random.IntN(12) {
	case 0:
		return random.IntN(largest + 1)
	case 1, 2:
		return min(random.IntN(100_000), largest)
	case 3, 4, 5:
		return min(random.IntN(10_000), largest)
	case 6:
		return 0
	}
	return min(random.IntN(300), largest)
}

// integer returns the element i that a rank contributes to a collective.
func integer(key, rank, i int) int64 { return int64(mix(key, rank, i) >> 8) }

func integers(key, rank, n int) []int64 {
	values := make([]int64, n)
	for i := range values {
		values[i] = integer(key, rank, i)
	}
	return values
}

func checkIntegers(got []int64, want func(i int) int64, what string) error {
	for i, v := range got {
		if w := want(i); v != w {
			return wrong("%s: element %d of %d is %d, want %d", what, i, len(got), v, w)
		}
	}
	return nil
}
