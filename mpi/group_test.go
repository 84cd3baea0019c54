package mpi_test

// Groups against a naive model: lists of ranks (MPI-4.1 section 7.3.2).

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// members returns a group as a list of ranks of the world.
func members(t *testing.T, g, world *mpi.Group) []int {
	t.Helper()
	all := make([]int, g.Size())
	for i := range all {
		all[i] = i
	}
	out, err := g.Translate(all, world)
	noError(t, err, "Translate")
	return out
}

func wantMembers(t *testing.T, what string, g, world *mpi.Group, me int, want []int) {
	t.Helper()
	if got := members(t, g, world); !slices.Equal(got, want) {
		t.Fatalf("%s has the ranks %v, want %v", what, got, want)
	}
	rank := slices.Index(want, me)
	if rank < 0 {
		rank = mpi.Undefined
	}
	if g.Rank() != rank {
		t.Fatalf("%s: the caller is %d in %v, want %d", what, g.Rank(), want, rank)
	}
}

func TestGroupsAgainstLists(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 5, 8}, func(t *testing.T, c *mpi.Comm) {
		world := c.Group()
		rng := rand.New(rand.NewPCG(1, uint64(c.Size())))
		some := func() (*mpi.Group, []int) {
			list := rng.Perm(c.Size())[:rng.IntN(c.Size()+1)]
			g, err := world.Include(list...)
			noError(t, err, "Include")
			return g, list
		}
		for range 200 {
			a, as := some()
			b, bs := some()
			var union, both, only []int
			for _, r := range as {
				union = append(union, r)
				if slices.Contains(bs, r) {
					both = append(both, r)
				} else {
					only = append(only, r)
				}
			}
			for _, r := range bs {
				if !slices.Contains(as, r) {
					union = append(union, r)
				}
			}
			wantMembers(t, "Include", a, world, c.Rank(), as)
			wantMembers(t, fmt.Sprintf("%v ∪ %v", as, bs), a.Union(b), world, c.Rank(), union)
			wantMembers(t, fmt.Sprintf("%v ∩ %v", as, bs), a.Intersection(b), world, c.Rank(), both)
			wantMembers(t, fmt.Sprintf("%v ∖ %v", as, bs), a.Difference(b), world, c.Rank(), only)
			rest, err := world.Exclude(as...)
			noError(t, err, "Exclude")
			var outside []int
			for r := range c.Size() {
				if !slices.Contains(as, r) {
					outside = append(outside, r)
				}
			}
			wantMembers(t, fmt.Sprintf("all but %v", as), rest, world, c.Rank(), outside)

			want := mpi.Unequal
			if slices.Equal(as, bs) {
				want = mpi.Identical
			} else if slices.Equal(slices.Sorted(slices.Values(as)), slices.Sorted(slices.Values(bs))) {
				want = mpi.Similar
			}
			if got := a.Compare(b); got != want {
				t.Fatalf("Compare of %v and %v gives %d, want %d", as, bs, got, want)
			}
			tr, err := world.Translate([]int{0, mpi.ProcNull, c.Size() - 1}, a)
			noError(t, err, "Translate")
			for i, r := range []int{0, mpi.ProcNull, c.Size() - 1} {
				w := slices.Index(as, r)
				if r == mpi.ProcNull {
					w = mpi.ProcNull
				} else if w < 0 {
					w = mpi.Undefined
				}
				if tr[i] != w {
					t.Fatalf("rank %d of the world is %d in %v, want %d", r, tr[i], as, w)
				}
			}
		}
	})
}

func TestGroupRanges(t *testing.T) {
	mpitest.Run(t, 8, func(t *testing.T, c *mpi.Comm) {
		world := c.Group()
		for _, k := range []struct {
			ranges []mpi.Range
			want   []int
		}{
			{[]mpi.Range{{0, 7, 1}}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
			{[]mpi.Range{{6, 0, -2}}, []int{6, 4, 2, 0}},
			{[]mpi.Range{{1, 6, 3}, {7, 7, 5}}, []int{1, 4, 7}},
			{[]mpi.Range{{5, 4, 1}}, nil},
			{[]mpi.Range{{1, 5, math.MaxInt}}, []int{1}}, // First + Stride is not an int
			{[]mpi.Range{{6, 0, math.MinInt}}, []int{6}},
		} {
			g, err := world.IncludeRanges(k.ranges...)
			noError(t, err, "IncludeRanges")
			wantMembers(t, fmt.Sprint(k.ranges), g, world, c.Rank(), k.want)
			rest, err := world.ExcludeRanges(k.ranges...)
			noError(t, err, "ExcludeRanges")
			if rest.Size() != 8-len(k.want) || rest.Intersection(g).Size() != 0 {
				t.Errorf("all but %v has the ranks %v", k.ranges, members(t, rest, world))
			}
		}
		_, err := world.IncludeRanges(mpi.Range{First: 0, Last: 3, Stride: 0})
		wantClass(t, err, mpi.ErrArg, "a stride of 0")
		// The first rank that does not exist ends it: listing all would take hours.
		for _, ranges := range [][]mpi.Range{{{0, math.MaxInt, 1}}, {{7, math.MinInt, -1}}, {{-1, 3, 1}}, {{0, 7, 1}, {0, 7, 1}}} {
			_, err = world.IncludeRanges(ranges...)
			wantClass(t, err, mpi.ErrRank, fmt.Sprint("IncludeRanges of ", ranges))
			_, err = world.ExcludeRanges(ranges...)
			wantClass(t, err, mpi.ErrRank, fmt.Sprint("ExcludeRanges of ", ranges))
		}
		for _, ranks := range [][]int{{8}, {-1}, {1, 1}} {
			_, err = world.Include(ranks...)
			wantClass(t, err, mpi.ErrRank, fmt.Sprint("Include of ", ranks))
			_, err = world.Exclude(ranks...)
			wantClass(t, err, mpi.ErrRank, fmt.Sprint("Exclude of ", ranks))
		}
		_, err = world.Translate([]int{8}, world)
		wantClass(t, err, mpi.ErrRank, "Translate of rank 8")
	})
}
