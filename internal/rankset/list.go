package rankset

import (
	"slices"
	"sync"
)

// List is an immutable, ordered set of world ranks. A nil *List stands for 0, 1, 2 and so
// on, without an end. A List may be used by several goroutines.
type List struct {
	n           int
	first, step int     // of a sequence
	table       []int32 // nil: a sequence

	sort   sync.Once
	sorted []int32 // the indices of table in the order of its ranks; see Index
}

// Sequence returns the n ranks first, first+step, first+2*step and so on.
func Sequence(n, first, step int) *List { return &List{n: n, first: first, step: step} }

// Of returns the list of the given ranks, which are distinct. The list keeps the slice
// unless the ranks are a sequence.
func Of(table []int32) *List {
	l := &List{n: len(table), step: 1}
	if l.n > 0 {
		l.first = int(table[0])
	}
	if l.n > 1 {
		l.step = int(table[1]) - l.first
	}
	for i, r := range table {
		if l.At(i) != int(r) {
			l.table = table
			break
		}
	}
	return l
}

// Len returns the number of ranks. The list must not be nil.
func (l *List) Len() int { return l.n }

// At returns the i-th rank.
func (l *List) At(i int) int {
	switch {
	case l == nil:
		return i
	case l.table == nil:
		return l.first + i*l.step
	}
	return int(l.table[i])
}

// Identity reports whether the i-th rank is i for all ranks of the list.
func (l *List) Identity() bool {
	return l == nil || l.table == nil && l.first == 0 && (l.step == 1 || l.n < 2)
}

// fewRanks is the length up to which Index searches a table without sorting it.
const fewRanks = 16

// Index returns the index of a rank, or -1. The first call for a long table sorts it; all
// others take O(log n).
func (l *List) Index(rank int) int {
	switch {
	case l == nil:
		return rank
	case l.table == nil:
		if l.n == 0 || rank == l.first {
			return min(l.n, 1) - 1
		}
		if d := rank - l.first; l.step != 0 && d%l.step == 0 && d/l.step > 0 && d/l.step < l.n {
			return d / l.step
		}
		return -1
	case l.n <= fewRanks:
		return slices.Index(l.table, int32(rank))
	}
	l.sort.Do(func() {
		l.sorted = make([]int32, l.n)
		for i := range l.sorted {
			l.sorted[i] = int32(i)
		}
		slices.SortFunc(l.sorted, func(a, b int32) int { return int(l.table[a]) - int(l.table[b]) })
	})
	at, found := slices.BinarySearchFunc(l.sorted, rank, func(i int32, rank int) int { return int(l.table[i]) - rank })
	if !found {
		return -1
	}
	return int(l.sorted[at])
}

// Table returns the ranks as a slice, nil for a nil list.
func (l *List) Table() []int32 {
	switch {
	case l == nil:
		return nil
	case l.table != nil:
		return l.table
	}
	table := make([]int32, l.n)
	for i := range table {
		table[i] = int32(l.At(i))
	}
	return table
}

// Select returns the ranks of l at the given indices, which are a List themselves.
func (l *List) Select(indices *List) *List {
	if indices.table == nil && (l == nil || l.table == nil) {
		if l == nil {
			return indices
		}
		return Sequence(indices.n, l.At(indices.first), l.step*indices.step)
	}
	table := make([]int32, indices.n)
	for i := range table {
		table[i] = int32(l.At(indices.At(i)))
	}
	return Of(table)
}
