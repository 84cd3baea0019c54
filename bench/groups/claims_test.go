package groups

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/bench/documents"
	"github.com/muster-mpi/muster/bench/results"
)

const root = "../.."

// The page has no figure, result or date that the committed tables do not give.
func TestPageIsRenderedFromTables(t *testing.T) {
	tables, err := results.Load(filepath.Join(root, results.Folder))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range results.Render(Sections(), Pages(), tables) {
		page, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(page) == want {
			continue
		}
		have, wanted := strings.Split(string(page), "\n"), strings.Split(want, "\n")
		for i := range min(len(have), len(wanted)) {
			if have[i] != wanted[i] {
				t.Errorf("line %d of %s is\n%s\nand the tables in %s give\n%s", i+1, name, have[i], results.Folder, wanted[i])
				break
			}
		}
		t.Errorf("%s is not what its tables give: go run ./bench/peers -page", name)
	}
}

// Every table is on one page, and the folder has no page that is no longer generated.
func TestTablesAreOnPages(t *testing.T) {
	folder := filepath.Join(root, results.Folder)
	tables, err := results.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]int{}
	files := append(results.LeadPictures(), filepath.Base(results.IndexPage))
	for _, p := range Pages() {
		files = append(files, p.Name+".md")
		for _, name := range p.Tables {
			shown[name]++
		}
	}
	for name, n := range shown {
		if n != 1 {
			t.Errorf("table %s is on %d pages, want one", name, n)
		}
	}
	for name, table := range tables {
		if shown[name] == 0 {
			t.Errorf("table %s is on no page", name)
		}
		if table.Picture != "" {
			files = append(files, table.Picture)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".json" && !slices.Contains(files, e.Name()) {
			t.Errorf("%s/%s belongs to no table", results.Folder, e.Name())
		}
	}
}

func TestPageIsShort(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, results.Page))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(string(page))); n > 2000 { // 60 claims, their bounds, and the terms that they use
		t.Errorf("%s has %d words, at most 2,000 are allowed", results.Page, n)
	}
}

func TestEveryClaimIsListedWithResultOrReason(t *testing.T) {
	tables, err := results.Load(filepath.Join(root, results.Folder))
	if err != nil {
		t.Fatal(err)
	}
	for name, tables := range map[string]map[string]*results.Table{"measured": tables, "nothing measured": nil} {
		r := results.Judge(Sections(), tables, func(string) string { return "no lab" })
		for i, s := range r.Sections {
			if len(s.Claims) != len(Sections()[i].Claims) {
				t.Errorf("%s: %s has %d claims, want %d", name, s.Title, len(s.Claims), len(Sections()[i].Claims))
			}
			for _, c := range s.Claims {
				if known := slices.Contains([]string{results.Met, results.WithinNoise, results.Bounded, results.Missed}, c.Result); known == (c.Reason != "") {
					t.Errorf("%s: %q is %s with the reason %q", name, c.Text, c.Result, c.Reason)
				}
				if tables == nil && len(c.Figures) > 0 {
					t.Errorf("%s: %q has figures", name, c.Text)
				}
			}
		}
	}
}

// filledTables returns the tables of all groups and studies, with the value 1.
func filledTables() map[string]*results.Table {
	tables := map[string]*results.Table{}
	for _, g := range plan() {
		r := newRuns(g, Options{Rounds: 1})
		for _, who := range r.contenders {
			for i := range g.lines {
				r.values[who][i] = []float64{1}
			}
		}
		s := r.summary()
		tables[g.name] = s.table()
	}
	for _, st := range studies() {
		tables[st.name] = filledStudy(st).table()
	}
	return tables
}

// Every claim of the page names rows and columns that a group of the plan produces, so
// that a renamed row does not turn a claim into "not measured".
func TestClaimsHaveRows(t *testing.T) {
	tables := filledTables()
	for _, section := range Sections() {
		for _, c := range section.Claims {
			if c.Reason != "" {
				if c.Tables != "" {
					t.Errorf("%q has a reason not to be measured, and tables: %s", c.Text, c.Tables)
				}
				continue
			}
			if want := strings.Count(c.Tables, ",") + 1; c.Count < want {
				t.Errorf("%q: %d groups match %s, want %d", c.Text, c.Count, c.Tables, want)
			}
			if n := c.CountMeasured(tables); n == 0 {
				t.Errorf("%q: no figure in column %q of rows %q in %s", c.Text, c.Column, c.Rows, c.Tables)
			}
		}
	}
}

// Every figure of a document names tables and rows that the plan produces.
func TestDocumentsHaveRows(t *testing.T) {
	tables := filledTables()
	list, err := documents.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		for i := range d.Figures {
			f := &d.Figures[i]
			matched := func(pattern, table string) bool {
				rows := regexp.MustCompile(pattern)
				return slices.ContainsFunc(f.Ours, func(s documents.Source) bool {
					return (table == "" || table == s.Table) && tables[s.Table] != nil && slices.ContainsFunc(tables[s.Table].Rows, func(row []string) bool {
						return regexp.MustCompile(s.Rows).MatchString(row[0]) && rows.MatchString(row[0])
					})
				})
			}
			for _, s := range f.Ours {
				if tables[s.Table] == nil || !matched("", s.Table) {
					t.Errorf("%s %s: no row of %s matches %q", d.Name, f.ID, s.Table, s.Rows)
				}
			}
			for _, v := range f.Values {
				if v.Rows != "" && !matched(v.Rows, v.Table) {
					t.Errorf("%s %s, %s: no row matches %q of table %q", d.Name, f.ID, v.Of, v.Rows, v.Table)
				}
			}
		}
	}
}
