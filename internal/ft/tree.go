package ft

import "slices"

// Set is a set of ranks in increasing order. It is immutable.
type Set []int32

// Has reports whether a rank is in the set.
func (s Set) Has(rank int32) bool {
	_, found := slices.BinarySearch(s, rank)
	return found
}

// Add returns the set with one rank more.
func (s Set) Add(rank int32) Set {
	i, found := slices.BinarySearch(s, rank)
	if found {
		return s
	}
	t := make(Set, 0, len(s)+1)
	return append(append(append(t, s[:i]...), rank), s[i:]...)
}

// Union returns the ranks of both sets. It returns s itself if that has all of them.
func (s Set) Union(t Set) Set {
	if len(t) == 0 || len(s) == len(t) && &s[0] == &t[0] {
		return s
	}
	more := 0
	for i, j := 0, 0; j < len(t); j++ {
		for i < len(s) && s[i] < t[j] {
			i++
		}
		if i == len(s) || s[i] != t[j] {
			more++
		}
	}
	if more == 0 {
		return s
	}
	u := make(Set, 0, len(s)+more)
	i := 0
	for _, r := range t {
		for i < len(s) && s[i] < r {
			u, i = append(u, s[i]), i+1
		}
		if i < len(s) && s[i] == r {
			i++
		}
		u = append(u, r)
	}
	return append(u, s[i:]...)
}

// sort returns the ranks of a list in increasing order, as a set.
func (s Set) sort() Set {
	if len(s) == 0 {
		return nil
	}
	t := slices.Clone(s)
	slices.Sort(t)
	return t
}

// The tree has the ranks in the order of a heap: the children of rank r are the next
// ranks after arity·r. A rank takes the children of a child that has failed. Ranks above
// which no rank is alive are children of the root, the lowest rank alive.

// root returns the lowest rank that is not in failed.
func root(failed Set) int32 {
	r := int32(0)
	for int(r) < len(failed) && failed[r] == r {
		r++
	}
	return r
}

// parentOf returns the parent of a rank, or -1 for the root.
func parentOf(rank, arity int32, failed Set) int32 {
	for r := rank; r > 0; {
		r = (r - 1) / arity
		if !failed.Has(r) {
			return r
		}
	}
	if top := root(failed); top != rank {
		return top
	}
	return -1
}

// childrenOf appends the children of a rank.
func childrenOf(rank, n, arity int32, failed Set, to []int32) []int32 {
	to = appendBelow(rank, n, arity, failed, to)
	if rank == root(failed) && rank != 0 {
		to = appendBelow(0, n, arity, failed, to)
		to = slices.DeleteFunc(to, func(r int32) bool { return r == rank })
	}
	return to
}

// appendBelow appends the first ranks alive below a rank.
func appendBelow(rank, n, arity int32, failed Set, to []int32) []int32 {
	for c := int64(rank)*int64(arity) + 1; c <= int64(rank+1)*int64(arity) && c < int64(n); c++ {
		if failed.Has(int32(c)) {
			to = appendBelow(int32(c), n, arity, failed, to)
		} else {
			to = append(to, int32(c))
		}
	}
	return to
}
