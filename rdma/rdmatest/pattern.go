package rdmatest

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// generator is a small random number generator (splitmix64): the same numbers
// on every machine and in every release of Go.
type generator uint64

const golden = 0x9E3779B97F4A7C15

func (g *generator) next() uint64 {
	*g += golden
	return scramble(uint64(*g))
}

func scramble(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// below returns a number in [0, n).
func (g *generator) below(n int) int { return int(g.next() % uint64(n)) }

// fill writes bytes that depend on the seed alone. No two places of a pattern
// look alike, so a piece that is missing, doubled or moved is seen.
func fill(b []byte, seed uint64) {
	for ; len(b) >= 8; b = b[8:] {
		seed += golden
		binary.LittleEndian.PutUint64(b, scramble(seed))
	}
	last := scramble(seed + golden)
	for i := range b {
		b[i] = byte(last >> (8 * i))
	}
}

func spoil(b []byte) { paint(b, spoilt) }

// paint fills b with one value, doubling what is there: the race detector looks
// at every store, so a loop over bytes would take most of a test's time.
func paint(b []byte, value byte) {
	if len(b) == 0 {
		return
	}
	b[0] = value
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// differ reports where got is not what it should be, or nil.
func differ(got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d bytes instead of %d", len(got), len(want))
	}
	first, count := -1, 0
	for i := range got {
		if got[i] != want[i] {
			if first < 0 {
				first = i
			}
			count++
		}
	}
	return fmt.Errorf("%d of %d bytes are wrong, the first is byte %d: %#02x instead of %#02x", count, len(got), first, got[first], want[first])
}

// guarded is memory with a fence before and behind it.
type guarded struct {
	all, mem []byte
	before   []byte // what all looked like at the last mark
}

const fence = 96

// newGuarded makes size bytes at an address that is skew past a multiple of 8,
// filled by seed, between fences.
func newGuarded(size, skew int, seed uint64) *guarded {
	g := &guarded{all: make([]byte, fence+skew+size+fence)}
	g.mem = g.all[fence+skew : fence+skew+size : fence+skew+size]
	fill(g.all, seed)
	g.mark()
	return g
}

// mark takes the present contents as right.
func (g *guarded) mark() { g.before = append(g.before[:0], g.all...) }

// changedOnly checks that nothing but [lo, hi) has changed since mark, and that
// those bytes are now want.
func (g *guarded) changedOnly(lo, hi int, want []byte) error {
	at := len(g.all) - fence - len(g.mem)
	if err := differ(g.mem[lo:hi], want); err != nil {
		return err
	}
	if err := differ(g.all[:at+lo], g.before[:at+lo]); err != nil {
		return fmt.Errorf("memory before the piece was touched: %w", err)
	}
	if err := differ(g.all[at+hi:], g.before[at+hi:]); err != nil {
		return fmt.Errorf("memory behind the piece was touched: %w", err)
	}
	return nil
}

// unchanged checks that nothing has changed since mark.
func (g *guarded) unchanged() error { return g.changedOnly(0, 0, nil) }
