package sched

// Names for pieces of data, short enough for a picture:
//
//	3        the data of rank 3           3–5    those of ranks 3, 4 and 5
//	Σ0–3     of ranks 0 to 3, combined    Σ      of all ranks
//	b        part b of the only data      3b     part b of rank 3's
//	37       what rank 3 has for rank 7, where parts have numbers (3:7 if there are more than ten)

import (
	"fmt"
	"slices"
	"strings"
)

// naming holds what the labels of one collective must distinguish.
type naming struct {
	ranks    int
	origins  int   // ranks that have data at the start
	ends     []int // where the parts end; empty if there is only one
	numbered bool
}

// naming finds the offsets at which the schedule cuts data. If ends is not nil, it
// holds the end offsets of numbered parts.
func (t *trace) naming(ends []int) *naming {
	n := &naming{ranks: len(t.graphs), ends: ends, numbered: ends != nil}
	whole := make([][]int, n.ranks) // offsets at which data begin and end, which are not cuts
	for r, h := range t.start {
		for _, p := range slices.Concat(h[:]...) {
			whole[r] = append(whole[r], p.off, p.off+p.n)
		}
		if whole[r] != nil {
			n.origins++
		}
	}
	if n.numbered {
		return n
	}
	var last int
	cut := func(c contents) {
		for _, p := range c {
			if p.off < 0 {
				continue
			}
			for _, at := range []int{p.off, p.off + p.n} {
				if last = max(last, at); !slices.Contains(whole[p.from[0]], at) {
					n.ends = append(n.ends, at)
				}
			}
		}
		slices.Sort(n.ends)
		n.ends = slices.Compact(n.ends)
	}
	for _, sent := range t.sent {
		for _, c := range sent {
			cut(c)
		}
	}
	for _, all := range t.after {
		for _, h := range all {
			for _, c := range h {
				cut(c)
			}
		}
	}
	if n.ends != nil {
		n.ends = append(n.ends, last)
	}
	return n
}

// phrase is a run of pieces with one label: parts first to last of one rank, of
// consecutive ranks, or of several ranks combined.
type phrase struct {
	from        []int
	run         int // number of consecutive ranks from from[0], or 1
	first, last int // -1 if the data has no parts
}

func (n *naming) phrase(p piece) phrase {
	t := phrase{from: p.from, run: 1, first: -1, last: -1}
	if len(n.ends) > 0 && p.off >= 0 {
		t.first, _ = slices.BinarySearch(n.ends, p.off+1)
		t.last, _ = slices.BinarySearch(n.ends, p.off+p.n)
	}
	return t
}

// join appends the next phrase and reports true if one label can describe both.
func (t *phrase) join(next phrase) bool {
	switch {
	case slices.Equal(t.from, next.from) && t.run == 1 && t.first >= 0 && next.first == t.last+1:
		t.last = next.last
	case len(t.from) == 1 && len(next.from) == 1 && next.from[0] == t.from[0]+t.run && t.first == next.first && t.last == next.last && t.first == t.last:
		t.run++
	default:
		return false
	}
	return true
}

// label returns the full label of the contents of a part of a buffer.
func (n *naming) label(c contents) string {
	var phrases []phrase
	for _, p := range c {
		next := n.phrase(p)
		if k := len(phrases) - 1; k < 0 || !phrases[k].join(next) {
			phrases = append(phrases, next)
		}
	}
	words := make([]string, len(phrases))
	for i, t := range phrases {
		words[i] = n.text(t)
	}
	return strings.Join(words, " ")
}

func (n *naming) text(t phrase) string {
	if len(t.from) == 0 {
		return "?"
	}
	part := ""
	if t.first >= 0 {
		part = n.part(t.first)
		if t.last > t.first {
			part += "–" + n.part(t.last)
		}
	}
	switch {
	case n.origins == 1 && part != "":
		return part
	case n.origins == 1:
		return "data"
	case len(t.from) == n.ranks && part == "":
		return "Σ"
	case len(t.from) == n.ranks:
		return "Σ " + part
	case len(t.from) > 1 && part == "":
		return "Σ" + runs(t.from)
	case len(t.from) > 1:
		return "Σ" + runs(t.from) + " " + part
	case part != "" && n.numbered && (n.ranks > 10 || t.run > 2 || t.last > t.first):
		part = ":" + part
	}
	if t.run == 2 {
		return fmt.Sprintf("%d%s %d%s", t.from[0], part, t.from[0]+1, part)
	}
	if t.run > 2 {
		return fmt.Sprintf("%d–%d%s", t.from[0], t.from[0]+t.run-1, part)
	}
	return fmt.Sprintf("%d%s", t.from[0], part)
}

// part returns the name of part k: a number, or a, b … z, aa, ab …
func (n *naming) part(k int) string {
	if n.numbered {
		return fmt.Sprint(k)
	}
	name := ""
	for k++; k > 0; k = (k - 1) / 26 {
		name = string(rune('a'+(k-1)%26)) + name
	}
	return name
}

// runs formats sorted numbers as ranges: 0–2,5.
func runs(list []int) string {
	var words []string
	for i := 0; i < len(list); {
		k := i + 1
		for k < len(list) && list[k] == list[k-1]+1 {
			k++
		}
		word := fmt.Sprint(list[i])
		if k-i > 1 {
			word += "–" + fmt.Sprint(list[k-1])
		}
		words = append(words, word)
		i = k
	}
	return strings.Join(words, ",")
}
