package results

import "math"

// Change compares a figure with the same one of an earlier report.
type Change struct {
	Was float64 `json:"was"`
	// Worse is how much worse the figure is, as a fraction of the earlier one, or in
	// points if it is a percentage. It is negative if the figure is better.
	Worse float64 `json:"worse"`
	// Noise is the largest change that the spread of the rounds explains. 0: a figure of a
	// single round has no spread, and is not judged.
	Noise     float64 `json:"noise"`
	Regressed bool    `json:"regressed,omitempty"`
}

// leastNoise is what figures of the same build differ by when they are measured at other
// times of the day, however close the rounds are to each other; as a fraction and in
// points.
const (
	leastNoise       = 0.1
	leastNoisePoints = 10
)

// CompareWith sets the changes of all figures against an earlier report. It returns the tables
// that have a regression.
func (r *Report) CompareWith(old *Report) (tables []string) {
	before := map[figureKey]*Figure{}
	old.each(func(f *Figure) { before[f.key()] = f })
	seen := map[string]bool{}
	r.Against = old.Date + " " + old.Commit
	r.each(func(f *Figure) {
		f.Change = f.changeFrom(before[f.key()])
		if f.Change != nil && f.Change.Regressed && !seen[f.Table] {
			seen[f.Table], tables = true, append(tables, f.Table)
		}
	})
	return tables
}

// Confirm withdraws regressions that a second measurement does not show. A change of all
// figures by chance, such as a busy machine, rarely happens twice. Times that are short in
// some rounds and long in others have not changed if one of the rounds is as good as before.
func (r *Report) Confirm(again *Report) {
	second := map[figureKey]*Figure{}
	again.each(func(f *Figure) { second[f.key()] = f })
	r.each(func(f *Figure) {
		if f.Change == nil || !f.Change.Regressed {
			return
		}
		if s := second[f.key()]; s != nil && s.Change != nil && (!s.Change.Regressed || !s.worseThan(s.Change.Was)) {
			f.Change.Regressed = false
		}
	})
}

// worseThan reports whether all rounds are worse than a value.
func (f *Figure) worseThan(value float64) bool {
	if f.Op == AtLeast {
		return f.High < value
	}
	return f.Low > value
}

// Regressions returns the figures that are worse than before, each once.
func (r *Report) Regressions() (list []Figure) {
	seen := map[figureKey]bool{}
	r.each(func(f *Figure) {
		if f.Change != nil && f.Change.Regressed && !seen[f.key()] {
			seen[f.key()], list = true, append(list, *f)
		}
	})
	return list
}

// figureKey identifies a figure in two reports.
type figureKey struct{ table, row, unit, op string }

func (f *Figure) key() figureKey { return figureKey{f.Table, f.Row, f.Unit, f.Op} }

func (r *Report) each(f func(*Figure)) {
	for s := range r.Sections {
		for c := range r.Sections[s].Claims {
			for i := range r.Sections[s].Claims[c].Figures {
				f(&r.Sections[s].Claims[c].Figures[i])
			}
		}
	}
}

// changeFrom returns nil if one of the figures is missing.
func (f *Figure) changeFrom(old *Figure) *Change {
	if old == nil || !old.Measured() || !f.Measured() || !f.Points && old.Value == 0 {
		return nil
	}
	unit, least := math.Abs(old.Value), leastNoise
	if f.Points {
		unit, least = 1, leastNoisePoints
	}
	c := &Change{Was: old.Value, Worse: (f.Value - old.Value) / unit}
	if f.Op == AtLeast {
		c.Worse = -c.Worse
	}
	if f.Rounds < 2 || old.Rounds < 2 {
		return c
	}
	c.Noise = max(least, math.Hypot(f.uncertainty(), old.uncertainty())/unit)
	c.Regressed = c.Worse > c.Noise
	return c
}

// uncertainty is twice the standard error of the median, estimated from the range of the
// rounds: error and range are both multiples of the standard deviation, if the rounds are
// normally distributed.
func (f *Figure) uncertainty() float64 {
	factors := [...]float64{2: 1.25, 3: 0.79, 4: 0.58, 5: 0.46, 6: 0.40, 7: 0.34}
	return factors[min(f.Rounds, len(factors)-1)] * (f.High - f.Low)
}
