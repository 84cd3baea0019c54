package core

import (
	"slices"
	"testing"

	"github.com/muster-mpi/muster/internal/dtype"
)

// The memory of elements with gaps, as MPI_SHORT_INT, is whole elements.
func TestSpans(t *testing.T) {
	short, _ := dtype.Basic(2, 2)
	long, _ := dtype.Basic(4, 4)
	pair, err := dtype.Struct([]int64{1, 1}, []int64{0, 4}, []*dtype.Layout{short, long})
	if err != nil {
		t.Fatal(err)
	}
	every, err := dtype.Vector(2, 1, 2, pair)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		layout  *dtype.Layout
		count   int
		element *dtype.Layout
		want    []span
	}{
		{"none", long, 0, nil, nil},
		{"contiguous", long, 3, long, []span{{0, 12}}},
		{"pairs as bytes", pair, 1, nil, []span{{0, 2}, {4, 4}}},
		{"pairs", pair, 3, pair, []span{{0, 24}}},
		{"every second pair", every, 1, pair, []span{{0, 8}, {16, 8}}},
	} {
		if got := spans(nil, tt.layout, tt.count, tt.element); !slices.Equal(got, tt.want) {
			t.Errorf("%s: the spans are %v, want %v", tt.name, got, tt.want)
		}
	}
}
