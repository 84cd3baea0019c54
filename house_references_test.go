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
)

// Every source that a Go file or a page cites is listed in docs/references.md, and
// every relative link of a page leads to a file.

const referencesPage = "docs/references.md"

var (
	listedSource = regexp.MustCompile(`<a id="[^"]+"></a>([^|]+?) \|`)
	citedRFC     = regexp.MustCompile(`\bRFC ?([0-9]{3,5})\b`)
	citedSeed    = regexp.MustCompile(`\b([TP][1-9]) (?:[0-9]+\.[0-9]|ch|table|fig|eq|§)`)
	citedMPI     = regexp.MustCompile(`\bMPI-[0-9]\.[0-9]\b`)
	// A paper is cited by the family name of its first author and the year.
	algorithmRef = regexp.MustCompile(`\bRef: +"([^"]*)"`)
	citedPaper   = regexp.MustCompile(`^(?:T2 [^;]*)?\b(\p{Lu}[\p{L}-]+)(?:,| et al)?.*?\b((?:19|20)[0-9]{2})\b`)
	codeSpan     = regexp.MustCompile("`[^`\n]*`")
	pageLink     = regexp.MustCompile(`\]\(([^)\s#]+)(?:#[^)]*)?\)`)
)

func TestCitationsAndLinks(t *testing.T) {
	tree := os.DirFS(".")
	page, err := fs.ReadFile(tree, referencesPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range checkCitations(tree, listedIn(string(page))) {
		t.Error(fault)
	}
}

func TestUnlistedCitations(t *testing.T) {
	listed := listedIn("| <a id=\"rfc5040\"></a>RFC 5040 | x |\n| <a id=\"bruck-1997\"></a>Bruck 1997 | x |\n")
	for text, want := range map[string]string{
		"// as RFC 5040 section 3 says":                           "",
		"// as RFC5040 has it":                                    "",
		"// as RFC 9999 section 3 says":                           "RFC 9999",
		"// T1 4.2.3 says so":                                     "T1",
		"// MPI-4.1 section 3.5":                                  "MPI-4.1",
		`Ref: "Bruck et al., IEEE TPDS 8(11), 1997; T2"`:          "",
		`Ref: "Nobody, Noone 1984"`:                               "Nobody 1984",
		`Ref: "Bruck, Ho 1997; for any number as Nobody 1984"`:    "Nobody 1984",
		`Ref: "MPI section 6; halves in the order of ranks 2024"`: "",
	} {
		missing := strings.Join(unlisted(text, listed), ", ")
		if missing != want {
			t.Errorf("%q: not listed: %q, want %q", text, missing, want)
		}
	}
}

// listedIn returns the short names of the sources on the page of references.
func listedIn(page string) map[string]bool {
	listed := map[string]bool{}
	for _, m := range listedSource.FindAllStringSubmatch(page, -1) {
		listed[m[1]] = true
	}
	return listed
}

// checkCitations walks the Go files and pages of the tree.
func checkCitations(tree fs.FS, listed map[string]bool) []string {
	var faults []string
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (p != "." && strings.HasPrefix(d.Name(), ".") || p == "bin"):
			return fs.SkipDir
		case p == referencesPage || p == "house_references_test.go" || path.Ext(p) != ".go" && path.Ext(p) != ".md":
			return nil
		}
		text, err := fs.ReadFile(tree, p)
		if err != nil {
			return err
		}
		for _, source := range unlisted(string(text), listed) {
			faults = append(faults, fmt.Sprintf("%s cites %s, which %s does not list: add it there", p, source, referencesPage))
		}
		if path.Ext(p) == ".md" {
			faults = append(faults, brokenLinks(tree, p, string(text))...)
		}
		return nil
	})
	if err != nil {
		faults = append(faults, err.Error())
	}
	return faults
}

// unlisted returns the sources that a text cites and the page does not list.
func unlisted(text string, listed map[string]bool) []string {
	var missing []string
	cite := func(source string) {
		if !listed[source] && !slices.Contains(missing, source) {
			missing = append(missing, source)
		}
	}
	for _, m := range citedRFC.FindAllStringSubmatch(text, -1) {
		cite("RFC " + m[1])
	}
	for _, m := range citedSeed.FindAllStringSubmatch(text, -1) {
		cite(m[1])
	}
	for _, m := range citedMPI.FindAllString(text, -1) {
		cite(m)
	}
	for _, ref := range algorithmRef.FindAllStringSubmatch(text, -1) {
		for part := range strings.SplitSeq(ref[1], ";") {
			part = part[strings.LastIndex(part, " as ")+1:]
			m := citedPaper.FindStringSubmatch(strings.TrimSpace(strings.TrimPrefix(part, "as ")))
			if m != nil && m[1] != "MPI" {
				cite(m[1] + " " + m[2])
			}
		}
	}
	return missing
}

// brokenLinks returns the links of a page to files that are not in the tree.
func brokenLinks(tree fs.FS, page, text string) []string {
	var faults []string
	for _, m := range pageLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(text, "code"), -1) {
		to := m[1]
		if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
			continue
		}
		if _, err := fs.Stat(tree, path.Join(path.Dir(page), to)); err != nil {
			faults = append(faults, fmt.Sprintf("%s links to %s, which is not in the tree", page, to))
		}
	}
	return faults
}
