package launch

import (
	"iter"
	"slices"
)

// span is a run of consecutive numbers: ranks, or hosts.
type span struct{ first, last int }

// spans is a set of numbers: runs in ascending order that neither overlap nor touch. The
// ranks of a host, or of all hosts of a branch, usually are one run.
type spans []span

func spansOf(numbers ...int) (s spans) {
	for _, n := range numbers {
		s.add(span{n, n})
	}
	return s
}

// add adds a run. Numbers that are in the set already do not matter.
func (s *spans) add(r span) {
	// Runs i to j-1 overlap or touch the new one.
	i, _ := slices.BinarySearchFunc(*s, r.first, func(e span, first int) int { return e.last + 1 - first })
	j := i
	for ; j < len(*s) && (*s)[j].first <= r.last+1; j++ {
		r.first, r.last = min(r.first, (*s)[j].first), max(r.last, (*s)[j].last)
	}
	*s = slices.Replace(*s, i, j, r)
}

func (s *spans) merge(o spans) {
	for _, r := range o {
		s.add(r)
	}
}

func (s spans) count() (n int) {
	for _, r := range s {
		n += r.last - r.first + 1
	}
	return n
}

func (s spans) has(n int) bool {
	i, _ := slices.BinarySearchFunc(s, n, func(e span, n int) int { return e.last - n })
	return i < len(s) && s[i].first <= n
}

// all yields the numbers in ascending order.
func (s spans) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, r := range s {
			for n := r.first; n <= r.last; n++ {
				if !yield(n) {
					return
				}
			}
		}
	}
}

func (w *bodyWriter) spans(s spans) {
	w.number(int64(len(s)))
	end := 0
	for _, r := range s {
		w.number(int64(r.first - end))
		w.number(int64(r.last - r.first))
		end = r.last
	}
}

// spans reads a set of numbers below a limit.
func (r *bodyReader) spans(limit int) (s spans) {
	n := r.number()
	end := 0
	for range n {
		gap, length := r.number(), r.number()
		if r.bad || gap < 0 || length < 0 || gap >= int64(limit) || length >= int64(limit) || int64(end)+gap+length >= int64(limit) {
			r.bad, r.rest = true, nil
			return nil
		}
		first := end + int(gap)
		s.add(span{first, first + int(length)})
		end = first + int(length)
	}
	return s
}

func (s spans) list() []int { return slices.Collect(s.all()) }

func blockBody(ranks spans) []byte {
	var w bodyWriter
	w.spans(ranks)
	return w
}

func readBlock(body []byte) (spans, error) {
	r := bodyReader{rest: body}
	ranks := r.spans(maxRanks)
	return ranks, r.err()
}
