package muster_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/doctor"
)

// Every error class and every check of muster doctor has a row in the page of causes and
// remedies, and the texts that the page quotes are in the code.

const troublePage = "docs/guide/troubleshooting.md"

func TestTroubleshootingPage(t *testing.T) {
	page, err := os.ReadFile(troublePage)
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]bool{} // cells of the first columns
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for cell := range strings.SplitSeq(cells[1], ",") {
				first[strings.TrimSpace(cell)] = true
			}
		}
	}
	for _, class := range errorClasses(t) {
		if !first["`"+class+"`"] {
			t.Errorf("%s has no row for the error class mpi.%s: its cause, and what to do", troublePage, class)
		}
	}
	for _, check := range doctor.Checks() {
		if !first[check.Name] {
			t.Errorf("%s has no row for the check %q of muster doctor", troublePage, check.Name)
		}
	}
}

// errorClasses returns the constants of type mpi.Class.
func errorClasses(t *testing.T) (names []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "mpi/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if typ, ok := v.Type.(*ast.Ident); ok && typ.Name == "Class" {
				names = append(names, v.Names[0].Name)
			}
		}
		return true
	})
	if len(names) < 30 {
		t.Fatalf("only %d error classes found", len(names))
	}
	return names
}

// TestTroubleshootingQuotes checks that the texts of the launcher and of the report of stuck
// jobs are still printed.
func TestTroubleshootingQuotes(t *testing.T) {
	var code strings.Builder
	for _, folder := range []string{"cmd/muster", "internal/launch", "internal/settings", "internal/doctor", "mpi", "rdma"} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
				text, err := os.ReadFile(folder + "/" + e.Name())
				if err != nil {
					t.Fatal(err)
				}
				code.Write(text)
			}
		}
	}
	for _, text := range []string{
		"there is no program", "looks like a flag", "are in none of", "there is no setting", "different builds",
		"run all ranks from the same build", "nothing was heard for",
		"no progress for", "waits in", "cycle:", "was not received", "some ranks have waited while others compute",
		"it is stopped", "it sleeps", "it waits for a disk or another device", "has not joined the job", "is still in Init",
	} {
		if !strings.Contains(code.String(), text) {
			t.Errorf("no code prints %q, which %s explains", text, troublePage)
		}
	}
}
