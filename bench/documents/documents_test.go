package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/bench/groups"
	"github.com/muster-mpi/muster/bench/results"
)

const root = "../.."

func all(t *testing.T) []Document {
	t.Helper()
	list, err := All()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// The pages have nothing that the data and the committed tables do not give.
func TestPagesAreRendered(t *testing.T) {
	tables, err := results.Load(filepath.Join(root, results.Folder))
	if err != nil {
		t.Fatal(err)
	}
	files, err := Render(tables, groups.Sections(), groups.Pages())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if have, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(have) != want {
			t.Errorf("%s is not what the data and the tables give (%v): go run ./bench/peers -page", name, err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(root, Folder))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(files) {
		t.Errorf("%s has %d files, want %d: go run ./bench/peers -page", Folder, len(entries), len(files))
	}
}

func TestFiguresAreComplete(t *testing.T) {
	for _, d := range all(t) {
		ids, headings := map[string]bool{}, map[string]bool{}
		for i := range d.Figures {
			f := &d.Figures[i]
			where := d.Name + " " + f.ID
			if ids[f.ID] || headings[anchor(f)] {
				t.Errorf("%s is there twice", where)
			}
			ids[f.ID], headings[anchor(f)] = true, true
			if f.Section == "" || f.Title == "" || !strings.HasSuffix(f.Text, ".") || d.conditionsOf(f) == "" {
				t.Errorf("%s has no section, title, sentence or conditions", where)
			}
			if f.Kind() == "not measurable" && f.Missing == "" {
				t.Errorf("%s is not measurable, and does not say what is missing", where)
			}
			if f.Simulated && !strings.Contains(strings.Join(f.Tables(), " "), "sim-") {
				t.Errorf("%s is simulated, and has no table of the simulator", where)
			}
			for _, v := range f.Values {
				if v.Of == "" || v.Value == "" {
					t.Errorf("%s has a value without a text", where)
				}
				if _, err := regexp.Compile(v.Rows); err != nil {
					t.Errorf("%s: %v", where, err)
				}
			}
		}
	}
}

func TestAxisOfLabels(t *testing.T) {
	cells := []cell{{label: "8 B, rc, 2 connections"}, {label: "8 B, rc, 4 connections"}, {label: "8 B, rc, 8 connections"}}
	a := axisOf(cells)
	if a == nil || a.title != "connections" {
		t.Fatalf("the axis of connections is %v", a)
	}
	if x, rest, ok := a.parse(cells[1].label); x != 4 || rest != "8 B, rc" || !ok {
		t.Errorf("%q is at %v, %q", cells[1].label, x, rest)
	}
	if a := axisOf(cells[:2]); a != nil {
		t.Errorf("two points make a line over %s", a.title)
	}
}

func TestFiguresAreSelected(t *testing.T) {
	d, err := Find("t1")
	if err != nil {
		t.Fatal(err)
	}
	if list, err := d.Select("table 5.1"); err != nil || len(list) != 1 {
		t.Errorf("table 5.1: %v, %v", list, err)
	}
	if _, err := d.Select("9.9"); err == nil {
		t.Error("a figure that does not exist is no error")
	}
	if _, err := Find("T9"); err == nil {
		t.Error("a document that does not exist is no error")
	}
}
