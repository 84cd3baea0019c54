package main

// From figures to a tuning table: the best candidate at each size, and rules that extend
// to the geometric mean with the next size.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

// jobShape is what the rules of a table apply to: ranks, the nodes they run on, and the rails
// between these.
type jobShape struct {
	layout
	rails int
}

func (s jobShape) String() string {
	if s.rails > 1 {
		return fmt.Sprintf("%v with %d rails", s.layout, s.rails)
	}
	return s.layout.String()
}

// shapeOfJob returns the shape of the ranks of c, without a message.
func shapeOfJob(c *mpi.Comm) (jobShape, error) {
	x, err := inspect.ExplainCollective(c, coll.Barrier.String(), 0, 0)
	if err != nil {
		return jobShape{}, err
	}
	return jobShape{layout{c.Size(), x.Nodes}, x.Rails}, nil
}

// tuneFigure is the time of a candidate at a size, in one round.
type tuneFigure struct {
	candidate
	size   int
	micros float64
}

// noiseMargin is the factor by which a candidate must be better than a preferred one, or
// than the one of the previous size. A smaller difference is noise.
const noiseMargin = 1.03

// bestOf returns the best time of each candidate of a kind at a size, sorted by time.
func bestOf(figures []tuneFigure, kind coll.Kind, size int) []tuneFigure {
	var best []tuneFigure
	for _, f := range figures {
		if f.algorithm.Kind != kind || f.size != size {
			continue
		}
		i := slices.IndexFunc(best, func(b tuneFigure) bool { return b.same(f.candidate) })
		if i < 0 {
			best = append(best, f)
		} else if f.micros < best[i].micros {
			best[i] = f
		}
	}
	slices.SortStableFunc(best, func(a, b tuneFigure) int { return cmp.Compare(a.micros, b.micros) })
	return best
}

func (c candidate) same(d candidate) bool {
	return c.algorithm == d.algorithm && slices.Equal(c.params, d.params)
}

// kindsAndSizes returns the sorted kinds and sizes of the figures.
func kindsAndSizes(figures []tuneFigure) (kinds []coll.Kind, sizes map[coll.Kind][]int) {
	sizes = map[coll.Kind][]int{}
	for _, f := range figures {
		k := f.algorithm.Kind
		if sizes[k] == nil {
			kinds = append(kinds, k)
		}
		sizes[k] = append(sizes[k], f.size)
	}
	slices.Sort(kinds)
	for k := range sizes {
		slices.Sort(sizes[k])
		sizes[k] = slices.Compact(sizes[k])
	}
	return kinds, sizes
}

// tuneRules returns the rules for one shape of a job. They cover all sizes; each extends to
// the geometric mean of the last size it won and the next size.
func tuneRules(figures []tuneFigure, on jobShape) []coll.Rule {
	var rules []coll.Rule
	ranks, nodes, rails := on.ranges()
	kinds, sizes := kindsAndSizes(figures)
	for _, kind := range kinds {
		var last *coll.Rule
		for i, size := range sizes[kind] {
			best := bestOf(figures, kind, size)
			if last != nil {
				holder := candidate{last.Algorithm, last.Params}
				k := slices.IndexFunc(best, func(f tuneFigure) bool { return f.same(holder) })
				if k >= 0 && best[k].micros <= best[0].micros*noiseMargin {
					continue
				}
			}
			from := 0
			if last != nil {
				from = 1 + int(math.Sqrt(float64(max(sizes[kind][i-1], 1))*float64(size)))
				last.Bytes.Max = from - 1
			}
			winner := firstOfEquals(figures, best)
			rules = append(rules, coll.Rule{Kind: kind, Ranks: ranks, Nodes: nodes, Rails: rails,
				Bytes: coll.Range{Min: from}, Algorithm: winner.algorithm, Params: winner.params})
			last = &rules[len(rules)-1]
		}
	}
	return rules
}

// firstOfEquals returns, of the candidates within the noise margin of the best, the one
// that was measured first: the table of algorithms lists preferred ones first.
func firstOfEquals(figures, best []tuneFigure) candidate {
	for _, f := range figures {
		k := slices.IndexFunc(best, func(b tuneFigure) bool { return b.same(f.candidate) })
		if k >= 0 && best[k].micros <= best[0].micros*noiseMargin {
			return f.candidate
		}
	}
	return best[0].candidate
}

// ranges returns the ranges of the rules for a shape. Those for one node name no rails.
func (s jobShape) ranges() (ranks, nodes, rails coll.Range) {
	only := func(n int) coll.Range { return coll.Range{Min: n, Max: n} }
	if s.nodes > 1 {
		rails = only(s.rails)
	}
	return only(s.ranks), only(s.nodes), rails
}

// mergeTuning replaces the old rules for the same collectives and shape by the new ones.
func mergeTuning(old *coll.Tuning, rules []coll.Rule, on jobShape) *coll.Tuning {
	ranks, nodes, rails := on.ranges()
	kept := slices.DeleteFunc(slices.Clone(old.Rules), func(r coll.Rule) bool {
		return r.Ranks == ranks && r.Nodes == nodes && r.Rails == rails && slices.ContainsFunc(rules, func(n coll.Rule) bool { return n.Kind == r.Kind })
	})
	return &coll.Tuning{About: old.About, Rules: append(slices.Clone(rules), kept...)}
}

// writeTuning writes the table with new rules.
func writeTuning(file string, old *coll.Tuning, rules []coll.Rule, on jobShape) error {
	table := mergeTuning(old, rules, on)
	table.About = fmt.Sprintf("muster tune, last for %v on %s", on, time.Now().Format(time.DateOnly))
	return os.WriteFile(file, table.Marshal(), 0o644)
}

// tuneRow is a row of the output: the rule, the best candidate, and what the library chooses
// without a table, with their times in µs.
type tuneRow struct {
	Collective    string  `json:"collective"`
	Bytes         int     `json:"bytes"`
	Rule          string  `json:"rule"`
	RuleMicros    float64 `json:"rule_us"`
	Best          string  `json:"best"`
	BestMicros    float64 `json:"best_us"`
	Default       string  `json:"default"`
	DefaultMicros float64 `json:"default_us"`
}

// tunePrinter prints rows, those of a collective when it is finished.
type tunePrinter struct {
	w       io.Writer
	asJSON  bool
	width   int // of the longest name of an algorithm
	printed []coll.Kind
}

func newTunePrinter(w io.Writer, asJSON bool, kinds []coll.Kind, on layout, quick bool) *tunePrinter {
	p := &tunePrinter{w: w, asJSON: asJSON, width: len("best measured")}
	for _, kind := range kinds {
		for _, c := range candidatesOf(kind, on, quick) {
			p.width = max(p.width, len(c.String()))
		}
	}
	return p
}

// kind prints the rows of a collective.
func (p *tunePrinter) kind(kind coll.Kind, got tuned) error {
	if len(p.printed) == 0 && !p.asJSON {
		fmt.Fprintf(p.w, "%-14s %8s  %-*s %8s  %-*s %8s  %-*s %8s\n", "collective", "bytes", p.width, "rule", "µs", p.width, "best measured", "µs", p.width, "default", "µs")
	}
	p.printed = append(p.printed, kind)
	for _, r := range tuneRows(kind, got) {
		var err error
		if p.asJSON {
			err = json.NewEncoder(p.w).Encode(r)
		} else {
			_, err = fmt.Fprintf(p.w, "%-14s %8d  %-*s %8.2f  %-*s %8.2f  %-*s %8.2f\n", r.Collective, r.Bytes, p.width, r.Rule, r.RuleMicros, p.width, r.Best, r.BestMicros, p.width, r.Default, r.DefaultMicros)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rest prints the rows that were not printed because of an interruption.
func (p *tunePrinter) rest(kinds []coll.Kind, got tuned) error {
	for _, kind := range kinds {
		if !slices.Contains(p.printed, kind) {
			if err := p.kind(kind, got); err != nil {
				return err
			}
		}
	}
	return nil
}

func tuneRows(kind coll.Kind, got tuned) (rows []tuneRow) {
	figures := slices.DeleteFunc(slices.Clone(got.figures), func(f tuneFigure) bool { return f.algorithm.Kind != kind })
	_, sizes := kindsAndSizes(figures)
	rules := tuneRules(figures, jobShape{})
	for _, size := range sizes[kind] {
		best := bestOf(figures, kind, size)
		i := slices.IndexFunc(rules, func(r coll.Rule) bool { return r.Bytes.Has(size) })
		k := slices.IndexFunc(best, func(f tuneFigure) bool { return f.same(candidate{rules[i].Algorithm, rules[i].Params}) })
		without := slices.DeleteFunc(slices.Clone(got.chosen), func(c chosenFigure) bool { return c.kind != kind || c.size != size })
		fastest := slices.MinFunc(without, func(a, b chosenFigure) int { return cmp.Compare(a.micros, b.micros) })
		rows = append(rows, tuneRow{kind.String(), size, best[k].String(), best[k].micros, best[0].String(), best[0].micros, fastest.name, fastest.micros})
	}
	return rows
}
