package settings

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/bytesize"
)

// Field is a field of a configuration that has an environment variable.
type Field struct {
	Path  string // such as Config.Advanced.Spin
	Type  string // string, bool, int, int64 or time.Duration
	Tag   reflect.StructTag
	Value reflect.Value // not valid if the field was found in source code
}

// Fields lists the fields of the struct that cfg points to, and of the structs in it.
func Fields(cfg any) []Field {
	v := reflect.ValueOf(cfg).Elem()
	return appendFields(nil, v.Type().Name(), v)
}

func appendFields(list []Field, path string, v reflect.Value) []Field {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Tag.Get("env") != "":
			list = append(list, Field{path + "." + f.Name, f.Type.String(), f.Tag, v.Field(i)})
		case f.Type.Kind() == reflect.Struct:
			list = appendFields(list, path+"."+f.Name, v.Field(i))
		}
	}
	return list
}

// Env returns the environment variable.
func (f *Field) Env() string { return f.Tag.Get("env") }

// Default returns the default. If it has a space, the value depends on the job.
func (f *Field) Default() string { return f.Tag.Get("default") }

// Text returns the value as it is written in the environment.
func (f *Field) Text() string {
	if f.Type == "bool" {
		return OnOff(f.Value.Bool())
	}
	return fmt.Sprint(f.Value.Interface())
}

// OnOff returns a bool as it is written in the environment.
func OnOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// AllowedValues describes the allowed values; "" if neither the type nor a tag restricts them.
func (f *Field) AllowedValues() string {
	if choices := f.Tag.Get("choices"); choices != "" {
		return enumerate(strings.Split(choices, ","))
	}
	switch f.Type {
	case "bool":
		return "on or off"
	case "string":
		return ""
	}
	lo, hi, limited := strings.Cut(f.Tag.Get("range"), "..")
	switch {
	case !limited:
		return "more than 0"
	case lo == "" && hi == "":
		return "any number"
	case hi == "":
		return "at least " + lo
	case lo == "":
		return "at most " + hi
	}
	return lo + " to " + hi
}

// number parses a number or a duration of the type of f.
func (f *Field) number(s string) (int64, error) {
	if f.Type == "time.Duration" {
		d, err := time.ParseDuration(s)
		if err != nil {
			return 0, errors.New("want a duration such as 90s")
		}
		return int64(d), nil
	}
	n, err := bytesize.Parse(s)
	if err != nil || f.Value.IsValid() && f.Value.OverflowInt(n) {
		return 0, errors.New("want a whole number, or a size such as 64K")
	}
	return n, nil
}

// set sets the field to a value from the environment.
func (f *Field) set(s string) error {
	switch f.Type {
	case "string":
		f.Value.SetString(s)
	case "bool":
		on, err := strconv.ParseBool(s)
		if err != nil && s != OnOff(true) && s != OnOff(false) {
			return errors.New("want on or off, or 1 or 0")
		}
		f.Value.SetBool(on || s == OnOff(true))
	default:
		n, err := f.number(s)
		if err != nil {
			return err
		}
		f.Value.SetInt(n)
	}
	return nil
}

// check returns an error if the value is not allowed. more checks what no tag can say.
func (f *Field) check(more func(string) error) error {
	if f.Value.IsZero() || f.Type == "bool" {
		return nil
	}
	var err error
	if choices := f.Tag.Get("choices"); choices != "" {
		more = OneOf(strings.Split(choices, ",")...)
	}
	if f.Type != "string" {
		more = f.checkRange
	}
	if more != nil {
		err = more(f.Text())
	}
	if err != nil {
		text := f.Text()
		if f.Type == "string" {
			text = strconv.Quote(text)
		}
		err = fmt.Errorf("%s (%s) is %s; %w", f.Path, f.Env(), text, err)
	}
	return err
}

func (f *Field) checkRange(string) error {
	least, most := int64(1), int64(math.MaxInt64)
	if lo, hi, limited := strings.Cut(f.Tag.Get("range"), ".."); limited {
		least = math.MinInt64
		if n, err := f.number(lo); err == nil {
			least = n
		}
		if n, err := f.number(hi); err == nil {
			most = n
		}
	}
	if n := f.Value.Int(); n < least || n > most {
		return fmt.Errorf("want %s, or 0 for the default: %s", f.AllowedValues(), f.Default())
	}
	return nil
}

// OneOf returns a check that a text is one of some words.
func OneOf(words ...string) func(string) error {
	return func(s string) error {
		if slices.Contains(words, s) {
			return nil
		}
		hint := ""
		for _, w := range words {
			if hint == "" && editDistance(strings.ToLower(s), w) <= len(w)/3 {
				hint = "; did you mean " + w + "?"
			}
		}
		return errors.New("want " + enumerate(words) + hint)
	}
}

// enumerate lists words in a sentence: "get, put or coop".
func enumerate(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Read sets the fields of cfg from an environment of the form of os.Environ. A variable that
// begins with prefix and is neither that of a field nor one of others is an error, so that a
// misspelt setting does not pass unnoticed.
func Read(cfg any, environ []string, prefix string, others []string) error {
	fields := Fields(cfg)
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, prefix) || slices.Contains(others, name) {
			continue
		}
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Env() == name })
		if i < 0 {
			return unknown(name, prefix, fields)
		}
		if err := fields[i].set(value); err != nil {
			return fmt.Errorf("environment: %s=%s: %w", name, value, err)
		}
	}
	return nil
}

// unknown returns an error that suggests the nearest name.
func unknown(name, prefix string, fields []Field) error {
	best, dist := "", math.MaxInt
	for _, f := range fields {
		if d := editDistance(name[len(prefix):], strings.TrimPrefix(f.Env(), prefix)); d < dist {
			best, dist = f.Env(), d
		}
	}
	if dist <= len(name)/4 {
		return fmt.Errorf("environment: there is no setting %s; did you mean %s? Unset it or correct it", name, best)
	}
	return fmt.Errorf("environment: there is no setting %s; the settings are the fields of mpi.Config (go doc mpi.Config), and \"muster info\" lists them", name)
}

// Check returns an error if a value is not allowed. more has the checks of fields whose
// values are neither words nor numbers, by their variable.
func Check(cfg any, more map[string]func(string) error) error {
	for _, f := range Fields(cfg) {
		if err := f.check(more[f.Env()]); err != nil {
			return err
		}
	}
	return nil
}

// SetDefaults sets the numbers that are 0 to their default, unless that depends on the job.
func SetDefaults(cfg any) {
	for _, f := range Fields(cfg) {
		if f.Value.CanInt() && f.Value.IsZero() {
			if n, err := f.number(f.Default()); err == nil {
				f.Value.SetInt(n)
			}
		}
	}
}

// editDistance returns the number of letters to insert, remove or replace (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, diag+1)
		}
	}
	return row[len(b)]
}
