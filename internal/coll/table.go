package coll

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/internal/sched"
)

// The table of all algorithms (rows in kinds.go): which of them are applicable to a call, and
// how a row builds a graph.

// byKind has the algorithms, kind by kind.
var byKind = split(rows)

func pointers(families ...[]Algorithm) []*Algorithm {
	var all []*Algorithm
	for _, family := range families {
		for i := range family {
			all = append(all, &family[i])
		}
	}
	return all
}

func split(all []*Algorithm) (by [kinds][]*Algorithm) {
	for _, a := range all {
		by[a.Kind] = append(by[a.Kind], a)
	}
	return by
}

// Algorithms returns the whole table, always in the same order.
func Algorithms() []Algorithm {
	all := make([]Algorithm, len(rows))
	for i, a := range rows {
		all[i] = *a
	}
	return all
}

// AlgorithmsOf returns the algorithms of one kind. They are shared and must not be modified.
func AlgorithmsOf(kind Kind) []*Algorithm { return slices.Clone(byKind[kind]) }

// Find returns the algorithm with a name. It is shared and must not be modified.
func Find(kind Kind, name string) (*Algorithm, error) {
	for _, a := range byKind[kind] {
		if a.Name == name {
			return a, nil
		}
	}
	return nil, fmt.Errorf("%s has no algorithm %q; it has %s", kind, name, strings.Join(algorithmNames(kind), ", "))
}

func algorithmNames(kind Kind) []string {
	var list []string
	for _, a := range byKind[kind] {
		list = append(list, a.Name)
	}
	return list
}

// Default returns the default parameters of an algorithm.
func (a *Algorithm) Default() []int {
	params := make([]int, len(a.Params))
	for i, p := range a.Params {
		params[i] = p.Values[0]
	}
	return params
}

// Applicable reports whether an algorithm is applicable to a call, and if not, why. All
// ranks of the call get the same result: InPlace, which may differ, matters only for
// Neighbors, which MPI does not define in place.
func Applicable(a *Algorithm, s *Shape) (ok bool, why string) {
	n := &a.Needs
	switch {
	case a.Kind != s.Kind:
		return false, "it is for another collective"
	case s.Size < n.MinRanks:
		return false, "there are too few ranks"
	case n.PowerOfTwo && s.Size&(s.Size-1) != 0:
		return false, "the number of ranks is no power of two"
	case n.Even && s.Size%2 != 0:
		return false, "the number of ranks is odd"
	case n.Commutes && !s.Commutes:
		return false, "the reduction does not commute"
	case n.Regular && (s.Send.irregular() || s.Recv.irregular()):
		return false, "the blocks have different lengths"
	case n.NotInPlace && s.InPlace:
		return false, "the call is in place"
	case n.Nodes && s.Nodes == nil:
		return false, "all ranks are on one node"
	case n.Lengths && (s.Send.irregular() || s.Recv.irregular()) && s.Carried == nil:
		return false, "ranks do not know the lengths of the blocks that they would hand on"
	case n.WholeBlocks && s.Bytes < s.Size*max(s.Elem, 1):
		return false, "there are fewer elements than ranks"
	}
	return true, ""
}

// SegmentForm returns the form of the algorithm whose node phases are in a segment, or nil
// if there is none. The size of a graph's shared buffer may exceed SharedLimit.
func (a *Algorithm) SegmentForm() *Algorithm {
	if a.InSegment == nil {
		return nil
	}
	form := *a
	form.Build = a.InSegment
	return &form
}

// Graph builds the graph of rank s.Rank. It returns an error if the algorithm is not
// applicable. The Builder may be reused.
func (a *Algorithm) Graph(b *sched.Builder, s *Shape, params []int) (*sched.Graph, error) {
	if ok, why := Applicable(a, s); !ok {
		return nil, fmt.Errorf("%s by %s among %d ranks is not possible: %s; choose another of %s",
			s.Kind, a.Name, s.Size, why, strings.Join(algorithmNames(s.Kind), ", "))
	}
	if len(params) != len(a.Params) {
		return nil, fmt.Errorf("%s by %s has %d parameters, not %d", a.Kind, a.Name, len(a.Params), len(params))
	}
	for i, v := range params {
		if v < 1 {
			return nil, fmt.Errorf("%s by %s: %s is %d; want at least 1, such as one of %v",
				a.Kind, a.Name, a.Params[i].Name, v, a.Params[i].Values)
		}
	}
	b.Reset(s.Rank, s.Size)
	if a.Generates(s) {
		a.Generate(b, s, params, generateWindow)
	} else {
		a.Build(b, s, params)
	}
	g, err := b.Graph()
	if err != nil {
		return nil, fmt.Errorf("%s by %s among %d ranks, on rank %d: %w", a.Kind, a.Name, s.Size, s.Rank, err)
	}
	return g, nil
}
