package documents

import (
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/bench/results"
)

//go:embed *.json
var data embed.FS

// names lists the documents in the order of the pages.
var names = []string{"t1", "t2", "p1", "p2", "p3"}

// Document is a dissertation or a paper.
type Document struct {
	Name  string `json:"-"` // T1
	Title string `json:"title"`
	// Conditions are those of its measurements, by chapter: the first part of a section.
	Conditions map[string]string `json:"conditions"`
	Figures    []Figure          `json:"figures"`
}

// Figure is a figure or a table of a document, and what measures the same here.
type Figure struct {
	ID         string   `json:"id"` // 4.13, or table 5.1
	Section    string   `json:"section"`
	Title      string   `json:"title"`
	Conditions string   `json:"conditions"` // in addition to those of the chapter
	Values     []Value  `json:"values"`     // none: the document only plots them
	Ours       []Source `json:"ours"`
	Y          string   `json:"y"` // what the picture shows, with the unit; "": as the column
	// Bound is what limits the figure on a machine of two cores, or by its definition.
	Bound string `json:"bound"`
	Text  string `json:"text"` // one sentence on the comparison
	// Missing is what this machine or repository does not have to measure the figure, or a part of it.
	Missing string `json:"missing"`
	// Simulated: at least one table is that of the simulator.
	Simulated bool `json:"simulated"`
	// Instead: ours is that of another application, because the document's is not available.
	Instead bool `json:"instead"`
	// Run is a command of muster, without the word muster, that shows what no table has.
	Run string `json:"run"`
}

// Value is what a document states.
type Value struct {
	Of    string `json:"of"`
	Value string `json:"value"` // with its unit
	// Rows selects the labels of our rows that are comparable; "": none is.
	Rows  string `json:"rows"`
	Table string `json:"table"` // that has the rows; "": any
	// Number is the value in the unit of our table, to be drawn; nil: not drawn. If X is not 0,
	// it is a point of a line.
	Number *float64 `json:"number"`
	X      float64  `json:"x"`
}

// Source selects figures of a table.
type Source struct {
	Table   string   `json:"table"`
	Rows    string   `json:"rows"`    // regular expression for labels; "": all
	Columns []string `json:"columns"` // headings without units; nil: ours alone
	Drawn   string   `json:"drawn"`   // rows of the picture, if they are not all
}

// All returns the documents.
func All() ([]Document, error) {
	var list []Document
	for _, name := range names {
		text, err := data.ReadFile(name + ".json")
		if err != nil {
			return nil, err
		}
		d := Document{Name: strings.ToUpper(name)}
		decoder := json.NewDecoder(strings.NewReader(string(text)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&d); err != nil {
			return nil, fmt.Errorf("%s.json: %w", name, err)
		}
		list = append(list, d)
	}
	return list, nil
}

// Names returns the names of the documents.
func Names() (list []string) {
	for _, name := range names {
		list = append(list, strings.ToUpper(name))
	}
	return list
}

// Find returns the document with a name, in upper or lower case.
func Find(name string) (*Document, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	for i := range all {
		if strings.EqualFold(all[i].Name, name) {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("no document %q; they are %s", name, strings.Join(Names(), ", "))
}

// Select returns the figures with an identifier: 4.13 or "table 5.1"; all of them for "".
func (d *Document) Select(id string) ([]Figure, error) {
	if id == "" {
		return d.Figures, nil
	}
	for _, f := range d.Figures {
		if f.ID == id {
			return []Figure{f}, nil
		}
	}
	return nil, fmt.Errorf("%s has no figure %q; --list shows them", d.Name, id)
}

// Heading is the identifier with the word "figure" or "table".
func (f *Figure) Heading() string {
	if strings.HasPrefix(f.ID, "table ") {
		return "Table " + strings.TrimPrefix(f.ID, "table ")
	}
	return "Figure " + f.ID
}

// Tables returns the names of the tables that measure the figure.
func (f *Figure) Tables() (list []string) {
	for _, s := range f.Ours {
		if !slices.Contains(list, s.Table) {
			list = append(list, s.Table)
		}
	}
	return list
}

// Kind is how the figure is shown: measured, simulated, of another application, by a command, or not
// measurable.
func (f *Figure) Kind() string {
	switch {
	case len(f.Ours) > 0 && f.Simulated:
		return "simulated"
	case len(f.Ours) > 0 && f.Instead:
		return "another application"
	case len(f.Ours) > 0:
		return "measured"
	case f.Run != "":
		return "command"
	}
	return "not measurable"
}

// conditionsOf returns the conditions of a figure.
func (d *Document) conditionsOf(f *Figure) string {
	chapter, _, _ := strings.Cut(f.Section, ".")
	return strings.TrimSpace(d.Conditions[chapter] + " " + f.Conditions)
}

// cell is one of our figures.
type cell struct {
	table          *results.Table
	label, column  string // the heading without its unit
	name           string // of the row in a picture
	unit           string
	mid, low, high float64
}

// cells returns what a source selects of the tables, without figures that are not finite.
func (s *Source) cells(tables map[string]*results.Table) (list []cell) {
	t := tables[s.Table]
	if t == nil {
		return nil
	}
	rows := regexp.MustCompile(s.Rows)
	for _, row := range t.Rows {
		if !rows.MatchString(row[0]) {
			continue
		}
		for _, i := range s.columns(t) {
			heading, unit := results.SplitHead(t.Head[i])
			c := cell{table: t, label: row[0], column: heading, unit: unit}
			if heading == "ratio" || unit == "ratio" {
				c.unit = "×"
			}
			if c.mid, c.low, c.high = results.Value(row[i]); !math.IsNaN(c.mid) {
				list = append(list, c)
			}
		}
	}
	return list
}

// columns returns the indices of the columns that a source selects.
func (s *Source) columns(t *results.Table) (list []int) {
	wanted := s.Columns
	if wanted == nil {
		wanted = []string{"Muster"}
	}
	for i, h := range t.Head {
		name, _ := results.SplitHead(h)
		if slices.Contains(wanted, name) {
			list = append(list, i)
		}
	}
	return list
}
