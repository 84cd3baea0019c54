//go:build !race

package crc32c

import (
	"math/bits"
	"testing"
)

// widths returns all that this processor supports.
func widths() []width {
	all := []width{plain}
	for _, w := range []width{vectors128, vectors256, vectors512} {
		if w <= best {
			all = append(all, w)
		}
	}
	return all
}

// TestFactors derives the factors from the polynomial.
func TestFactors(t *testing.T) {
	const p = 0x1EDC6F41 // CRC-32C without x^32, the highest power first
	power := func(n int) uint64 {
		r := uint32(1)
		for range n {
			carry := r >> 31
			r = r<<1 ^ carry*p
		}
		return bits.Reverse64(uint64(r))
	}
	distances := []int{2048, 1024, 512, 384, 256, 128}
	if len(factors) != 2*len(distances)+2 {
		t.Fatalf("%d factors", len(factors))
	}
	for i, d := range distances {
		if factors[2*i] != power(d+63) || factors[2*i+1] != power(d-1) {
			t.Errorf("distance %d: %016x, %016x, want %016x, %016x", d, factors[2*i], factors[2*i+1], power(d+63), power(d-1))
		}
	}
	if factors[12] != 0 || factors[13] != 0 {
		t.Error("the last lane has factors")
	}
}
