package dtype

import (
	"slices"
	"testing"
)

// owner returns the process that has an index of a dimension (MPI-4.1 section 5.1.4).
func (d Distribution) owner(index int64) int64 { return index / d.Block % d.Procs }

func TestDarray(t *testing.T) {
	base, err := Basic(4, 4)
	if err != nil {
		t.Fatal(err)
	}
	grids := [][]Distribution{
		{{Size: 10, Block: 10, Procs: 1}},
		{{Size: 10, Block: 4, Procs: 3}},
		{{Size: 10, Block: 1, Procs: 3}},
		{{Size: 11, Block: 2, Procs: 3}},
		{{Size: 2, Block: 5, Procs: 2}},
		{{Size: 3, Block: 1, Procs: 5}},
		{{Size: 5, Block: 2, Procs: 2}, {Size: 7, Block: 3, Procs: 2}},
		{{Size: 4, Block: 1, Procs: 2}, {Size: 3, Block: 3, Procs: 1}, {Size: 5, Block: 2, Procs: 2}},
	}
	for _, dims := range grids {
		total, procs := int64(1), int64(1)
		for _, d := range dims {
			total, procs = total*d.Size, procs*d.Procs
		}
		for rank := range procs {
			rest := rank
			for i := len(dims) - 1; i >= 0; i-- {
				dims[i].Coord, rest = rest%dims[i].Procs, rest/dims[i].Procs
			}
			l, err := Darray(dims, base)
			if err != nil {
				t.Fatalf("%+v: %v", dims, err)
			}
			if l.LowerBound() != 0 || l.Extent() != 4*total {
				t.Errorf("%+v: bounds %d, %d; want 0, %d", dims, l.LowerBound(), l.Extent(), 4*total)
			}
			var want []int64
			for at := range total {
				rest, mine := at, true
				for i := len(dims) - 1; i >= 0; i-- {
					mine = mine && dims[i].owner(rest%dims[i].Size) == dims[i].Coord
					rest /= dims[i].Size
				}
				if mine {
					want = append(want, 4*at)
				}
			}
			v, err := l.View(make([]byte, 4*total), 0, 1)
			if err != nil {
				t.Fatalf("%+v: %v", dims, err)
			}
			var got []int64
			for off, n := range v.Segments(0, v.Len()) {
				for ; n > 0; off, n = off+4, n-4 {
					got = append(got, off)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%+v: offsets %v, want %v", dims, got, want)
			}
		}
	}
}

func TestDarrayRejects(t *testing.T) {
	base, err := Basic(4, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, dims := range [][]Distribution{
		nil,
		{{Size: 0, Block: 1, Procs: 1}},
		{{Size: 1, Block: 0, Procs: 1}},
		{{Size: 1, Block: 1, Procs: 2, Coord: 2}},
		{{Size: 1 << 40, Block: 1, Procs: 1}, {Size: 1 << 40, Block: 1, Procs: 1}},
	} {
		if _, err := Darray(dims, base); err == nil {
			t.Errorf("Darray(%+v) is accepted", dims)
		}
	}
	if _, err := Darray([]Distribution{{Size: 1, Block: 1, Procs: 1}}, nil); err == nil {
		t.Error("a nil base is accepted")
	}
}

func TestMarkers(t *testing.T) {
	base, err := Basic(4, 4)
	if err != nil {
		t.Fatal(err)
	}
	one := []int64{1, 1, 1}
	tests := []struct {
		name          string
		displs        []int64
		types         []*Layout
		lower, extent int64
	}{
		{"lower", []int64{-8, 4}, []*Layout{LowerMarker(), base}, -8, 16},
		{"upper", []int64{4, 20}, []*Layout{base, UpperMarker()}, 4, 16},
		{"both", []int64{-3, 4, 20}, []*Layout{LowerMarker(), base, UpperMarker()}, -3, 23},
		{"two of a kind", []int64{8, 2, 4}, []*Layout{LowerMarker(), LowerMarker(), base}, 2, 8},
		{"lower above the bytes", []int64{12, 4}, []*Layout{LowerMarker(), base}, 12, -4},
		{"nothing else", []int64{10}, []*Layout{LowerMarker()}, 10, -10},
	}
	for _, tt := range tests {
		l, err := Struct(one[:len(tt.types)], tt.displs, tt.types)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if l.LowerBound() != tt.lower || l.Extent() != tt.extent {
			t.Errorf("%s: lower bound %d, extent %d; want %d, %d", tt.name, l.LowerBound(), l.Extent(), tt.lower, tt.extent)
		}
	}
}
