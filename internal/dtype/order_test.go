package dtype

import (
	"testing"

	"github.com/muster-mpi/muster/internal/seeded"
)

// TestOrder compares the order of random layouts with that of their pieces.
func TestOrder(t *testing.T) {
	random := seeded.Random(t)
	increasing, repeating := 0, 0
	for range 20000 {
		data := make([]byte, random.IntN(60))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		l, model, err := (&source{data}).layout(3)
		if err != nil || len(model.entries) > 500 || l.Size() == 0 {
			continue
		}
		want := Order{First: l.TrueLowerBound(), End: l.TrueLowerBound() + l.TrueExtent(), Increasing: true}
		last, end := int64(-1<<62), int64(-1<<62)
		sorted := true // by bytes, without any twice
		for off, n := range l.Segments(1) {
			want.Increasing = want.Increasing && off >= last
			want.Repeats = want.Repeats || off < end
			sorted = sorted && off >= end
			last, end = off, max(end, off+n)
		}
		got := l.Order()
		switch {
		case got.Increasing && (!want.Increasing || got.Repeats != want.Repeats || got.First != want.First || got.End != want.End):
			t.Fatalf("the order of %+v is %+v, want %+v", l, got, want)
		case !got.Increasing && sorted:
			t.Fatalf("the pieces of %+v are in order, and Order returns %+v", l, got)
		}
		if got.Increasing {
			increasing++
			if got.Repeats {
				repeating++
			}
		}
	}
	if increasing < 100 || repeating < 10 {
		t.Errorf("only %d increasing layouts, %d of them with a byte twice", increasing, repeating)
	}
}
