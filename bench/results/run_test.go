package results

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestRunNeedsStampAndFigures(t *testing.T) {
	for field, spoil := range map[string]func(r *Run){
		"commit":                  func(r *Run) { r.Commit = "" },
		"machine":                 func(r *Run) { r.Machine = " " },
		"has no date":             func(r *Run) { r.Tables[0].Stamp.Date = "" },
		"the date of its stamp":   func(r *Run) { r.Tables[0].Stamp.Date = "yesterday" },
		"versions":                func(r *Run) { r.Tables[0].Stamp.Versions = "" },
		"command":                 func(r *Run) { r.Tables[0].Stamp.Command = "" },
		"no rows":                 func(r *Run) { r.Tables[0].Rows = nil },
		"1 cells, the head has 6": func(r *Run) { r.Tables[0].Rows[0] = []string{"8 B"} },
		"no rounds":               func(r *Run) { r.Tables[0].Rounds = 0 },
	} {
		r := exampleRun()
		spoil(r)
		if err := r.complete(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("a run without %s: %v", field, err)
		}
	}
	if err := new(Run).Add(t.TempDir(), &Table{Name: "y", Head: []string{"", "Muster"}}, "", nil); err == nil {
		t.Error("a table without figures was written")
	}
}

// TestRunsKeepNewestFigures writes runs table by table: the newest figure of each table counts, and a
// run is removed when none of its figures does.
func TestRunsKeepNewestFigures(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, filepath.FromSlash(Folder))
	add := func(r *Run, names ...string) {
		t.Helper()
		for _, name := range names {
			table := *exampleRun().Tables[0]
			table.Name, table.Title = name, r.Command+` measured "`+name+`" <here>`
			if err := r.Add(folder, &table, r.Command+" -only "+name, []string{"Open MPI 4.1.4"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, second, third := NewRun("a", "first", 3), NewRun("b", "second", 3), NewRun("c", "third", 3)
	second.Date, third.Date = first.Date, first.Date // all in the same second
	add(first, "x", "y")
	add(second, "y")
	have, err := Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(have)); !slices.Equal(names, []string{"x", "y"}) {
		t.Fatalf("the folder has %v", names)
	}
	if !reflect.DeepEqual(have["x"], first.Tables[0]) || !reflect.DeepEqual(have["y"], second.Tables[0]) {
		t.Errorf("the tables are %+v and %+v", have["x"], have["y"])
	}
	if text, err := os.ReadFile(first.file); err != nil || !strings.Contains(string(text), `        ["2 MB", "-", "-", "-", "≤ 1 ×", "-"]`+"\n") {
		t.Errorf("a row is not a line of the file (%v):\n%s", err, text)
	}
	add(third, "x")
	if err := WritePages(root, nil, []TablePage{{Name: "pairs", Title: "Pairs", Tables: []string{"y", "z", "x"}}, {Name: "none", Tables: []string{"z"}}}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if want := []string{second.file, third.file, filepath.Join(folder, "README.md"), filepath.Join(folder, "pairs.md")}; err != nil || !slices.Equal(files, want) {
		t.Errorf("the folder has %v, want %v (%v)", files, want, err)
	}
	page, err := os.ReadFile(filepath.Join(folder, "pairs.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Pairs\n\n## y\n\nsecond measured \"y\" <here>\n", "\n\n## x\n\nthird", "| 8 B |", third.Tables[0].Stamp.Date + " UTC, commit c: `third -only x`."} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	if err := os.WriteFile(second.file, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(folder); err == nil || !strings.Contains(err.Error(), "no tables") {
		t.Errorf("a file without tables: %v", err)
	}
}
