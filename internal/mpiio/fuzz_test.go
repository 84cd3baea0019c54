package mpiio

import (
	"math"
	"testing"

	"github.com/muster-mpi/muster/internal/dtype"
)

// FuzzViews decodes a view as another rank sends it, and checks a plan for a request of it: the parts of the
// request in the windows of all domains follow each other, are in their windows, and overlap nothing.
func FuzzViews(f *testing.F) {
	ok := must(f)
	four := ok(dtype.Basic(4, 4))
	for _, l := range []*dtype.Layout{four, ok(dtype.Vector(3, 2, 5, four)), ok(dtype.Hindexed([]int64{1, 3}, []int64{2, 9}, ok(dtype.Basic(1, 1)))),
		ok(dtype.Resized(four, 0, 64)), ok(dtype.IndexedBlock(1, []int64{3, 3}, four)), ok(dtype.Contiguous(0, four))} {
		v, err := NewView(7, l)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(v.Append(nil), int64(5), int64(100), int64(33), uint8(2))
	}
	// 2^52 pieces in 16 bytes.
	f.Add([]byte("00\x010\x92\x92\x92\x92\x92\x92\x92\x100\x00\x002"), int64(-56), int64(1), int64(131), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, pos, n, window int64, aggregators uint8) {
		v, err := Decode(b)
		if err != nil || v.Empty() {
			return
		}
		pos, n, window = pos&(1<<20-1), 1+n&(1<<10-1), 1+window&(1<<12-1)
		q := Request{View: v, Pos: pos, N: n}
		lo, hi := q.Bounds()
		if v.Pieces(n) < 1 || v.IsFine() && v.IsAlone() {
			t.Fatalf("%d pieces, fine %v, alone %v", v.Pieces(n), v.IsFine(), v.IsAlone())
		}
		if lo == math.MaxInt64 || hi == math.MinInt64 || v.IsAlone() || hi-lo > 1<<20 {
			return // moveAlone refuses it, or it is never exchanged, or the plan has too many windows for a test
		}
		ranks := make([]int, 1+aggregators%8)
		parts := Divide(lo, hi, 64, ranks)
		at, end := pos, lo
		for _, d := range parts {
			for k := range (d.Hi - d.Lo + window - 1) / window {
				from, to := d.Window(k, window)
				part := q.ClipTo(from, to)
				if part.N > 0 && part.Pos != at {
					t.Fatalf("the part in [%d, %d) begins at position %d, after %d", from, to, part.Pos, at)
				}
				at += part.N
				for off, k := range v.Extents(part.Pos, part.N) {
					if off < end || off < from || k < 1 || off+k > to {
						t.Fatalf("a piece [%d, %d) in the window [%d, %d), after %d", off, off+k, from, to, end)
					}
					end = off + k
				}
			}
		}
		if at != pos+n {
			t.Fatalf("the parts have %d of %d bytes", at-pos, n)
		}
	})
}
