package coll

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A tuning table maps calls to algorithms, based on measurements. muster tune writes
// it; it can also be written by hand. Rules are tried from the first to the last. A
// rule whose algorithm is not applicable to a call and has no replacement
// (Algorithm.Instead) is skipped. If no rule is left, the cost model decides. In JSON:
//
//	{
//	  "about": "4 ranks on one node",
//	  "rules": [
//	    {"kind": "allgather", "ranks": [2, 16], "bytes": [0, 2048], "nodes": [1, 1], "algorithm": "bruck", "params": {"ports": 3}},
//	    {"kind": "allgather", "ranks": [16, 16], "nodes": [4, 4], "rails": [2, 2], "algorithm": "node-groups"},
//	    {"kind": "allgather", "bytes": [2049], "algorithm": "ring"}
//	  ]
//	}
//
// A range includes both ends; with one number it has no upper end; an omitted range
// matches anything. Bytes are counted as by Shape.Message. If not all ranks know them,
// a rule with a range of bytes does not match. Rails are those between nodes; ranks of
// one node have one. Omitted parameters have their defaults.

// Tuning is a tuning table.
type Tuning struct {
	About string
	Rules []Rule
}

// Rule is a rule of a tuning table.
type Rule struct {
	Kind                       Kind
	Ranks, Bytes, Nodes, Rails Range
	Algorithm                  *Algorithm
	Params                     []int
}

// Range is the numbers from Min to Max; Max 0 means no upper end.
type Range struct{ Min, Max int }

// Has reports whether a number is in the range.
func (r Range) Has(n int) bool { return n >= r.Min && (r.Max == 0 || n <= r.Max) }

// match returns the rule for a call and its number. It describes skipped rules in
// passed.
func (t *Tuning) match(s *Shape, passed *string) (*Rule, int) {
	if t == nil {
		return nil, 0
	}
	size, known := s.Message()
	nodes, rails := s.nodeCount(), s.railCount()
	for i := range t.Rules {
		r := &t.Rules[i]
		if r.Kind != s.Kind || !r.Ranks.Has(s.Size) || !r.Nodes.Has(nodes) || !r.Rails.Has(rails) {
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

// instead returns the rule with the replacement algorithm for a call, or nil if there
// is none.
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

// describeCalls describes the calls that a rule matches.
func (r *Rule) describeCalls() string {
	var parts []string
	for _, p := range []struct {
		Range
		unit string
	}{{r.Ranks, "ranks"}, {r.Bytes, "bytes"}, {r.Nodes, "nodes"}, {r.Rails, "rails"}} {
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

// ParseParams returns the parameters of an algorithm from names and values; omitted ones have
// their defaults. Only values of the table are accepted, because others are not proved.
func (a *Algorithm) ParseParams(values map[string]int) ([]int, error) {
	params := a.Default()
	for name, v := range values {
		i := slices.IndexFunc(a.Params, func(p Param) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%s by %s has no parameter %q; %s", a.Kind, a.Name, name, a.describeParams())
		}
		if !slices.Contains(a.Params[i].Values, v) {
			return nil, fmt.Errorf("%s by %s: %s cannot be %d; want one of %v", a.Kind, a.Name, name, v, a.Params[i].Values)
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

// Marshal returns the table as JSON, one rule per line.
func (t *Tuning) Marshal() []byte {
	var b bytes.Buffer
	about, _ := json.Marshal(t.About) // never fails for a string
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
		r.Rails.marshal(&b, "rails")
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
