package prof

// Summaries in messages. Ranks merge them when a job ends. JSON would cost each rank more
// processor time there, for its first use in a process, than profiling the calls of a short
// job. One function per type serves both directions.

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// Pack returns the summary for a message to a rank of the same version.
func (s *Summary) Pack() []byte {
	var w wire
	w.summary(s)
	return w.bytes
}

// Unpack parses the output of Pack.
func Unpack(b []byte) (*Summary, error) {
	s, r := new(Summary), wire{bytes: b, reads: true}
	if r.summary(s); r.failed || len(r.bytes) > 0 {
		return nil, fmt.Errorf("prof: %d bytes are not a summary of a profile", len(b))
	}
	return s, nil
}

// wire is a message that is being written or read.
type wire struct {
	bytes  []byte // written so far, or not yet read
	reads  bool
	failed bool
}

func (w *wire) summary(s *Summary) {
	number(w, &s.Ranks)
	number(w, &s.First)
	list(w, &s.Devices, w.text)
	names := slices.Sorted(maps.Keys(s.Values))
	list(w, &names, w.name)
	if w.reads {
		s.Values = make(map[Name]Spread, len(names))
	}
	for _, name := range names {
		v := s.Values[name]
		w.spread(&v)
		s.Values[name] = v
	}
	list(w, &s.Sizes, func(c *SizeClass) {
		w.text(&c.Protocol)
		numbers(w, &c.From, &c.To, &c.Messages, &c.Bytes)
	})
	list(w, &s.Pairs, func(p *Pair) {
		numbers(w, &p.From, &p.To)
		numbers(w, &p.Messages, &p.Bytes)
	})
	list(w, &s.Sites, w.site)
	list(w, &s.Waits, func(x *Wait) {
		numbers(w, &x.Rank, &x.For)
		numbers(w, &x.Calls, &x.Nanos)
	})
}

func (w *wire) site(c *CallSite) {
	for _, text := range []*string{&c.Routine, &c.Kind, &c.Site, &c.Function, &c.Object} {
		w.text(text)
	}
	for _, s := range []*Spread{&c.Calls, &c.Time, &c.Bytes} {
		w.spread(s)
	}
	numbers(w, &c.Offset, &c.Longest, &c.Messages, &c.Shortest, &c.Largest)
	number(w, &c.LongestAt)
	numbers(w, &c.Overlap.Operations, &c.Overlap.Early, &c.Overlap.Time, &c.Overlap.Hidden, &c.Overlap.HiddenEarly, &c.Overlap.Waited)
	list(w, &c.Sizes, func(n *ClassCount) {
		number(w, &n.Class)
		number(w, &n.Count)
	})
}

func (w *wire) spread(s *Spread) {
	numbers(w, &s.Sum, &s.Min, &s.Max)
	numbers(w, &s.MinAt, &s.MaxAt)
}

func (w *wire) name(n *Name) { w.text((*string)(n)) }

func (w *wire) text(s *string) {
	n := len(*s)
	if number(w, &n); !w.reads {
		w.bytes = append(w.bytes, *s...)
		return
	}
	if n < 0 || n > len(w.bytes) {
		w.failed, n = true, 0
	}
	*s, w.bytes = string(w.bytes[:n]), w.bytes[n:]
}

// list transfers the length and the elements of a slice.
func list[T any](w *wire, all *[]T, element func(*T)) {
	n := len(*all)
	if number(w, &n); w.reads {
		if n < 0 || n > len(w.bytes) { // an element has a byte or more
			w.failed, n = true, 0
		}
		if n > 0 {
			*all = make([]T, n)
		}
	}
	for i := range *all {
		if w.failed {
			return
		}
		element(&(*all)[i])
	}
}

func numbers[T int | uint64](w *wire, values ...*T) {
	for _, v := range values {
		number(w, v)
	}
}

func number[T int | uint64](w *wire, v *T) {
	if !w.reads {
		w.bytes = binary.AppendUvarint(w.bytes, uint64(*v))
		return
	}
	u, n := binary.Uvarint(w.bytes)
	if n <= 0 {
		w.failed, u, n = true, 0, 0
	}
	*v, w.bytes = T(u), w.bytes[n:]
}
