package longcopy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// The bytes before and after the destination, which a copy must not change.
const margin = 128

// memories returns random memory, and two equal memories of zeros.
func memories(n int) (from, to, want []byte) {
	from = make([]byte, n)
	random(from)
	return from, make([]byte, n), make([]byte, n)
}

func random(b []byte) {
	var seed [32]byte
	_, _ = rand.NewChaCha8(seed).Read(b) // never fails
}

// bothWays runs f with and without string instructions.
func bothWays(t *testing.T, f func(t *testing.T)) {
	t.Run("default", f)
	t.Run("ordinary", func(t *testing.T) {
		defer func(was bool) { fastStrings = was }(fastStrings)
		fastStrings = false
		f(t)
	})
}

// TestAlignments copies lengths on both sides of each limit between all alignments.
func TestAlignments(t *testing.T) {
	from, to, want := memories(stringEnd + 4*margin)
	bothWays(t, func(t *testing.T) {
		for _, limit := range []int{0, 2, Shortest, 3 * pieceBytes, 1 << 20, stringEnd} {
			for shift := range 66 {
				n := max(0, limit+shift%5-2)
				at, of := margin+shift, shift*37%66
				clear(to[:n+3*margin])
				clear(want[:n+3*margin])
				copy(want[at:at+n], from[of:])
				if got := Copy(to[at:at+n], from[of:of+n]); got != n || !bytes.Equal(to[:n+3*margin], want[:n+3*margin]) {
					t.Fatalf("copied %d of %d bytes from offset %d to %d, or not the same bytes as copy", got, n, of, at)
				}
			}
		}
	})
}

// TestShorterSide copies between slices of different lengths.
func TestShorterSide(t *testing.T) {
	for _, c := range []struct{ to, from int }{
		{0, 1 << 20}, {1 << 20, 0}, {Shortest - 1, 1 << 20}, {1 << 20, Shortest - 1},
		{Shortest, 1 << 20}, {1 << 20, Shortest}, {stringEnd + 1, stringEnd + 9}, {4 << 20, stringEnd + 1},
	} {
		from, to, want := memories(max(c.to, c.from))
		n := copy(want[:c.to], from[:c.from])
		if got := Copy(to[:c.to], from[:c.from]); got != n || !bytes.Equal(to, want) {
			t.Errorf("%d bytes to %d: copied %d, want %d, or not the same bytes as copy", c.from, c.to, got, n)
		}
	}
}

// TestOverlap moves memory by distances in both directions.
func TestOverlap(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		for _, n := range []int{Shortest, 1 << 20, stringEnd + 1} {
			for _, d := range []int{0, 1, 8, 63, 64, 4096, pieceBytes - 1, pieceBytes, pieceBytes + 1, n - 1, n, n + 1} {
				for _, c := range []struct{ to, from int }{{d, 0}, {0, d}} {
					start, to, want := memories(n + d)
					copy(to, start)
					copy(want, start)
					copy(want[c.to:c.to+n], want[c.from:c.from+n])
					if Copy(to[c.to:c.to+n], to[c.from:c.from+n]); !bytes.Equal(to, want) {
						t.Fatalf("%d bytes moved from %d to %d differ from the result of copy", n, c.from, c.to)
					}
				}
			}
		}
	})
}

// FuzzCopy copies within one memory, at any offsets.
func FuzzCopy(f *testing.F) {
	f.Add(uint32(0), uint32(0), uint32(Shortest), true)
	f.Add(uint32(1), uint32(pieceBytes), uint32(1<<20), true)
	f.Add(uint32(stringEnd), uint32(7), uint32(stringEnd), false)
	const most = 2 << 20
	start, mem, want := memories(2 * most)
	f.Fuzz(func(t *testing.T, to, from, n uint32, strings bool) {
		defer func(was bool) { fastStrings = was }(fastStrings)
		fastStrings = strings && fastStrings
		to, from, n = to%most, from%most, n%most
		copy(mem, start)
		copy(want, start)
		copy(want[to:to+n], want[from:from+n])
		if Copy(mem[to:to+n], mem[from:from+n]); !bytes.Equal(mem, want) {
			t.Fatalf("%d bytes from %d to %d differ from the result of copy", n, from, to)
		}
	})
}

// TestCopyAllocatesNothing checks both kinds of copies.
func TestCopyAllocatesNothing(t *testing.T) {
	from, to, _ := memories(2 << 20)
	for _, n := range []int{8, 1 << 20, 2 << 20} {
		if a := testing.AllocsPerRun(5, func() { Copy(to[:n], from[:n]) }); a != 0 {
			t.Errorf("a copy of %d bytes allocates %v times", n, a)
		}
	}
}

var sum byte

// BenchmarkCopy compares Copy with the built-in copy: the copy alone, and with a read of the
// destination.
func BenchmarkCopy(b *testing.B) {
	for _, n := range []int{64 << 10, 256 << 10, 1 << 20, 4 << 20} {
		from, to, _ := memories(n)
		for _, read := range []bool{false, true} {
			for _, c := range []struct {
				name string
				copy func(to, from []byte)
			}{
				{"builtin", func(to, from []byte) { copy(to, from) }},
				{"long", func(to, from []byte) { Copy(to, from) }},
			} {
				b.Run(fmt.Sprintf("%dK/read=%v/%s", n>>10, read, c.name), func(b *testing.B) {
					b.SetBytes(int64(n))
					for b.Loop() {
						c.copy(to, from)
						for i := 0; read && i < n; i += 64 {
							sum += to[i]
						}
					}
				})
			}
		}
	}
}
