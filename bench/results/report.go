package results

// A report: every claim with its figures, as one machine measured them.

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
)

// Report lists every claim with what was measured for it. Its JSON form is what a later
// report is compared with.
type Report struct {
	Date     string        `json:"date"`
	Commit   string        `json:"commit"`
	Machine  string        `json:"machine"`
	Command  string        `json:"command"`
	Against  string        `json:"against,omitempty"` // date and commit of the report that it is compared with
	Sections []JudgedGroup `json:"sections"`
	tables   map[string]*Table
}

// JudgedGroup is a section of claims.
type JudgedGroup struct {
	Title  string   `json:"title"`
	Note   string   `json:"note,omitempty"`
	Claims []Judged `json:"claims"`
}

// Judged is a claim with its figures.
type Judged struct {
	Source  string   `json:"source"` // section of the document, or "own target"
	Text    string   `json:"text"`
	Result  string   `json:"result"`           // met, missed, not measured or not measurable
	Reason  string   `json:"reason,omitempty"` // why it is not measured
	Summary string   `json:"summary,omitempty"`
	Tables  []string `json:"tables,omitempty"`
	Date    string   `json:"date,omitempty"` // of the oldest table
	Commit  string   `json:"commit,omitempty"`
	Command string   `json:"command,omitempty"`
	Loaded  bool     `json:"loaded,omitempty"`
	Figures []Figure `json:"figures,omitempty"`
}

// Results of a claim.
const (
	Met           = "met"
	WithinNoise   = "within noise" // the median misses, but not all rounds
	Missed        = "missed"
	Bounded       = "bounded" // missed, and the claim has a bound
	NotMeasured   = "not measured"
	NotMeasurable = "not measurable here"
)

// Figure is one figure of a claim.
type Figure struct {
	Table string `json:"table"`
	Row   string `json:"row"`
	Unit  string `json:"unit"`
	// Value is the median of the rounds, Low and High their range. A figure that was not
	// measured has no rounds.
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Rounds int     `json:"rounds"`
	Op     string  `json:"op"`
	Limit  float64 `json:"limit"` // figure of the document, or target
	// Points: it is a percentage, so that changes are differences.
	Points bool `json:"points,omitempty"`
	// All are the figures of all contenders, as shown.
	All []Named `json:"all,omitempty"`
	// Change is set if there is an earlier report with the same figure.
	Change *Change `json:"change,omitempty"`
}

// Named is the figure of a contender.
type Named struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Measured reports whether the figure has a value.
func (f *Figure) Measured() bool { return f.Rounds > 0 }

// Met reports whether the figure is within its limit.
func (f *Figure) Met() bool {
	p := point{value: f.Value, op: f.Op, limit: f.Limit}
	return f.Measured() && p.met()
}

// Judge judges every claim by tables. why has the reason for each table that is absent.
func Judge(sections []Section, tables map[string]*Table, why func(pattern string) string) *Report {
	r := &Report{tables: tables}
	for _, s := range sections {
		group := JudgedGroup{Title: s.Title, Note: s.Note}
		for i := range s.Claims {
			group.Claims = append(group.Claims, s.Claims[i].judge(tables, why))
		}
		r.Sections = append(r.Sections, group)
	}
	return r
}

func (c *Claim) judge(all map[string]*Table, why func(string) string) Judged {
	j := Judged{Source: "own target", Text: c.Text, Result: NotMeasurable, Reason: c.Reason}
	if c.Source != "" {
		j.Source = strings.ToUpper(c.Source) + " " + c.Where
	}
	if c.Reason != "" {
		return j
	}
	if c.Bound != "" {
		j.Text += "; bound: " + c.Bound
	}
	used := c.tables(all)
	points := c.pointsOf(used)
	j.Result, j.Command = c.result(points), "muster bench report --only '"+c.Tables+"'"
	if len(used) > 0 {
		j.Summary = c.summarize(points)
		oldest := oldestOf(used)
		j.Date, j.Commit = oldest.Stamp.Date, oldest.Stamp.Commit
	}
	for _, t := range used {
		j.Tables, j.Loaded = append(j.Tables, t.Name), j.Loaded || t.Loaded
	}
	if j.Result == NotMeasured {
		j.Reason = why(c.Tables)
	}
	for _, p := range points {
		if p.table == nil {
			continue
		}
		f := Figure{Table: p.table.Name, Row: p.row[0], Unit: p.unit, Op: p.op, Limit: p.limit, Points: c.Gap || p.unit == "%", All: p.table.contenders(p.row)}
		if !math.IsNaN(p.value) {
			f.Value, f.Low, f.High, f.Rounds = p.value, p.low, p.high, p.table.Rounds
		}
		j.Figures = append(j.Figures, f)
	}
	return j
}

// contenders returns the figures of a row.
func (t *Table) contenders(row []string) (all []Named) {
	for i := 1; i < len(row); i++ {
		name := t.Head[i]
		if name == "" || strings.HasPrefix(name, "must be") {
			continue
		}
		all = append(all, Named{name, row[i]})
	}
	return all
}

// Counts returns how many claims have a result.
func (r *Report) Counts() map[string]int {
	counts := map[string]int{}
	for _, s := range r.Sections {
		for _, c := range s.Claims {
			counts[c.Result]++
		}
	}
	return counts
}

// ReadReport reads the JSON form of a report.
func ReadReport(path string) (*Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Report)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s is not a report that muster bench report has written as JSON: %w", path, err)
	}
	if len(r.Sections) == 0 {
		return nil, fmt.Errorf("%s has no claims: it is not a report of muster bench report", path)
	}
	return r, nil
}
