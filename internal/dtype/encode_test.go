package dtype

import (
	"slices"
	"testing"

	"github.com/muster-mpi/muster/internal/seeded"
)

// pieces lists the pieces of a part of the stream of a layout.
func pieces(l *Layout, pos, n int64) (list []int64) {
	for off, k := range l.Stream(nil, 7).Segments(pos, n) {
		list = append(list, off, k)
	}
	return list
}

// TestDecodedLayouts checks that a decoded layout has the same bytes in the same order.
func TestDecodedLayouts(t *testing.T) {
	random := seeded.Random(t)
	for range 3000 {
		data := make([]byte, random.IntN(60))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		l, model, err := (&source{data}).layout(4)
		if err != nil || len(model.entries) > 2000 || l.Extent() < 0 {
			continue
		}
		again, err := Decode(l.Append(nil))
		if err != nil {
			t.Fatalf("%+v does not decode: %v", l, err)
		}
		if again.Size() != l.Size() || again.Extent() != l.Extent() || again.Blocks() != l.Blocks() ||
			l.Size() > 0 && (again.TrueExtent() != l.TrueExtent() || again.TrueLowerBound() != l.TrueLowerBound()) {
			t.Fatalf("%+v became %+v", l, again)
		}
		if n := 3 * l.Size(); !slices.Equal(pieces(again, n/5, n), pieces(l, n/5, n)) {
			t.Fatalf("the pieces of %+v became %v, want %v", l, pieces(again, n/5, n), pieces(l, n/5, n))
		}
	}
}

func FuzzDecode(f *testing.F) {
	base := must(f)(Basic(4, 4))
	f.Add(must(f)(Vector(3, 1, 5, base)).Append(nil))
	f.Add(must(f)(Indexed([]int64{1, 2, 4}, []int64{9, 0, 3}, base)).Append(nil))
	f.Add(must(f)(IndexedBlock(2, []int64{9, 0, 3}, must(f)(Vector(2, 1, 3, base)))).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := Decode(b)
		if err != nil {
			return
		}
		if l.Size() < 0 || l.Extent() < 0 || l.Blocks() < 0 || l.Size() > 0 && l.TrueExtent() < 1 {
			t.Fatalf("%v decodes as size %d, extent %d, %d blocks", b, l.Size(), l.Extent(), l.Blocks())
		}
		n := min(l.Size(), 1000)
		total := int64(0)
		for _, k := range l.Stream(nil, 0).Segments(l.Size()/2, n) {
			total += k
		}
		if total != n {
			t.Fatalf("%v has %d of %d bytes", b, total, n)
		}
	})
}

// TestLongStream lists a piece of so many elements that nobody could visit each.
func TestLongStream(t *testing.T) {
	const n = 1 << 60
	if got := pieces(must(t)(Basic(1, 1)), 5, n); !slices.Equal(got, []int64{12, n}) {
		t.Errorf("the pieces are %v, want one of %d bytes at 12", got, int64(n))
	}
}

// TestStreamInMemory packs a part of a stream that begins before the memory.
func TestStreamInMemory(t *testing.T) {
	four := must(t)(Basic(4, 4))
	for name, l := range map[string]*Layout{"contiguous": four, "gaps": must(t)(Resized(four, 0, 6))} {
		mem := []byte("0123456789abcdef")
		packed := make([]byte, 4)
		n := l.Stream(mem, -600).Pack(packed, 4*(600/l.Extent()))
		if n != 4 || string(packed) != "0123" {
			t.Errorf("%s: packed %q", name, packed[:n])
		}
		l.Stream(mem, -600).Unpack([]byte("WXYZ"), 4*(600/l.Extent()+1))
		if at := l.Extent(); string(mem[at:at+4]) != "WXYZ" {
			t.Errorf("%s: unpacked to %q", name, mem)
		}
	}
}
