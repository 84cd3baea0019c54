package documents

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/muster-mpi/muster/bench"
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

// Every figure and table of the evaluation chapters has a row and a command. The first number of a
// range is what the chapter begins with; drawings are not figures of measurements: timing models,
// groups, and algorithms with few processes.
func TestFiguresAreThere(t *testing.T) {
	evaluated := map[string]struct {
		figures, tables, drawings []string
	}{
		"T1": {[]string{"3.1-15", "4.13-19", "5.1-10", "6.3-8"}, []string{"3.1-1", "5.1-4", "6.1-1"}, []string{"3.13", "5.2", "5.3"}},
		"T2": {[]string{"3.1-11", "4.1-6", "5.1-6", "6.2-9"}, []string{"4.1-1", "5.1-1", "6.1-3"}, []string{"3.5", "3.6", "3.7", "4.3", "4.4", "5.3", "5.4", "5.5"}},
		"P1": {[]string{"1-9"}, []string{"1-3"}, []string{"2"}},
		"P2": {[]string{"2-6"}, nil, []string{"3"}},
		"P3": {[]string{"4-12"}, []string{"1-2"}, nil},
	}
	rows := 0
	for _, d := range all(t) {
		var want []string
		for _, f := range idsOf(t, evaluated[d.Name].figures) {
			if !slices.Contains(evaluated[d.Name].drawings, f) {
				want = append(want, f)
			}
		}
		for _, id := range idsOf(t, evaluated[d.Name].tables) {
			want = append(want, "table "+id)
		}
		for _, id := range want {
			f, err := d.Select(id)
			if err != nil {
				t.Error(err)
				continue
			}
			if f[0].Kind() == "not measurable" && f[0].Missing == "" {
				t.Errorf("%s %s has neither a table nor a command, and does not say what is missing", d.Name, id)
			}
		}
		if len(d.Figures) != len(want) {
			t.Errorf("%s has %d rows, want %d", d.Name, len(d.Figures), len(want))
		}
		rows += len(want)
	}
	t.Logf("%d figures and tables", rows)
}

// idsOf returns the numbers of ranges: 3.1-3 are 3.1, 3.2 and 3.3.
func idsOf(t *testing.T, ranges []string) (ids []string) {
	t.Helper()
	for _, r := range ranges {
		from, to, _ := strings.Cut(r, "-")
		chapter, number, ok := strings.Cut(from, ".")
		if chapter += "."; !ok {
			chapter, number = "", from
		}
		low, err := strconv.Atoi(number)
		high, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil {
			t.Fatalf("%s is no range", r)
		}
		for i := low; i <= high; i++ {
			ids = append(ids, chapter+strconv.Itoa(i))
		}
	}
	return ids
}

// A text element of a picture: its place, its anchor, its other attributes and its contents.
var textElement = regexp.MustCompile(`<text x="([-\d.]+)" y="[-\d.]+" text-anchor="(\w+)"([^>]*)>([^<]*)</text>`)

// Pictures have a title, titles of axes and a legend, and no text is cut off at their sides with a
// font as wide as DejaVu Sans.
func TestPicturesAreReadable(t *testing.T) {
	const character = 0.6 // of the font size, on average
	files, err := filepath.Glob(filepath.Join(root, Folder, "*.svg"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no pictures: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var width float64
		if _, err := fmt.Sscanf(string(text), `<svg xmlns="http://www.w3.org/2000/svg" width="%f"`, &width); err != nil || width > 900 {
			t.Errorf("%s is %v pixels wide (%v)", filepath.Base(name), width, err)
		}
		texts := textElement.FindAllStringSubmatch(string(text), -1)
		for _, e := range texts {
			at, _ := strconv.ParseFloat(e[1], 64)
			size := 12.0
			_, _ = fmt.Sscanf(strings.TrimSpace(e[3]), `font-size="%f"`, &size) // other texts have the size of the picture
			n := character * size * float64(utf8.RuneCountInString(html.UnescapeString(e[4])))
			if strings.Contains(e[3], "rotate") {
				continue
			}
			left := at - map[string]float64{"middle": n / 2, "end": n}[e[2]]
			if left < 0 || left+n > width {
				t.Errorf("%s: %q is from %.0f to %.0f, and the picture %.0f wide", filepath.Base(name), e[4], left, left+n, width)
			}
		}
		if len(texts) < 5 || !strings.Contains(texts[0][3], `font-size="15"`) || !hasUnits(texts) {
			t.Errorf("%s has no title, or an axis without a title", filepath.Base(name))
		}
	}
}

// hasUnits reports whether the title of an axis has a unit, or is a ratio, a count or a size, whose
// marks have units.
func hasUnits(texts [][]string) bool {
	known := regexp.MustCompile(`\(.+\)$| / |message size|^ranks|relative to|count|uses of|peers|events|memory`)
	for _, e := range texts[1:] {
		if e[2] == "middle" && known.MatchString(html.UnescapeString(e[4])) {
			return true
		}
	}
	return false
}

func TestLabelsAreShortened(t *testing.T) {
	rows := []bench.BarRow{{Label: "cg S, 16 ranks, wait (s), auto"}, {Label: "lu S, 16 ranks, wait (s), auto"}, {Label: "lu S, 16 ranks, wait (s), never"}}
	if all := shorten(rows); all != "16 ranks, wait (s)" || rows[0].Label != "cg S, auto" || rows[2].Label != "lu S, never" {
		t.Errorf("all rows have %q; %v", all, rows)
	}
	rows = []bench.BarRow{{Label: "a, b"}, {Label: "a"}}
	if all := shorten(rows); all != "" || rows[1].Label != "a" {
		t.Errorf("a label is empty: %q, %v", all, rows)
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
