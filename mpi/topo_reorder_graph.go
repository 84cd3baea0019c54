package mpi

// Division of the positions of a graph among nodes: parts that grow along the edges, and
// swaps of positions between parts as long as they reduce the cut.

import "container/heap"

// links are the edges of an arrangement by position, in both directions.
type links struct {
	first  []int32 // those of position p are first[p] to first[p+1]
	to     []int32
	weight []int
}

func adjacency(a *Arrangement) *links {
	l := &links{first: make([]int32, a.Positions+1)}
	for i := range a.Edges {
		if e := &a.Edges[i]; e.From != e.To {
			l.first[e.From+1]++
			l.first[e.To+1]++
		}
	}
	for p := range a.Positions {
		l.first[p+1] += l.first[p]
	}
	n := l.first[a.Positions]
	l.to, l.weight = make([]int32, n), make([]int, n)
	at := append([]int32(nil), l.first[:a.Positions]...)
	put := func(p, q, w int) {
		l.to[at[p]], l.weight[at[p]] = int32(q), w
		at[p]++
	}
	for i := range a.Edges {
		if e := &a.Edges[i]; e.From != e.To {
			put(e.From, e.To, e.weight())
			put(e.To, e.From, e.weight())
		}
	}
	return l
}

// each calls f for the links of a position.
func (l *links) each(p int, f func(q, weight int)) {
	for k := l.first[p]; k < l.first[p+1]; k++ {
		f(int(l.to[k]), l.weight[k])
	}
}

// crossing returns the weight of the edges between parts.
func (l *links) crossing(division []int) int {
	sum := 0
	for p := range division {
		l.each(p, func(q, w int) {
			if division[p] != division[q] {
				sum += w
			}
		})
	}
	return sum / 2
}

// grow fills one part after the other. It starts at a position on the rim of the free ones
// and always adds the position that adds least to the cut.
func (l *links) grow(parts []part) []int {
	division := make([]int, len(l.first)-1)
	// score[p] is the weight of the links into the growing part minus that of the links to
	// free positions.
	score := make([]int, len(division))
	for p := range division {
		division[p] = -1
		l.each(p, func(_, w int) { score[p] -= w })
	}
	for i := range parts {
		left := len(parts[i].ranks)
		var rim positionHeap
		take := func(p int) {
			division[p] = i
			left--
			l.each(p, func(q, w int) {
				if division[q] < 0 {
					score[q] += 2 * w
					heap.Push(&rim, scored{q, score[q]})
				}
			})
		}
		for left > 0 {
			if p, ok := rim.next(division, score); ok {
				take(p)
			} else {
				take(loneliest(division, score))
			}
		}
		// The part is complete: links into it no longer count.
		for p := range division {
			if division[p] == i {
				l.each(p, func(q, w int) {
					if division[q] < 0 {
						score[q] -= w
					}
				})
			}
		}
	}
	return division
}

// loneliest returns the free position with the fewest links to other free ones.
func loneliest(division, score []int) int {
	best := -1
	for p, d := range division {
		if d < 0 && (best < 0 || score[p] > score[best]) {
			best = p
		}
	}
	return best
}

// scored is a position and its score when it was pushed onto the heap.
type scored struct{ position, score int }

type positionHeap []scored

func (h positionHeap) Len() int { return len(h) }
func (h positionHeap) Less(i, j int) bool {
	return h[i].score > h[j].score || h[i].score == h[j].score && h[i].position < h[j].position
}
func (h positionHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *positionHeap) Push(x any)   { *h = append(*h, x.(scored)) }
func (h *positionHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// next pops the free position with the highest score. Scores only rise while a part grows,
// so the newest entry of a position comes first, and older ones are skipped.
func (h *positionHeap) next(division, score []int) (int, bool) {
	for h.Len() > 0 {
		s := heap.Pop(h).(scored)
		if division[s.position] < 0 && score[s.position] == s.score {
			return s.position, true
		}
	}
	return 0, false
}

// improveEffort bounds the work of improve, in links examined: some tenths of a second. A
// job too large for that keeps the division it has.
const improveEffort = 20_000_000

// improve swaps positions of different parts as long as the cut gets smaller (the step of
// Kernighan and Lin, without its look-ahead).
func (l *links) improve(division []int, parts int) {
	members := make([][]int, parts)
	for p, d := range division {
		members[d] = append(members[d], p)
	}
	effort := improveEffort
	// pull is the weight of the links of p into a part.
	pull := func(p, part int) int {
		sum := 0
		l.each(p, func(q, w int) {
			effort--
			if division[q] == part {
				sum += w
			}
		})
		return sum
	}
	// swap makes the best exchange of p with a position of another part, if it helps.
	swap := func(p, part int) bool {
		mine := division[p]
		gain, best := 0, -1
		outward := pull(p, part) - pull(p, mine)
		for i, q := range members[part] {
			g := outward + pull(q, mine) - pull(q, part)
			if g <= gain {
				continue // the links between p and q only reduce it
			}
			l.each(p, func(r, w int) {
				if r == q {
					g -= 2 * w
				}
			})
			if g > gain {
				gain, best = g, i
			}
		}
		if best < 0 {
			return false
		}
		q := members[part][best]
		for i, r := range members[mine] {
			if r == p {
				members[mine][i] = q
			}
		}
		members[part][best] = p
		division[p], division[q] = part, mine
		return true
	}
	for again := true; again && effort > 0; {
		again = false
		for p := range division {
			for k := l.first[p]; k < l.first[p+1] && effort > 0; k++ {
				if part := division[l.to[k]]; part != division[p] && swap(p, part) {
					again = true
				}
			}
		}
	}
}
