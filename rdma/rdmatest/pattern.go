package rdmatest

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// generator is a small random number generator (splitmix64). It produces the same numbers
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

// intBelow returns a number in [0, n).
func (g *generator) intBelow(n int) int { return int(g.next() % uint64(n)) }

// fill writes bytes that depend only on the seed. All parts of a pattern differ, so a
// piece that is missing, duplicated or misplaced is detected.
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

// paint fills b with one value by doubling copies: the race detector instruments every
// store, so a loop over bytes would take most of a test's time.
func paint(b []byte, value byte) {
	if len(b) == 0 {
		return
	}
	b[0] = value
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// differ returns nil if got equals want, and otherwise an error that locates the
// difference.
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

// guarded is memory with a guard area before and after it.
type guarded struct {
	all, mem []byte
	before   []byte // contents of all at the last mark
}

const fence = 96

// newGuarded returns size bytes at an address that is skew past a multiple of 8, filled
// from seed, between guard areas.
func newGuarded(size, skew int, seed uint64) *guarded {
	g := &guarded{all: make([]byte, fence+skew+size+fence)}
	g.mem = g.all[fence+skew : fence+skew+size : fence+skew+size]
	fill(g.all, seed)
	g.mark()
	return g
}

// mark accepts the current contents as correct.
func (g *guarded) mark() { g.before = append(g.before[:0], g.all...) }

// changedOnly checks that only [lo, hi) has changed since mark, and that those bytes now
// equal want.
func (g *guarded) changedOnly(lo, hi int, want []byte) error {
	at := len(g.all) - fence - len(g.mem)
	if err := differ(g.mem[lo:hi], want); err != nil {
		return err
	}
	if err := differ(g.all[:at+lo], g.before[:at+lo]); err != nil {
		return fmt.Errorf("memory before the range was modified: %w", err)
	}
	if err := differ(g.all[at+hi:], g.before[at+hi:]); err != nil {
		return fmt.Errorf("memory after the range was modified: %w", err)
	}
	return nil
}

// checkUnchanged checks that nothing has changed since mark.
func (g *guarded) checkUnchanged() error { return g.changedOnly(0, 0, nil) }
