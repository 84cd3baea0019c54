package sched

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Values. The value of a byte is the sequence of the ranks' data bytes that were
// combined into it. Adjacent bytes nearly always have adjacent values, so memory is a
// list of runs: a number of bytes from an offset of one term. A term is a leaf (data
// of a rank, or the initial contents of its output or scratch) or two terms combined.
// Equal terms have the same number, so comparing them is inexpensive.

// term records how a value was combined. Terms may have the same sequence of operands
// and differ in how the operands are grouped.
type term struct {
	sequence int32
	data     bool // contains only ranks' data
}

// part is a part of a sequence: leaves from to to-1, whose bytes are at the offset of
// the term's run plus rel.
type part struct {
	from, to int32
	rel      int
}

// combination is two terms to combine; rel is the right one's offset minus the left
// one's.
type combination struct {
	left, right int32
	rel         int
}

// combined is the resulting term; shift is its offset minus the left one's.
type combined struct {
	term  int32
	shift int
}

// run is n bytes at off: those of a term from base.
type run struct {
	off, n int
	term   int32
	base   int
}

// values holds the memory of all ranks and all terms.
type values struct {
	task      *Task
	ranks     int
	memory    [][Bufs][]run
	terms     []term
	sequences [][]part
	numbers   map[string]int32 // of sequences, by their text
	made      map[combination]combined
	src, dst  []run  // scratch
	text      []byte // scratch
}

// newValues returns the initial state of a task.
func newValues(t *Task, graphs []*Graph) *values {
	n := len(graphs)
	v := &values{task: t, ranks: n, memory: make([][Bufs][]run, n), numbers: map[string]int32{}, made: map[combination]combined{}}
	// Leaves: data of the ranks, then their outputs, then their scratch.
	for leaf := range int32(3 * n) {
		v.terms = append(v.terms, term{v.sequence([]part{{leaf, leaf + 1, 0}}), leaf < int32(n)})
	}
	for r, g := range graphs {
		m := &t.Ranks[r]
		v.memory[r] = [Bufs][]run{
			In:  {{0, m.In, int32(n + r), 0}},
			Out: {{0, m.Out, int32(n + r), 0}},
			Tmp: {{0, g.Tmp, int32(2*n + r), 0}},
			// Its own view of the shared buffer: it sees what it wrote or took over.
			Shared: {{0, g.Shared, int32(2*n + r), 0}},
		}
		for _, p := range m.Start {
			id, base := v.expectedTerm(&p)
			v.write(r, p.Span, []run{{0, p.Len, id, base}})
		}
	}
	return v
}

// expectedTerm returns a term with the sequence of a piece; its grouping has no meaning.
func (v *values) expectedTerm(p *Piece) (id int32, base int) {
	id, base = int32(p.From), p.At
	for r := p.From + 1; r < p.To; r++ {
		id, base = v.combine(id, base, int32(r), p.At)
	}
	return id, base
}

// move performs a copy or a message.
func (v *values) move(from int, src Span, to int, dst Span) {
	v.src = v.read(v.src[:0], from, src)
	v.write(to, dst, v.src)
}

// reduce sets dst to src ∘ dst. It returns a description of the fault if that splits
// elements.
func (v *values) reduce(rank int, dst, src Span) string {
	if dst.Len == 0 {
		return ""
	}
	elem := max(v.task.Elem, 1)
	v.src, v.dst = v.read(v.src[:0], rank, src), v.read(v.dst[:0], rank, dst)
	var result []run
	l, r := 0, 0
	for off := 0; off < dst.Len; {
		left, right := &v.src[l], &v.dst[r]
		n := min(left.off+left.n, right.off+right.n) - off
		a, b := left.base+off-left.off, right.base+off-right.off
		if v.terms[left.term].data && v.terms[right.term].data && (a%elem != 0 || b%elem != 0 || n%elem != 0) {
			return fmt.Sprintf("splits elements of %d bytes: it combines %d bytes of %s with %s", elem, n, v.describe(left.term, a, n), v.describe(right.term, b, n))
		}
		id, base := v.combine(left.term, a, right.term, b)
		result = append(result, run{off, n, id, base})
		off += n
		if off == left.off+left.n {
			l++
		}
		if off == right.off+right.n {
			r++
		}
	}
	v.write(rank, dst, result)
	return ""
}

// read appends the runs of a span, their offsets relative to it.
func (v *values) read(to []run, rank int, s Span) []run {
	if s.Len == 0 {
		return to
	}
	all := v.memory[rank][s.Buf]
	for i := covering(all, s.Off); i < len(all) && all[i].off < s.Off+s.Len; i++ {
		x := cut(all[i], s.Off, s.Off+s.Len)
		x.off -= s.Off
		to = append(to, x)
	}
	return to
}

// write replaces the runs of a span.
func (v *values) write(rank int, s Span, what []run) {
	if s.Len == 0 {
		return
	}
	all := v.memory[rank][s.Buf]
	first := covering(all, s.Off)
	last := first
	for all[last].off+all[last].n < s.Off+s.Len {
		last++
	}
	before, behind := all[first], all[last]
	fresh := make([]run, 0, len(what)+2)
	fresh = appendRun(fresh, cut(before, 0, s.Off))
	for _, x := range what {
		x.off += s.Off
		fresh = appendRun(fresh, x)
	}
	fresh = appendRun(fresh, cut(behind, s.Off+s.Len, behind.off+behind.n))
	v.memory[rank][s.Buf] = slices.Replace(all, first, last+1, fresh...)
}

// covering returns the index of the run that contains the byte at off.
func covering(all []run, off int) int {
	i, found := slices.BinarySearchFunc(all, off, func(x run, off int) int { return x.off - off })
	if !found {
		i--
	}
	return i
}

// cut returns the part of a run between two offsets.
func cut(x run, off, end int) run {
	if off > x.off {
		x.base += off - x.off
		x.n -= off - x.off
		x.off = off
	}
	x.n = min(x.n, end-x.off)
	return x
}

// appendRun appends a run, merging it with the last one if it continues it.
func appendRun(to []run, x run) []run {
	if x.n <= 0 {
		return to
	}
	if len(to) > 0 {
		if last := &to[len(to)-1]; last.term == x.term && last.base+last.n == x.base {
			last.n += x.n
			return to
		}
	}
	return append(to, x)
}

// combine returns left ∘ right, each from its offset.
func (v *values) combine(left int32, a int, right int32, b int) (id int32, base int) {
	if v.task.Commutes && left > right {
		left, a, right, b = right, b, left, a
	}
	key := combination{left, right, b - a}
	c, known := v.made[key]
	if !known {
		c = v.make(key)
		v.made[key] = c
	}
	return c.term, a + c.shift
}

// make makes a new term. Its sequence is the left one followed by the right one,
// sorted if the operation commutes. Offsets are relative to the first part, so that
// equal sequences at different offsets compare equal.
func (v *values) make(c combination) combined {
	parts := slices.Clone(v.sequences[v.terms[c.left].sequence])
	for _, p := range v.sequences[v.terms[c.right].sequence] {
		parts = append(parts, part{p.from, p.to, p.rel + c.rel})
	}
	if v.task.Commutes {
		slices.SortFunc(parts, func(x, y part) int { return int(x.from) - int(y.from) })
	}
	shift := parts[0].rel
	joined := parts[:0]
	for _, p := range parts {
		p.rel -= shift
		if k := len(joined) - 1; k >= 0 && joined[k].to == p.from && joined[k].rel == p.rel && p.from%int32(v.ranks) != 0 {
			joined[k].to = p.to
		} else {
			joined = append(joined, p)
		}
	}
	id := int32(len(v.terms))
	v.terms = append(v.terms, term{v.sequence(joined), v.terms[c.left].data && v.terms[c.right].data})
	return combined{id, shift}
}

// sequence returns the number of a sequence.
func (v *values) sequence(parts []part) int32 {
	v.text = v.text[:0]
	for _, p := range parts {
		v.text = binary.AppendVarint(v.text, int64(p.from))
		v.text = binary.AppendVarint(v.text, int64(p.to))
		v.text = binary.AppendVarint(v.text, int64(p.rel))
	}
	id, known := v.numbers[string(v.text)]
	if !known {
		id = int32(len(v.sequences))
		v.sequences = append(v.sequences, parts)
		v.numbers[string(v.text)] = id
	}
	return id
}

// describe returns a description of n bytes of a term for error texts.
func (v *values) describe(id int32, base, n int) string {
	var words []string
	for _, p := range v.sequences[v.terms[id].sequence] {
		at := base + p.rel
		kind, from, to := int(p.from)/v.ranks, int(p.from)%v.ranks, (int(p.to)-1)%v.ranks
		text := [...]string{"data", "initial output", "unwritten scratch"}[kind]
		who := fmt.Sprintf("rank %d", from)
		if to > from {
			who = fmt.Sprintf("ranks %d to %d", from, to)
		}
		words = append(words, fmt.Sprintf("%s [%d:%d) of %s", text, at, at+n, who))
	}
	return strings.Join(words, " ∘ ")
}
