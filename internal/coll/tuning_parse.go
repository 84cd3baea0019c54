package coll

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Parsing of a tuning table. It is read token by token, so that errors can name the
// line: users edit these files.

// ParseTuning parses a tuning table in the format of Marshal.
func ParseTuning(data []byte) (*Tuning, error) {
	p := &tuningParser{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	t := &Tuning{}
	err := p.object("the table", []string{"about", "rules"}, func(key string) error {
		if key == "about" {
			return p.value(&t.About, "a text")
		}
		return p.list("rules", func() error {
			r, err := p.rule()
			t.Rules = append(t.Rules, r)
			return err
		})
	})
	if err == nil {
		if _, more := p.dec.Token(); more != io.EOF {
			err = p.fault("there is more after the end of the table")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("tuning table: %w", err)
	}
	return t, nil
}

type tuningParser struct {
	data []byte
	dec  *json.Decoder
}

// rule reads one rule. Valid algorithms and parameters depend on fields that may follow
// them, so they are looked up at the end.
func (p *tuningParser) rule() (Rule, error) {
	var r Rule
	var kind, algorithm string
	var params map[string]int
	var kindAt, algorithmAt, paramsAt int64
	err := p.object("a rule", []string{"kind", "ranks", "bytes", "nodes", "rails", "algorithm", "params"}, func(key string) (err error) {
		switch key {
		case "kind":
			err, kindAt = p.value(&kind, "the name of a collective"), p.dec.InputOffset()
		case "ranks":
			r.Ranks, err = p.bounds(key, 1)
		case "bytes":
			r.Bytes, err = p.bounds(key, 0)
		case "nodes":
			r.Nodes, err = p.bounds(key, 1)
		case "rails":
			r.Rails, err = p.bounds(key, 1)
		case "algorithm":
			err, algorithmAt = p.value(&algorithm, "the name of an algorithm"), p.dec.InputOffset()
		case "params":
			err, paramsAt = p.value(&params, `names and whole numbers, as in {"ports": 2}`), p.dec.InputOffset()
		}
		return err
	})
	if err != nil {
		return r, err
	}
	if kind == "" || algorithm == "" {
		return r, p.fault(`a rule needs "kind" and "algorithm"`)
	}
	if r.Kind, err = ParseKind(kind); err != nil {
		return r, p.faultAt(kindAt, "%v", err)
	}
	if r.Algorithm, err = Find(r.Kind, algorithm); err != nil {
		return r, p.faultAt(algorithmAt, "%v", err)
	}
	if r.Params, err = r.Algorithm.ParseParams(params); err != nil {
		return r, p.faultAt(paramsAt, "%v", err)
	}
	return r, nil
}

// bounds reads a range.
func (p *tuningParser) bounds(key string, least int) (r Range, err error) {
	var ends []int
	if err = p.value(&ends, "one or two whole numbers in brackets"); err != nil {
		return r, err
	}
	switch {
	case len(ends) == 1 && ends[0] >= least:
		return Range{Min: ends[0]}, nil
	case len(ends) == 2 && ends[0] >= least && ends[1] >= max(ends[0], 1):
		return Range{ends[0], ends[1]}, nil
	}
	return r, p.fault("%q is %v; it must be [from] or [from, to], with from at least %d and to at least from and 1", key, ends, least)
}

// object reads { … } and calls field for each key, which must be one of keys and
// come once.
func (p *tuningParser) object(what string, keys []string, field func(key string) error) error {
	if err := p.delim('{', what); err != nil {
		return err
	}
	var seen []string
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return p.syntax(err)
		}
		key := token.(string) // the decoder accepts nothing else here
		switch {
		case !slices.Contains(keys, key):
			return p.fault("%s has no %q; it can have %s", what, key, strings.Join(keys, ", "))
		case slices.Contains(seen, key):
			return p.fault("%s has %q twice", what, key)
		}
		seen = append(seen, key)
		if err := field(key); err != nil {
			return err
		}
	}
	return p.delim('}', what)
}

// list reads [ … ].
func (p *tuningParser) list(what string, item func() error) error {
	if err := p.delim('[', what); err != nil {
		return err
	}
	for p.dec.More() {
		if err := item(); err != nil {
			return err
		}
	}
	return p.delim(']', what)
}

func (p *tuningParser) delim(want json.Delim, what string) error {
	token, err := p.dec.Token()
	if err != nil {
		return p.syntax(err)
	}
	if token != want {
		return p.fault("%s: %q must be here, not %v", what, want, token)
	}
	return nil
}

// value reads one value.
func (p *tuningParser) value(to any, what string) error {
	err := p.dec.Decode(to)
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return p.fault("%s is here; it must be %s", kind.Value, what)
	}
	if err != nil {
		return p.syntax(err)
	}
	return nil
}

func (p *tuningParser) syntax(err error) error {
	var at *json.SyntaxError
	switch {
	case errors.As(err, &at):
		return p.faultAt(at.Offset, "this is no JSON: %v", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return p.faultAt(int64(len(p.data)), "the table ends in the middle")
	}
	return p.fault("%v", err)
}

func (p *tuningParser) fault(format string, args ...any) error {
	return p.faultAt(p.dec.InputOffset(), format, args...)
}

func (p *tuningParser) faultAt(offset int64, format string, args ...any) error {
	before := p.data[:min(int(offset), len(p.data))]
	return fmt.Errorf("line %d: %s", 1+bytes.Count(before, []byte("\n")), fmt.Sprintf(format, args...))
}
