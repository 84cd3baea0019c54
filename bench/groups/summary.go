package groups

import (
	"math"
	"slices"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/bench/results"
)

// spread is a median and a range.
type spread struct{ mid, low, high float64 }

func (s spread) known() bool { return !math.IsNaN(s.mid) }

// spreadOf ignores what is not finite: a run that failed, or a ratio to zero.
func spreadOf(values []float64) spread {
	var good []float64
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			good = append(good, v)
		}
	}
	if len(good) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	return spread{bench.Median(good), slices.Min(good), slices.Max(good)}
}

// summary summarizes the runs of a group.
type summary struct {
	*runs
	hop   spread
	load  spread
	lines []lineSummary
}

type lineSummary struct {
	line
	figures [contenderCount]spread
	tails   [contenderCount]spread // p99, if the figures are times
	better  contender              // the peer with the better median
	// If the work of the peers is added: the ratio to the first alone, and what all of them
	// allow together, with which ours is compared.
	toFirst, together spread
	// ratio is the median of the ratios of the rounds, ours to that peer, or our
	// figure if there is no peer.
	ratio spread
}

func (r *runs) summary() summary {
	s := summary{runs: r, hop: spreadOf(r.hops), load: spreadOf(r.loads)}
	for i, l := range r.group.lines {
		ls := lineSummary{line: l, better: -1}
		for _, c := range r.contenders {
			ls.figures[c], ls.tails[c] = spreadOf(r.values[c][i]), spreadOf(r.tails[c][i])
		}
		ls.toFirst, ls.together = spreadOf(nil), spreadOf(nil)
		for _, c := range r.group.comparedWith(&l) {
			if ls.figures[c].known() && (ls.better < 0 || r.group.isBetter(ls.figures[c].mid, ls.figures[ls.better].mid)) {
				ls.better = c
			}
		}
		ls.ratio = spreadOf(nil)
		switch ours := r.values[muster][i]; {
		case !r.group.compared():
			ls.ratio = spreadOf(ours)
		case r.group.added:
			sums := r.together(i)
			ls.toFirst = spreadOf(ratios(ours, r.values[r.group.peers[0]][i]))
			ls.together, ls.ratio = spreadOf(sums), spreadOf(ratios(ours, sums))
		case ls.better >= 0:
			ls.ratio = spreadOf(ratios(ours, r.values[ls.better][i]))
		}
		s.lines = append(s.lines, ls)
	}
	return s
}

// together returns, by round, the figure of a core that does the work of all peers one after
// the other: the sum of times, or the rate that follows from the times of a byte.
func (r *runs) together(line int) []float64 {
	var sums []float64
	for round := range r.values[muster][line] {
		sum := 0.0
		for _, c := range r.group.peers {
			if v := r.values[c][line][round]; r.group.largerBetter {
				sum += 1 / v
			} else {
				sum += v
			}
		}
		if r.group.largerBetter {
			sum = 1 / sum
		}
		sums = append(sums, sum)
	}
	return sums
}

// comparedWith returns the peers of a line.
func (g *group) comparedWith(l *line) []contender {
	if l.peers != nil {
		return l.peers
	}
	return g.peers
}

func (g *group) isBetter(a, b float64) bool {
	if g.largerBetter {
		return a > b
	}
	return a < b
}

// ratios divides round by round.
func ratios(a, b []float64) []float64 {
	r := make([]float64, min(len(a), len(b)))
	for i := range r {
		r[i] = a[i] / b[i]
	}
	return r
}

// result compares with the bound.
func (s *summary) result(l *lineSummary) string {
	if !l.ratio.known() || l.bound == unbound {
		return "-"
	}
	return l.ratio.judge(l.bound, s.group.largerBetter)
}

// judge compares with a bound. It is missed only if all rounds miss.
func (s spread) judge(bound float64, atLeast bool) string {
	best, mid := s.low, s.mid
	if atLeast {
		best, mid, bound = -s.high, -s.mid, -bound
	}
	switch {
	case !s.known():
		return results.NotMeasured
	case mid <= bound:
		return results.Met
	case best <= bound:
		return results.WithinNoise
	}
	return results.Missed
}
