package sim

import (
	"cmp"
	"math"
	"slices"
)

// Ranked is a simulated time of an algorithm. Position is its position among the others: 1 for
// the fastest, and for all that the error of the simulation does not tell from it.
type Ranked struct {
	Name     string
	Micros   float64
	Position int
}

// Rank sorts times and assigns positions. Two times within the relative error of each other
// have the same position. Without a known error there is no ranking: all positions are 0.
func Rank(list []Ranked, relative float64) []Ranked {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Ranked) int { return cmp.Compare(a.Micros, b.Micros) })
	position, from := 1, 0
	for i := range list {
		if relative <= 0 {
			list[i].Position = 0
			continue
		}
		if list[i].Micros > list[from].Micros*(1+relative) {
			position, from = i+1, i
		}
		list[i].Position = position
	}
	return list
}

// Kendall returns the rank correlation of two series (Kendall 1938, τ-b): 1 if they have
// the same order, -1 if the opposite one. Pairs within the relative margin of each other in
// a are ties in a.
func Kendall(a, b []float64, margin float64) float64 {
	var same, tiesA, tiesB, pairs float64
	for i := range a {
		for j := range i {
			pairs++
			tieA := max(a[i], a[j]) <= min(a[i], a[j])*(1+margin)
			tieB := b[i] == b[j]
			switch {
			case tieA || tieB:
			case (a[i] < a[j]) == (b[i] < b[j]):
				same++
			default:
				same--
			}
			if tieA {
				tiesA++
			}
			if tieB {
				tiesB++
			}
		}
	}
	if pairs == tiesA || pairs == tiesB {
		return 0
	}
	return same / math.Sqrt((pairs-tiesA)*(pairs-tiesB))
}

// MedianError returns the median of |b-a|/a.
func MedianError(a, b []float64) float64 {
	if len(a) == 0 {
		return 0
	}
	list := make([]float64, len(a))
	for i := range a {
		list[i] = max(b[i]-a[i], a[i]-b[i]) / a[i]
	}
	slices.Sort(list)
	return list[len(list)/2]
}
