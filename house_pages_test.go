package muster_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Decisions are pages of docs/decisions or paragraphs of its archive, and a number that the
// tree cites is one of them. A reader reaches every page from docs/README.md in two steps.

const (
	decisionIndex   = "docs/decisions/README.md"
	decisionArchive = "docs/decisions/archive.md"
	startPage       = "docs/README.md"
	maxSteps        = 2
	maxWords        = 60_000 // of docs without results: what a person can read, and keep true
)

var (
	decisionHead  = regexp.MustCompile(`^# ([0-9]{3}) (.+)\n\nStatus: (.+)\n`)
	decisionRow   = regexp.MustCompile(`(?m)^\| ([0-9]{3}) \|`)
	archived      = regexp.MustCompile(`(?m)^<a id="([0-9]{3})"></a>\*\*([0-9]{3}) \S.*?\.\*\* \S`)
	citedDecision = regexp.MustCompile(`(?i)\bdecisions?\s+(?://\s*)?\[?([0-9]{3})\b`)
	citesDecision = []string{".go", ".md", ".c", ".h", ".s", ".txt", ".sh"}
)

func TestDecisions(t *testing.T) {
	for _, fault := range checkDecisions(os.DirFS(".")) {
		t.Error(fault)
	}
}

// checkDecisions compares the pages with the index, and citations with pages and archive.
func checkDecisions(tree fs.FS) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	index, _ := fs.ReadFile(tree, decisionIndex)
	archive, _ := fs.ReadFile(tree, decisionArchive)
	known := map[string]bool{}
	pages, _ := fs.Glob(tree, "docs/decisions/[0-9]*.md")
	for _, p := range pages {
		page, _ := fs.ReadFile(tree, p)
		m := decisionHead.FindStringSubmatch(string(page))
		if m == nil || !strings.HasPrefix(path.Base(p), m[1]+"-") {
			fault("%s does not begin with \"# NUMBER Title\", an empty line and \"Status: ...\"", p)
			continue
		}
		known[m[1]] = true
		if row := fmt.Sprintf("| %s | [%s](%s) | %s |\n", m[1], m[2], path.Base(p), m[3]); !strings.Contains(string(index), row) {
			fault("%s has no row %s", decisionIndex, strings.TrimSpace(row))
		}
	}
	if rows := len(decisionRow.FindAll(index, -1)); rows != len(pages) {
		fault("%s has %d rows for %d decisions", decisionIndex, rows, len(pages))
	}
	for _, m := range archived.FindAllStringSubmatch(string(archive), -1) {
		if known[m[1]] || m[1] != m[2] {
			fault("%s: decision %s has a page, another paragraph or the anchor %s", decisionArchive, m[2], m[1])
		}
		known[m[2]] = true
	}
	if n := strings.Count(string(archive), `<a id="`); n != len(archived.FindAll(archive, -1)) {
		fault("%s: a paragraph is not <a id=\"NUMBER\"></a>**NUMBER Title.** text", decisionArchive)
	}
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (p != "." && strings.HasPrefix(d.Name(), ".") || p == "bin"):
			return fs.SkipDir
		case d.IsDir() || p == "house_pages_test.go" || !slices.Contains(citesDecision, path.Ext(p)):
			return nil
		}
		text, err := fs.ReadFile(tree, p)
		for _, m := range citedDecision.FindAllStringSubmatch(string(text), -1) {
			if !known[m[1]] {
				fault("%s cites decision %s, which is neither a page of docs/decisions nor in its archive", p, m[1])
			}
		}
		return err
	})
	if err != nil {
		fault("%v", err)
	}
	return faults
}

func TestDecisionCheckFindsFaults(t *testing.T) {
	const page, row, note = "# 002 A\n\nStatus: accepted\n", "| 002 | [A](002-a.md) | accepted |\n", "<a id=\"001\"></a>**001 B.** Because.\n"
	for name, c := range map[string]struct{ page, index, archive, code, want string }{
		"consistent":       {page, row, note, "// see decision 001\n// and decision\n// 002\n", ""},
		"no such decision": {page, row, note, "// see decision 003\n", "a.go cites decision 003, which is neither a page of docs/decisions nor in its archive"},
		"no row":           {page, "", note, "", "docs/decisions/README.md has no row | 002 | [A](002-a.md) | accepted |; docs/decisions/README.md has 0 rows for 1 decisions"},
		"no status":        {"# 002 A\n", row, note, "", "docs/decisions/002-a.md does not begin with \"# NUMBER Title\", an empty line and \"Status: ...\""},
		"twice":            {page, row, strings.ReplaceAll(note, "001", "002"), "", "docs/decisions/archive.md: decision 002 has a page, another paragraph or the anchor 002"},
		"no paragraph":     {page, row, "<a id=\"001\"></a>**001 B.**\n", "", "docs/decisions/archive.md: a paragraph is not <a id=\"NUMBER\"></a>**NUMBER Title.** text"},
	} {
		tree := fstest.MapFS{"docs/decisions/002-a.md": {Data: []byte(c.page)}, decisionIndex: {Data: []byte(c.index)}, decisionArchive: {Data: []byte(c.archive)}, "a.go": {Data: []byte(c.code)}}
		if got := strings.Join(checkDecisions(tree), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestPagesAreReachable(t *testing.T) {
	for _, fault := range checkReachable(os.DirFS(".")) {
		t.Error(fault)
	}
}

// checkReachable follows links from the start page and returns the pages of docs that need
// more steps.
func checkReachable(tree fs.FS) (faults []string) {
	reached, level := map[string]bool{startPage: true}, []string{startPage}
	for range maxSteps {
		var next []string
		for _, p := range level {
			text, _ := fs.ReadFile(tree, p)
			for _, m := range pageLink.FindAllStringSubmatch(string(text), -1) {
				if to := path.Join(path.Dir(p), m[1]); path.Ext(to) == ".md" && !reached[to] {
					reached[to], next = true, append(next, to)
				}
			}
		}
		level = next
	}
	err := fs.WalkDir(tree, "docs", func(p string, _ fs.DirEntry, err error) error {
		if path.Ext(p) == ".md" && !reached[p] {
			faults = append(faults, fmt.Sprintf("%s: more than %d steps from %s", p, maxSteps, startPage))
		}
		return err
	})
	if err != nil {
		faults = append(faults, err.Error())
	}
	return faults
}

func TestReachableCheckFindsFaults(t *testing.T) {
	page := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	tree := fstest.MapFS{startPage: page("[a](sub/a.md#x)"), "docs/sub/a.md": page("[b](../b.md)"), "docs/b.md": page("[c](c.md)"), "docs/c.md": page("")}
	if got, want := strings.Join(checkReachable(tree), "; "), "docs/c.md: more than 2 steps from docs/README.md"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDocsAreShort(t *testing.T) {
	for _, fault := range checkLength(os.DirFS(".")) {
		t.Error(fault)
	}
}

// notShown is what a reader does not see: comments, which prepare samples, and their marks.
var notShown = regexp.MustCompile("(?s)<!--.*?-->|(?m:^ *```.*$)")

// checkLength counts the words of docs without the pages of results, which are generated.
func checkLength(tree fs.FS) (faults []string) {
	words := 0
	err := fs.WalkDir(tree, "docs", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p == "docs/results" || p == "docs/documents":
			return fs.SkipDir
		case path.Ext(p) != ".md" || strings.HasPrefix(p, "docs/results") || p == "docs/studies.md":
			return nil
		}
		text, err := fs.ReadFile(tree, p)
		words += len(strings.Fields(notShown.ReplaceAllString(string(text), "")))
		return err
	})
	if err != nil {
		faults = append(faults, err.Error())
	}
	if words > maxWords {
		faults = append(faults, fmt.Sprintf("docs has %d words without results, the limit is %d: shorten pages, or move records to the archive of decisions", words, maxWords))
	}
	return faults
}

func TestLengthCheckFindsFaults(t *testing.T) {
	page := func(words int) *fstest.MapFile { return &fstest.MapFile{Data: []byte(strings.Repeat("a\n", words))} }
	tree := fstest.MapFS{"docs/a.md": page(maxWords - 1), "docs/sub/b.md": {Data: []byte("a <!-- b\nb -->\n```console like\n```")}, "docs/results.md": page(9), "docs/results-x.md": page(9), "docs/studies.md": page(9), "docs/results/c.md": page(9), "docs/documents/t1.md": page(9), "docs/d.txt": page(9), "README.md": page(9)}
	if faults := checkLength(tree); len(faults) != 0 {
		t.Errorf("%q, want none", faults)
	}
	tree["docs/sub/b.md"] = page(2)
	if faults := checkLength(tree); len(faults) != 1 {
		t.Errorf("%d faults of a word too many, want 1", len(faults))
	}
}
