package rankset

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
)

// Colors holds which ranks passed which color to a split of a communicator, and with which
// keys. Ranks of a color whose numbers and keys are arithmetic sequences take one entry.
type Colors struct{ each []colored } // sorted by color

type colored struct {
	color int64
	runs  []run // in the order of the ranks
}

// run is count ranks: rank with key, rank+step with key+keyStep, and so on.
type run struct {
	rank, step, count int64
	key, keyStep      int64
}

// One returns the colors of one rank.
func One(color, key int64, rank int) *Colors {
	return &Colors{[]colored{{color, []run{{rank: int64(rank), count: 1, key: key}}}}}
}

// Merge adds the colors of ranks that are higher than all ranks of c.
func (c *Colors) Merge(higher *Colors) {
	for _, h := range higher.each {
		at, found := c.find(h.color)
		if !found {
			c.each = slices.Insert(c.each, at, colored{color: h.color})
		}
		for _, r := range h.runs {
			c.each[at].add(r)
		}
	}
}

func (c *Colors) find(color int64) (at int, found bool) {
	return slices.BinarySearchFunc(c.each, color, func(e colored, color int64) int { return cmp.Compare(e.color, color) })
}

// add adds a run of higher ranks, as part of the last run if it continues it.
func (e *colored) add(r run) {
	if len(e.runs) > 0 && e.runs[len(e.runs)-1].extend(r) {
		return
	}
	e.runs = append(e.runs, r)
}

// extend appends a run to another, if both are one sequence.
func (l *run) extend(r run) bool {
	last := run{rank: l.rank + (l.count-1)*l.step, key: l.key + (l.count-1)*l.keyStep}
	step, keyStep := r.rank-last.rank, r.key-last.key
	if l.count > 1 && (l.step != step || l.keyStep != keyStep) || r.count > 1 && (r.step != step || r.keyStep != keyStep) {
		return false
	}
	l.step, l.keyStep = step, keyStep
	l.count += r.count
	return true
}

// Only returns the entries of c whose colors occur in other.
func (c *Colors) Only(other *Colors) *Colors {
	some := &Colors{}
	for _, e := range other.each {
		if at, found := c.find(e.color); found {
			some.each = append(some.each, c.each[at])
		}
	}
	return some
}

// Members returns the ranks of a color in the order of their keys, then of their numbers
// (MPI-4.1 section 7.4.2).
func (c *Colors) Members(color int64) *List {
	at, found := c.find(color)
	if !found {
		return Of(nil)
	}
	runs := c.each[at].runs
	if r := runs[0]; len(runs) == 1 {
		if r.keyStep < 0 {
			return Sequence(int(r.count), int(r.rank+(r.count-1)*r.step), int(-r.step))
		}
		return Sequence(int(r.count), int(r.rank), int(r.step))
	}
	type member struct {
		key  int64
		rank int32
	}
	var all []member
	for _, r := range runs {
		for i := range r.count {
			all = append(all, member{r.key + i*r.keyStep, int32(r.rank + i*r.step)})
		}
	}
	// The runs of a color can interleave.
	slices.SortFunc(all, func(a, b member) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.rank, b.rank)) })
	table := make([]int32, len(all))
	for i, m := range all {
		table[i] = m.rank
	}
	return Of(table)
}

// Append appends the encoded colors to b: the number of entries, then for each its color,
// the number of its runs and the fields of each run, as varints.
func (c *Colors) Append(b []byte) []byte {
	b = binary.AppendVarint(b, int64(len(c.each)))
	for _, e := range c.each {
		b = binary.AppendVarint(b, e.color)
		b = binary.AppendVarint(b, int64(len(e.runs)))
		for _, r := range e.runs {
			for _, v := range [...]int64{r.rank, r.step, r.count, r.key, r.keyStep} {
				b = binary.AppendVarint(b, v)
			}
		}
	}
	return b
}

// Parse returns the colors that Append encoded.
func Parse(b []byte) (*Colors, error) {
	bad := false
	next := func() int64 {
		v, n := binary.Varint(b)
		if n <= 0 {
			bad = true
			return 0
		}
		b = b[n:]
		return v
	}
	c := &Colors{}
	for n := next(); n > 0 && !bad; n-- {
		e := colored{color: next()}
		for m := next(); m > 0 && !bad; m-- {
			e.runs = append(e.runs, run{next(), next(), next(), next(), next()})
		}
		c.each = append(c.each, e)
	}
	if bad || len(b) > 0 {
		return nil, errors.New("rankset: invalid encoding of colors")
	}
	return c, nil
}
