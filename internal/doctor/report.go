package doctor

// The text report: one line per check, with the hosts if there are several, and the advice
// below each warning and problem.

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Report is a survey with its judgement. muster doctor --json prints it as JSON.
type Report struct {
	Survey
	Results  []Result `json:"checks"`
	Warnings int      `json:"warnings"`
	Problems int      `json:"problems"`
}

// NewReport judges a survey.
func NewReport(s *Survey) *Report {
	r := &Report{Survey: *s, Results: Judge(s)}
	_, r.Warnings, r.Problems = Count(r.Results)
	return r
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// Style is how a report is written.
type Style struct {
	Verbose bool // also why each check matters, and the data
	// Paint, if not nil, returns the word of a level in its color.
	Paint func(Level, string) string
}

// WriteText writes the table.
func (r *Report) WriteText(w io.Writer, style Style) error {
	verbose, paint := style.Verbose, style.Paint
	if paint == nil {
		paint = func(_ Level, word string) string { return word }
	}
	var b strings.Builder
	many := len(r.Hosts) > 1
	for i := range r.Results {
		res := &r.Results[i]
		shown := res.Findings
		if !verbose {
			shown = r.shorten(res)
		}
		for _, f := range shown {
			level := f.Level.String()
			pad := strings.Repeat(" ", levelWidth-len(level))
			fmt.Fprintf(&b, "%s%s %-15s %s\n", paint(f.Level, level), pad, res.Check, r.hostPrefix(f, many)+f.Detail)
			if f.Advice != "" {
				fmt.Fprintf(&b, "%-*s %-15s → %s\n", levelWidth, "", "", f.Advice)
			}
			if verbose {
				for _, m := range append([]string{"(" + res.Why + ")"}, f.More...) {
					fmt.Fprintf(&b, "%-*s %-15s   %s\n", levelWidth, "", "", m)
				}
			}
		}
	}
	ok, warnings, problems := Count(r.Results)
	fmt.Fprintf(&b, "\n%d checks: %d ok, %s, %s\n", len(r.Results), ok, plural(warnings, "warning"), plural(problems, "problem"))
	_, err := io.WriteString(w, b.String())
	return err
}

// levelWidth is the width of the column of levels.
const levelWidth = 8

// shorten omits the OK findings if there are others, and merges different OK findings of
// several hosts into one line.
func (r *Report) shorten(res *Result) (shown []Finding) {
	var good []Finding
	for _, f := range res.Findings {
		if f.Level == OK {
			good = append(good, f)
		} else {
			shown = append(shown, f)
		}
	}
	switch {
	case len(shown) > 0:
		return shown
	case len(good) == 1:
		return good
	}
	var hosts []string
	for _, f := range good {
		hosts = append(hosts, f.Hosts...)
	}
	return []Finding{fine("ok on each host, with different values: see -v").addHosts(hosts...)}
}

// hostPrefix returns the hosts of a finding as a prefix of its line, or "" with one host.
func (r *Report) hostPrefix(f Finding, many bool) string {
	switch {
	case !many:
		return ""
	case len(f.Hosts) == len(answeringHosts(&r.Survey)) && len(f.Hosts) > 1:
		return "all: "
	}
	return strings.ReplaceAll(someOf(f.Hosts), ";", ",") + ": "
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
