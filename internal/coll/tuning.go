package coll

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A tuning table says which algorithm to take where, from measurements: it is
// written by muster tune, and can be written by hand. Rules are tried from the
// first to the last. A rule whose algorithm cannot do a call, and has none
// that stands in for it, is passed over, and the cost model decides if none is left. In JSON:
//
//	{
//	  "about": "4 ranks on one node",
//	  "rules": [
//	    {"kind": "allgather", "ranks": [2, 16], "bytes": [0, 2048], "nodes": [1, 1], "algorithm": "bruck", "params": {"ports": 3}},
//	    {"kind": "allgather", "bytes": [2049], "algorithm": "ring"}
//	  ]
//	}
//
// A range has both ends inside; with one number it has no upper end, and left out
// it is any. Bytes are counted as by Shape.Message; where not all ranks know them,
// a rule that asks for bytes does not hold. Parameters left out have their
// default.

// Tuning is a table.
type Tuning struct {
	About string
	Rules []Rule
}

// Rule is a line of a table.
type Rule struct {
	Kind                Kind
	Ranks, Bytes, Nodes Range
	Algorithm           *Algorithm
	Params              []int
}

// Range is the numbers from Min to Max; with Max 0, all from Min on.
type Range struct{ Min, Max int }

// Has reports whether a number is in the range.
func (r Range) Has(n int) bool { return n >= r.Min && (r.Max == 0 || n <= r.Max) }

// match finds the rule for a call and its number. What is passed over on the way
// is told in passed.
func (t *Tuning) match(s *Shape, passed *string) (*Rule, int) {
	if t == nil {
		return nil, 0
	}
	size, known := s.Message()
	nodes := s.nodeCount()
	for i := range t.Rules {
		r := &t.Rules[i]
		if r.Kind != s.Kind || !r.Ranks.Has(s.Size) || !r.Nodes.Has(nodes) {
			continue
		}
		if r.Bytes != (Range{}) && !(known && r.Bytes.Has(size)) {
			continue
		}
		if ok, why := Applicable(r.Algorithm, s); !ok {
			*passed += fmt.Sprintf("; rule %d of the tuning table names %s, but %s", i+1, r.Algorithm.Name, why)
			if r = r.instead(s); r == nil {
				continue
			}
		}
		return r, i
	}
	return nil, 0
}

// instead is the rule for a call that its algorithm cannot do; nil: there is none.
func (r *Rule) instead(s *Shape) *Rule {
	a, err := Find(r.Kind, r.Algorithm.Instead)
	if err != nil {
		return nil
	}
	if ok, _ := Applicable(a, s); !ok {
		return nil
	}
	other := *r
	other.Algorithm = a
	return &other
}

// where says in words what calls a rule is for.
func (r *Rule) where() string {
	var parts []string
	for _, p := range []struct {
		Range
		unit string
	}{{r.Ranks, "ranks"}, {r.Bytes, "bytes"}, {r.Nodes, "nodes"}} {
		switch {
		case p.Range == Range{}:
		case p.Max == 0:
			parts = append(parts, fmt.Sprintf("%d or more %s", p.Min, p.unit))
		case p.Min == p.Max:
			parts = append(parts, fmt.Sprintf("%d %s", p.Min, p.unit))
		default:
			parts = append(parts, fmt.Sprintf("%d to %d %s", p.Min, p.Max, p.unit))
		}
	}
	if parts == nil {
		return "every " + r.Kind.String()
	}
	return r.Kind.String() + " with " + strings.Join(parts, ", ")
}

// Named makes the list of parameters of an algorithm from names and values; what
// is not named has its default. Only values from the table are taken: others have
// not been proved.
func (a *Algorithm) Named(values map[string]int) ([]int, error) {
	params := a.Default()
	for name, v := range values {
		i := slices.IndexFunc(a.Params, func(p Param) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%s by %s has no parameter %q; %s", a.Kind, a.Name, name, a.describeParams())
		}
		if !slices.Contains(a.Params[i].Values, v) {
			return nil, fmt.Errorf("%s by %s: %s cannot be %d; it can be one of %v", a.Kind, a.Name, name, v, a.Params[i].Values)
		}
		params[i] = v
	}
	return params, nil
}

func (a *Algorithm) describeParams() string {
	if len(a.Params) == 0 {
		return "it has none"
	}
	var list []string
	for _, p := range a.Params {
		list = append(list, p.Name)
	}
	return "it has " + strings.Join(list, ", ")
}

// Marshal writes the table, a rule to a line.
func (t *Tuning) Marshal() []byte {
	var b bytes.Buffer
	about, _ := json.Marshal(t.About) // a string always can
	fmt.Fprintf(&b, "{\n  \"about\": %s,\n  \"rules\": [", about)
	for i := range t.Rules {
		r := &t.Rules[i]
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n    {\"kind\": %q", r.Kind)
		r.Ranks.marshal(&b, "ranks")
		r.Bytes.marshal(&b, "bytes")
		r.Nodes.marshal(&b, "nodes")
		fmt.Fprintf(&b, ", \"algorithm\": %q", r.Algorithm.Name)
		for j, p := range r.Algorithm.Params {
			sep := ", "
			if j == 0 {
				sep = ", \"params\": {"
			}
			fmt.Fprintf(&b, "%s%q: %d", sep, p.Name, r.Params[j])
		}
		if len(r.Algorithm.Params) > 0 {
			b.WriteByte('}')
		}
		b.WriteByte('}')
	}
	if len(t.Rules) > 0 {
		b.WriteString("\n  ")
	}
	b.WriteString("]\n}\n")
	return b.Bytes()
}

func (r Range) marshal(b *bytes.Buffer, name string) {
	switch {
	case r == Range{}:
	case r.Max == 0:
		fmt.Fprintf(b, ", %q: [%d]", name, r.Min)
	default:
		fmt.Fprintf(b, ", %q: [%d, %d]", name, r.Min, r.Max)
	}
}
