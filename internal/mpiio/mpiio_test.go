package mpiio

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/internal/seeded"
)

func must(t testing.TB) func(*dtype.Layout, error) *dtype.Layout {
	return func(l *dtype.Layout, err error) *dtype.Layout {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

// randomView returns a view, and the offsets of its first n bytes.
func randomView(t testing.TB, random *rand.Rand, n int64) (View, []int64) {
	at, offs := int64(random.IntN(5)), []int64(nil)
	lens, displs := []int64{}, []int64{}
	for range 1 + random.IntN(5) {
		k := int64(1 + random.IntN(6))
		lens, displs = append(lens, k), append(displs, at)
		at += k + int64(random.IntN(4))
	}
	l := must(t)(dtype.Hindexed(lens, displs, must(t)(dtype.Basic(1, 1))))
	extent := at - displs[0] + int64(random.IntN(5))
	l = must(t)(dtype.Resized(l, 0, extent))
	disp := int64(random.IntN(50))
	for copies := int64(0); int64(len(offs)) < n; copies++ {
		for i := range lens {
			for b := range lens[i] {
				offs = append(offs, disp+copies*extent+displs[i]+b)
			}
		}
	}
	v, err := NewView(disp, l)
	if err != nil || v.IsAlone() {
		t.Fatalf("NewView(%d, %v %v, extent %d): %v, overlaps %v", disp, lens, displs, extent, err, v.IsAlone())
	}
	return v, offs[:n]
}

func TestViews(t *testing.T) {
	random := seeded.Random(t)
	const n = 200
	for range 500 {
		v, offs := randomView(t, random, n)
		v, err := Decode(v.Append(nil)) // as other ranks have it
		if err != nil {
			t.Fatal(err)
		}
		for pos, want := range offs {
			if got := v.OffsetOf(int64(pos)); got != want {
				t.Fatalf("position %d is at %d, want %d", pos, got, want)
			}
		}
		for off := range offs[n-1] + 1 {
			want, _ := slices.BinarySearch(offs, off)
			if got := v.CountBefore(off); got != int64(want) {
				t.Fatalf("%d bytes before %d, want %d; offsets %v", got, off, want, offs[:20])
			}
		}
		pos := int64(random.IntN(n))
		q := Request{v, pos, int64(random.IntN(n - int(pos)))}
		lo := offs[0] + int64(random.IntN(100))
		hi := lo + int64(random.IntN(100))
		var want []int64
		for _, off := range offs[q.Pos : q.Pos+q.N] {
			if off >= lo && off < hi {
				want = append(want, off)
			}
		}
		var got []int64
		for off, k := range v.Extents(q.ClipTo(lo, hi).Pos, q.ClipTo(lo, hi).N) {
			for b := range k {
				got = append(got, off+b)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("[%d, %d) of %d bytes from %d has %v, want %v", lo, hi, q.N, q.Pos, got, want)
		}
		if q.N > 0 {
			if lo, hi := q.Bounds(); lo != offs[q.Pos] || hi != offs[q.Pos+q.N-1]+1 {
				t.Fatalf("bounds [%d, %d), want [%d, %d]", lo, hi, offs[q.Pos], offs[q.Pos+q.N-1])
			}
		}
	}
}

func TestInvalidViews(t *testing.T) {
	four := must(t)(dtype.Basic(4, 4))
	for name, k := range map[string]struct {
		disp                    int64
		layout                  *dtype.Layout
		refused, alone, repeats bool
	}{
		"plain":              {0, four, false, false, false},
		"negative":           {-1, four, true, false, false},
		"backwards":          {0, must(t)(dtype.IndexedBlock(1, []int64{3, 0}, four)), true, false, false},
		"before the view":    {8, must(t)(dtype.IndexedBlock(1, []int64{-1, 0}, four)), true, false, false},
		"twice":              {0, must(t)(dtype.IndexedBlock(1, []int64{3, 3}, four)), false, true, true},
		"copies overlap":     {0, must(t)(dtype.Resized(four, 0, 2)), false, true, false},
		"copies interleaved": {0, must(t)(dtype.Resized(must(t)(dtype.Vector(2, 1, 4, four)), 0, 4)), false, true, false},
		"empty":              {0, must(t)(dtype.Contiguous(0, four)), false, false, false},
	} {
		v, err := NewView(k.disp, k.layout)
		if errors.Is(err, ErrView) != k.refused || v.IsAlone() != k.alone || v.Repeats() != k.repeats {
			t.Errorf("%s: error %v, alone %v, repeats %v; want refused %v, alone %v, repeats %v", name, err, v.IsAlone(), v.Repeats(), k.refused, k.alone, k.repeats)
		}
	}
	v, err := NewView(10, must(t)(dtype.Resized(four, 0, 1<<40)))
	if err != nil || v.OffsetOf(4<<30) != math.MaxInt64 || v.OffsetOf(4<<20) != 10+1<<60 {
		t.Errorf("positions beyond the largest offset: %v, %d, %d", err, v.OffsetOf(4<<30), v.OffsetOf(4<<20))
	}
}

func TestCover(t *testing.T) {
	random := seeded.Random(t)
	var c Cover
	for range 2000 {
		n := int64(1 + random.IntN(300))
		c.Reset(n)
		has := make([]bool, n)
		for range random.IntN(6) {
			off := int64(random.IntN(int(n)))
			k := int64(random.IntN(int(n-off) + 1))
			c.Add(off, k)
			for i := range k {
				has[off+i] = true
			}
		}
		got := make([]bool, n)
		end := int64(-1)
		for off, k := range c.Runs() {
			if off <= end || k < 1 {
				t.Fatalf("a run of %d bytes at %d follows one that ends at %d", k, off, end)
			}
			for i := range k {
				got[off+i] = true
			}
			end = off + k
		}
		if !slices.Equal(got, has) {
			t.Fatalf("runs %v, want %v", got, has)
		}
	}
}

// FuzzDomains checks that domains and their windows have every byte once.
func FuzzDomains(f *testing.F) {
	f.Add(int64(0), int64(100), int64(1), uint8(3), int64(10))
	f.Add(int64(4095), int64(10<<20), int64(4096), uint8(4), int64(1<<20))
	f.Fuzz(func(t *testing.T, lo, length, align int64, n uint8, window int64) {
		lo, length = lo&(1<<40-1), 1+length&(1<<26-1)
		align, window = 1+align&(1<<22-1), 1<<10+window&(1<<24-1)
		ranks := make([]int, 1+n%40)
		for i := range ranks {
			ranks[i] = 10 * i
		}
		parts := Divide(lo, lo+length, align, ranks)
		at := lo
		for i, d := range parts {
			if d.Lo != at || d.Hi <= d.Lo || i > 0 && d.Lo%align != 0 || d.Rank != ranks[i] {
				t.Fatalf("part %d of [%d, %d) in multiples of %d is %+v, after %d", i, lo, lo+length, align, d, at)
			}
			in := d.Lo
			for k := range Rounds(parts, window) {
				from, to := d.Window(k, window)
				if from != in || to < from || to-from > window {
					t.Fatalf("window %d of %+v is [%d, %d), after %d", k, d, from, to, in)
				}
				in = to
			}
			if in != d.Hi {
				t.Fatalf("the windows of %+v end at %d", d, in)
			}
			at = d.Hi
		}
		if at != lo+length {
			t.Fatalf("the parts of [%d, %d) end at %d", lo, lo+length, at)
		}
	})
}

func TestAggregators(t *testing.T) {
	nodes := []int{7, 7, 3, 7, 3, 5}
	for _, k := range []struct {
		each, limit int
		want        []int
	}{{1, 9, []int{0, 2, 5}}, {2, 9, []int{0, 2, 5, 1, 4}}, {6, 4, []int{0, 2, 5, 1}}} {
		if got := Aggregators(nodes, k.each, k.limit); !slices.Equal(got, k.want) {
			t.Errorf("%d of each node, at most %d: %v, want %v", k.each, k.limit, got, k.want)
		}
	}
}

func TestTogether(t *testing.T) {
	strided := func(rank, piece int64) Summary {
		return Summary{N: 100 * piece, Lo: rank * piece, Hi: rank*piece + 99*4*piece + piece, Pieces: 100}
	}
	terms := Terms{LongPiece: 4096}
	for name, k := range map[string]struct {
		terms Terms
		all   []Summary
		want  bool
	}{
		"short pieces":        {terms, []Summary{strided(0, 64), strided(1, 64)}, true},
		"long pieces":         {terms, []Summary{strided(0, 8192), strided(1, 8192)}, false},
		"one has long pieces": {terms, []Summary{strided(0, 8192), strided(1, 64)}, true},
		"contiguous":          {terms, []Summary{{N: 8, Hi: 8, Pieces: 1}, {N: 8, Lo: 8, Hi: 16, Pieces: 1}}, false},
		"far apart":           {terms, []Summary{{N: 100, Hi: 10000, Pieces: 10}}, false},
		"nothing":             {terms, []Summary{{}, {}}, false},
		"overlap":             {terms, []Summary{strided(0, 64), {N: 8, Hi: 8, Pieces: 8, View: Alone}}, false},
		"never":               {Terms{LongPiece: 4096, Never: true}, []Summary{strided(0, 64)}, false},
		"always":              {Terms{Always: true}, []Summary{{N: 8, Hi: 8, Pieces: 1}}, true},
	} {
		if got := k.terms.Together(k.all); got != k.want {
			t.Errorf("%s: %v, want %v", name, got, k.want)
		}
	}
}
