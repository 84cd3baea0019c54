package mpi

// Groups: ordered sets of world ranks (MPI-4.1 section 7.3). Group operations are
// local.

import (
	"fmt"

	"github.com/muster-mpi/muster/internal/rankset"
)

// Group is an immutable, ordered set of ranks.
type Group struct {
	list *rankset.List // world ranks; nil: 0 … n-1
	n    int
	rank int // of the caller in the group, or Undefined
}

// Size returns the number of ranks in the group.
func (g *Group) Size() int { return g.n }

// Rank returns the rank of the calling process in the group, or Undefined.
func (g *Group) Rank() int { return g.rank }

func (g *Group) world(i int) int { return g.list.At(i) }

// indexOf returns the group rank of a world rank, or Undefined.
func (g *Group) indexOf(world int) int {
	if i := g.list.Index(world); i >= 0 && i < g.n {
		return i
	}
	return Undefined
}

// me returns the world rank of the caller, or Undefined if it is not in g.
func (g *Group) me() int {
	if g.rank == Undefined {
		return Undefined
	}
	return g.world(g.rank)
}

func groupOf(ranks []int32, me int) *Group {
	g := &Group{list: rankset.Of(ranks), n: len(ranks), rank: Undefined}
	if me >= 0 {
		g.rank = g.indexOf(me)
	}
	return g
}

// either returns the world rank of the caller if it is in one of two groups.
func either(a, b *Group) int {
	if m := a.me(); m >= 0 {
		return m
	}
	return b.me()
}

// Union returns the ranks of g, followed by those of h that are not in g.
func (g *Group) Union(h *Group) *Group {
	out := make([]int32, 0, g.Size()+h.Size())
	for i := range g.Size() {
		out = append(out, int32(g.world(i)))
	}
	for i := range h.Size() {
		if g.indexOf(h.world(i)) < 0 {
			out = append(out, int32(h.world(i)))
		}
	}
	return groupOf(out, either(g, h))
}

// Intersection returns the ranks of g that are also in h, in the order of g.
func (g *Group) Intersection(h *Group) *Group {
	return g.filter(h, func(w int) bool { return h.indexOf(w) >= 0 })
}

// Difference returns the ranks of g that are not in h, in the order of g.
func (g *Group) Difference(h *Group) *Group {
	return g.filter(h, func(w int) bool { return h.indexOf(w) < 0 })
}

func (g *Group) filter(h *Group, keep func(world int) bool) *Group {
	var out []int32
	for i := range g.Size() {
		if w := g.world(i); keep(w) {
			out = append(out, int32(w))
		}
	}
	return groupOf(out, either(g, h))
}

// Include returns the given ranks of g, in the given order.
func (g *Group) Include(ranks ...int) (*Group, error) {
	out := make([]int32, 0, len(ranks))
	seen := make(map[int]bool, len(ranks))
	for _, r := range ranks {
		if r < 0 || r >= g.Size() || seen[r] {
			return nil, &Error{Class: ErrRank, Op: "Include", Peer: ProcNull, Tag: noTag,
				Err: fmt.Errorf("rank %d is not one of 0 to %d, or was given twice", r, g.Size()-1)}
		}
		seen[r] = true
		out = append(out, int32(g.world(r)))
	}
	return groupOf(out, g.me()), nil
}

// Exclude returns all ranks of g except the given ones.
func (g *Group) Exclude(ranks ...int) (*Group, error) {
	gone, err := g.Include(ranks...)
	if err != nil {
		err.(*Error).Op = "Exclude"
		return nil, err
	}
	return g.Difference(gone), nil
}

// Range is the ranks First, First+Stride, First+2*Stride and so on, up to Last.
type Range struct{ First, Last, Stride int }

// appendTo appends the ranks, which must be below size. It ends with the first that is not:
// the range may be very long.
func (r Range) appendTo(all []int, size int) ([]int, error) {
	if r.Stride == 0 {
		return nil, &Error{Class: ErrArg, Op: "Range", Peer: ProcNull, Tag: noTag, Err: fmt.Errorf("the stride is 0")}
	}
	if (r.Stride > 0 && r.First > r.Last) || (r.Stride < 0 && r.First < r.Last) {
		return all, nil
	}
	for i := r.First; ; i += r.Stride {
		if uint(i) >= uint(size) || len(all) == size {
			return nil, &Error{Class: ErrRank, Op: "Range", Peer: ProcNull, Tag: noTag,
				Err: fmt.Errorf("rank %d is not one of 0 to %d, or was given twice", i, size-1)}
		}
		all = append(all, i)
		// The differences are not negative and fit into an uint; i + Stride may not fit into an int.
		if r.Stride > 0 && uint(r.Last)-uint(i) < uint(r.Stride) || r.Stride < 0 && uint(i)-uint(r.Last) < -uint(r.Stride) {
			return all, nil
		}
	}
}

// IncludeRanges is [Group.Include] with ranges of ranks.
func (g *Group) IncludeRanges(ranges ...Range) (*Group, error) {
	all, err := g.expand(ranges)
	if err != nil {
		return nil, err
	}
	return g.Include(all...)
}

// ExcludeRanges is [Group.Exclude] with ranges of ranks.
func (g *Group) ExcludeRanges(ranges ...Range) (*Group, error) {
	all, err := g.expand(ranges)
	if err != nil {
		return nil, err
	}
	return g.Exclude(all...)
}

func (g *Group) expand(ranges []Range) (all []int, err error) {
	for _, r := range ranges {
		if all, err = r.appendTo(all, g.Size()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Translate returns the ranks in h of the given ranks of g, Undefined for those that
// are not in h.
func (g *Group) Translate(ranks []int, h *Group) ([]int, error) {
	out := make([]int, len(ranks))
	for i, r := range ranks {
		switch {
		case r == ProcNull:
			out[i] = ProcNull
		case r < 0 || r >= g.Size():
			return nil, &Error{Class: ErrRank, Op: "Translate", Peer: ProcNull, Tag: noTag,
				Err: fmt.Errorf("rank %d is not one of 0 to %d", r, g.Size()-1)}
		default:
			out[i] = h.indexOf(g.world(r))
		}
	}
	return out, nil
}

// Compare returns Identical, Similar (same ranks in another order) or Unequal.
func (g *Group) Compare(h *Group) Comparison {
	if g.Size() != h.Size() {
		return Unequal
	}
	same := true
	for i := range g.Size() {
		if g.world(i) != h.world(i) {
			same = false
			if h.indexOf(g.world(i)) < 0 {
				return Unequal
			}
		}
	}
	if same {
		return Identical
	}
	return Similar
}
