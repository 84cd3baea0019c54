package mpi

import (
	"fmt"
	"slices"
)

// DimsCreate chooses the dimensions of a grid of n ranks (MPI-4.1 section 8.5.2). It keeps
// dimensions that are not 0 and replaces zeros so that the product is n and the dimensions
// are as close to each other as possible, the larger ones first. The result is a new
// slice:
//
//	dims, err := mpi.DimsCreate(world.Size(), []int{0, 0}) // 12 ranks: 4 × 3
func DimsCreate(n int, dims []int) ([]int, error) {
	refuse := func(format string, args ...any) ([]int, error) {
		return nil, &Error{Class: ErrDims, Op: "DimsCreate", Peer: ProcNull, Tag: noTag, Err: fmt.Errorf(format, args...)}
	}
	if n < 1 {
		return refuse("a grid needs at least one rank, not %d", n)
	}
	rest, free := n, 0
	for i, d := range dims {
		switch {
		case d < 0:
			return refuse("dimension %d is %d; use 0 for a dimension to be chosen", i, d)
		case d == 0:
			free++
		case rest%d != 0:
			return refuse("%d ranks cannot be laid out on %v: the given dimensions do not divide their number", n, dims)
		default:
			rest /= d
		}
	}
	if free == 0 {
		if rest != 1 {
			return refuse("%d ranks do not fill a grid of %v", n, dims)
		}
		return slices.Clone(dims), nil
	}
	s := factorSearch{divisors: divisorsOf(rest), chosen: make([]int, free)}
	s.descend(0, rest, rest)
	out := slices.Clone(dims)
	at := 0
	for i, d := range out {
		if d == 0 {
			out[i] = s.best[at]
			at++
		}
	}
	return out, nil
}

// factorSearch finds the factorization of a number into a given number of factors, largest
// first, whose largest and smallest factor differ least; of those, as in MPICH, the one whose
// largest factor is largest, then the one with the smallest sum, then the one whose next
// factors are largest. Distributing prime factors greedily would be faster, but wrong for
// many numbers.
type factorSearch struct {
	divisors []int // ascending
	chosen   []int
	best     []int
	spread   int // of best
	sum      int
}

// descend chooses factor i, at most top, of the remaining product.
func (s *factorSearch) descend(i, rest, top int) {
	left := len(s.chosen) - i
	if left == 1 {
		if rest <= top {
			s.chosen[i] = rest
			s.judge()
		}
		return
	}
	for _, d := range s.divisors {
		if d > top || d > rest {
			break
		}
		// d is the largest of the remaining factors.
		if rest%d != 0 || !reaches(d, left, rest) {
			continue
		}
		s.chosen[i] = d
		if s.hopeless(left, rest) {
			break // and more so with a larger d
		}
		s.descend(i+1, rest/d, d)
	}
}

// hopeless reports whether the remaining factors, whose product is rest, cannot all be
// close enough to the first to improve on the best result.
func (s *factorSearch) hopeless(left, rest int) bool {
	low := s.chosen[0] - s.spread
	return s.best != nil && low > 1 && reaches(low, left, rest+1)
}

func (s *factorSearch) judge() {
	sum := 0
	for _, d := range s.chosen {
		sum += d
	}
	spread := s.chosen[0] - s.chosen[len(s.chosen)-1]
	first := s.chosen[0]
	if s.best == nil || spread < s.spread || spread == s.spread && (first > s.best[0] || first == s.best[0] && sum <= s.sum) {
		s.best, s.spread, s.sum = slices.Clone(s.chosen), spread, sum
	}
}

// reaches reports whether d to the power k is at least n.
func reaches(d, k, n int) bool {
	p := 1
	for range k {
		if p >= (n+d-1)/d {
			return true
		}
		p *= d
	}
	return p >= n
}

func divisorsOf(n int) []int {
	var low, high []int
	for d := 1; d <= n/d; d++ {
		if n%d == 0 {
			low = append(low, d)
			if d != n/d {
				high = append(high, n/d)
			}
		}
	}
	slices.Reverse(high)
	return append(low, high...)
}
