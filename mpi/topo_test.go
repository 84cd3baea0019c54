package mpi_test

// Grids and their arithmetic (MPI-4.1 section 8.5), against a naive computation of
// coordinates.

import (
	"fmt"
	"slices"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestDimsCreate(t *testing.T) {
	for _, k := range []struct {
		n    int
		dims []int
		want []int // nil: refused
	}{
		{6, []int{0, 0}, []int{3, 2}}, // the examples of MPI-4.1 section 8.5.2
		{7, []int{0, 0}, []int{7, 1}},
		{6, []int{0, 3, 0}, []int{2, 3, 1}},
		{7, []int{0, 3, 0}, nil},
		{12, []int{0, 0}, []int{4, 3}},
		{12, []int{0, 0, 0}, []int{3, 2, 2}},
		{1, []int{0, 0, 0}, []int{1, 1, 1}},
		{16, []int{0, 0, 0}, []int{4, 2, 2}},
		{72, []int{0, 0}, []int{9, 8}},
		{72, []int{0, 0, 0}, []int{6, 4, 3}},
		{60, []int{0, 0, 0}, []int{5, 4, 3}},
		{1 << 20, []int{0, 0, 0}, []int{128, 128, 64}},
		{735134400, []int{0, 0, 0, 0}, nil}, // only the product is looked at, below
		{10007, []int{0, 0}, []int{10007, 1}},
		{24, []int{4, 0, 2}, []int{4, 3, 2}},
		{24, []int{4, 3, 2}, []int{4, 3, 2}},
		{24, []int{4, 3, 1}, nil},
		{1, []int{}, []int{}},
		{2, []int{}, nil},
		{0, []int{0}, nil},
		{8, []int{-2, 0}, nil},
	} {
		got, err := mpi.DimsCreate(k.n, k.dims)
		if k.n == 735134400 {
			noError(t, err, "DimsCreate of a number with many divisors")
			if got[0]*got[1]*got[2]*got[3] != k.n || got[0]-got[3] > 15 {
				t.Errorf("DimsCreate(%d) = %v: not near to each other", k.n, got)
			}
			continue
		}
		if k.want == nil {
			wantClass(t, err, mpi.ErrDims, fmt.Sprintf("DimsCreate(%d, %v)", k.n, k.dims))
			continue
		}
		noError(t, err, "DimsCreate")
		if !slices.Equal(got, k.want) {
			t.Errorf("DimsCreate(%d, %v) = %v, want %v", k.n, k.dims, got, k.want)
		}
	}
}

// No other factors are closer to each other.
func TestDimsCreateIsBest(t *testing.T) {
	for n := 1; n <= 400; n++ {
		got, err := mpi.DimsCreate(n, []int{0, 0, 0})
		noError(t, err, "DimsCreate")
		if got[0]*got[1]*got[2] != n || got[0] < got[1] || got[1] < got[2] {
			t.Fatalf("DimsCreate(%d) = %v", n, got)
		}
		for a := 1; a <= n; a++ {
			for b := 1; n%a == 0 && b <= a && b <= n/a; b++ {
				if c := n / a / b; a*b*c == n && c <= b && a-c < got[0]-got[2] {
					t.Fatalf("DimsCreate(%d) = %v, but %d × %d × %d are nearer to each other", n, got, a, b, c)
				}
			}
		}
	}
}

// gridCase is a grid that fits some number of ranks.
type gridCase struct {
	dims    []int
	periods []bool
}

var gridCases = []gridCase{
	{[]int{}, nil},
	{[]int{1}, []bool{true}},
	{[]int{2}, []bool{true}},
	{[]int{2}, nil},
	{[]int{3}, []bool{true}},
	{[]int{1, 1}, []bool{true, false}},
	{[]int{2, 1}, []bool{true, true}},
	{[]int{2, 2}, []bool{false, true}},
	{[]int{3, 2}, []bool{true, false}},
	{[]int{2, 3}, nil},
	{[]int{1, 2, 3}, []bool{true, true, true}},
	{[]int{5}, nil},
}

func (g gridCase) size() int {
	n := 1
	for _, d := range g.dims {
		n *= d
	}
	return n
}

func (g gridCase) coords(rank int) []int {
	out := make([]int, len(g.dims))
	for i := range out {
		block := 1
		for _, d := range g.dims[i+1:] {
			block *= d
		}
		out[i] = rank / block % g.dims[i]
	}
	return out
}

// beside finds a rank by comparing coordinates with those of all ranks.
func (g gridCase) beside(rank, dim, steps int) int {
	at := g.coords(rank)
	at[dim] += steps
	if g.periods != nil && g.periods[dim] {
		for at[dim] < 0 {
			at[dim] += g.dims[dim]
		}
		at[dim] %= g.dims[dim]
	}
	for r := range g.size() {
		if slices.Equal(g.coords(r), at) {
			return r
		}
	}
	return mpi.ProcNull
}

func TestCart(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 3, 4, 6}, func(t *testing.T, c *mpi.Comm) {
		for _, k := range gridCases {
			if k.size() > c.Size() {
				_, err := c.CartCreate(k.dims, k.periods, nil)
				wantClass(t, err, mpi.ErrDims, "a grid larger than the communicator")
				continue
			}
			g, err := c.CartCreate(k.dims, k.periods, nil)
			noError(t, err, "CartCreate")
			newRank, err := c.CartMap(k.dims, k.periods, nil)
			noError(t, err, "CartMap")
			if c.Rank() >= k.size() {
				if g != nil || newRank != mpi.Undefined {
					t.Fatalf("rank %d has no place on %v but got %v, place %d", c.Rank(), k.dims, g, newRank)
				}
				continue
			}
			if g.Rank() != c.Rank() || g.Size() != k.size() || newRank != c.Rank() {
				t.Fatalf("grid %v: rank %d of %d (CartMap: %d), want %d of %d", k.dims, g.Rank(), g.Size(), newRank, c.Rank(), k.size())
			}
			checkGrid(t, g, k)
			d, err := g.Dup()
			noError(t, err, "Dup")
			if d.Compare(g.Comm) != mpi.Congruent {
				t.Error("the duplicate of a grid is not congruent to it")
			}
			checkGrid(t, d, k)
		}
	})
}

func checkGrid(t *testing.T, g *mpi.Cart, k gridCase) {
	t.Helper()
	if !slices.Equal(g.Dims(), k.dims) || len(g.Periods()) != len(k.dims) || !slices.Equal(g.MyCoords(), k.coords(g.Rank())) {
		t.Fatalf("grid %v: Dims %v, Periods %v, MyCoords %v", k.dims, g.Dims(), g.Periods(), g.MyCoords())
	}
	for r := range g.Size() {
		at, err := g.Coords(r)
		noError(t, err, "Coords")
		back, err := g.RankOf(at...)
		noError(t, err, "RankOf")
		if !slices.Equal(at, k.coords(r)) || back != r {
			t.Fatalf("grid %v: rank %d is at %v, where rank %d is", k.dims, r, at, back)
		}
	}
	var near []int
	for dim := range k.dims {
		for _, steps := range []int{1, -1, 0, 2, -5} {
			src, dst, err := g.Shift(dim, steps)
			noError(t, err, "Shift")
			if src != k.beside(g.Rank(), dim, -steps) || dst != k.beside(g.Rank(), dim, steps) {
				t.Fatalf("grid %v periodic %v: Shift(%d, %d) of rank %d gives %d and %d", k.dims, k.periods, dim, steps, g.Rank(), src, dst)
			}
			// The pair fits Sendrecv: what arrives is from the source, or nothing is.
			in := []int{-1}
			_, err = mpi.Sendrecv(g.Comm, []int{g.Rank()}, dst, 3, in, src, 3)
			noError(t, err, "Sendrecv along a dimension")
			if want := max(src, -1); in[0] != want {
				t.Fatalf("along dimension %d came %d, want %d", dim, in[0], want)
			}
		}
		near = append(near, k.beside(g.Rank(), dim, -1), k.beside(g.Rank(), dim, +1))
	}
	sources, dests := g.Neighborhood()
	if !slices.Equal(sources, near) || !slices.Equal(dests, near) {
		t.Fatalf("grid %v: the neighborhood is %v and %v, want %v", k.dims, sources, dests, near)
	}
}

func TestCartSub(t *testing.T) {
	mpitest.Sizes(t, []int{6}, func(t *testing.T, c *mpi.Comm) {
		g, err := c.CartCreate([]int{1, 3, 2}, []bool{true, false, true}, nil)
		noError(t, err, "CartCreate")
		for _, keep := range [][]bool{{false, true, false}, {false, false, true}, {true, true, true}, {false, false, false}, {true, false, true}} {
			s, err := g.Sub(keep)
			noError(t, err, "Sub")
			var dims, at []int
			for i, k := range keep {
				if k {
					dims, at = append(dims, g.Dims()[i]), append(at, g.MyCoords()[i])
				}
			}
			if !slices.Equal(s.Dims(), dims) || !slices.Equal(s.MyCoords(), at) {
				t.Fatalf("Sub(%v) at %v gives %v at %v, want %v at %v", keep, g.MyCoords(), s.Dims(), s.MyCoords(), dims, at)
			}
			// Its ranks have the same dropped coordinates.
			all := make([]int, s.Size())
			noError(t, mpi.Allgather(s.Comm, []int{g.Rank()}, all), "Allgather")
			for r, old := range all {
				where, _ := g.Coords(old)
				for i, k := range keep {
					if !k && where[i] != g.MyCoords()[i] {
						t.Fatalf("Sub(%v): rank %d is at %v, in another part than %v", keep, r, where, g.MyCoords())
					}
				}
			}
		}
		_, err = g.Sub([]bool{true})
		wantClass(t, err, mpi.ErrArg, "Sub with too few elements")
	})
}

func TestCartRefuses(t *testing.T) {
	mpitest.Run(t, 4, func(t *testing.T, c *mpi.Comm) {
		_, err := c.CartCreate([]int{2, 0}, nil, nil)
		wantClass(t, err, mpi.ErrDims, "a dimension of 0")
		_, err = c.CartCreate([]int{2, 2}, []bool{true}, nil)
		wantClass(t, err, mpi.ErrArg, "periods of another length")
		_, err = c.CartCreate([]int{1 << 40, 1 << 40}, nil, nil)
		wantClass(t, err, mpi.ErrDims, "a product that overflows")
		g, err := c.CartCreate([]int{2, 2}, []bool{false, true}, nil)
		noError(t, err, "CartCreate")
		if r, err := g.RankOf(1, -3); r != 3 || err != nil {
			t.Errorf("RankOf(1, -3) on a ring of 2 is %d, %v; want 3", r, err)
		}
		_, err = g.RankOf(2, 0)
		wantClass(t, err, mpi.ErrArg, "RankOf beyond the edge")
		_, err = g.RankOf(1)
		wantClass(t, err, mpi.ErrArg, "RankOf with one coordinate of two")
		_, err = g.Coords(4)
		wantClass(t, err, mpi.ErrRank, "Coords of a rank that is not there")
		_, err = g.Coords(mpi.ProcNull)
		wantClass(t, err, mpi.ErrRank, "Coords of ProcNull")
		_, _, err = g.Shift(2, 1)
		wantClass(t, err, mpi.ErrDims, "Shift in a dimension that is not there")
		for what, answer := range map[string][]int{
			"too short": {0, 1, 2}, "twice the same": {0, 1, 1, 2}, "out of range": {0, 1, 2, 4}, "too long": {0, 1, 2, 3, 0}, "nothing": nil,
		} {
			_, err = c.CartCreate([]int{2, 2}, nil, func(*mpi.Arrangement) []int { return answer })
			wantClass(t, err, mpi.ErrArg, "a Reorder that answers wrongly: "+what)
		}
		noError(t, g.Free(), "Free")
		_, err = g.CartCreate([]int{1}, nil, nil)
		wantClass(t, err, mpi.ErrComm, "CartCreate on a freed communicator")
	})
}
