package muster_test

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/coll"
)

// The tables of docs/reference/api.md are made from mpi/api.txt, whose rows are checked
// against the exported names of package mpi and against the functions of the C interface, in
// both directions.

const (
	apiPage  = "docs/reference/api.md"
	apiTable = "mpi/api.txt"
	apiBegin = "<!-- tables of calls: from mpi/api.txt -->\n"
)

func TestAPIPage(t *testing.T) {
	text := readAPITable(t)
	page, err := os.ReadFile(apiPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), apiBegin)
	_, after, ok2 := strings.Cut(rest, settingsEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no lines %q and %q", apiPage, apiBegin, settingsEnd)
	}
	sections, _ := apiSections(text)
	want := before + apiBegin + "\n" + sections + "\n" + settingsEnd + after
	if want == string(page) {
		return
	}
	if !*writePages {
		t.Fatalf("%s is not what %s has: go test . -run TestAPIPage -pages.write, and review the difference", apiPage, apiTable)
	}
	if err := os.WriteFile(apiPage, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAPITableIsComplete(t *testing.T) {
	text := readAPITable(t)
	names, err := namesOfMPI()
	if err != nil {
		t.Fatal(err)
	}
	exported := exportedNames(surface().folders["mpi"])
	_, rows := apiSections(text)
	for _, fault := range apiFaults(rows, exported, names) {
		t.Errorf("%s: %s", apiTable, fault)
	}
}

// readAPITable returns the table with the rows of the collectives.
func readAPITable(t *testing.T) string {
	text, err := os.ReadFile(apiTable)
	if err != nil {
		t.Fatal(err)
	}
	exported := exportedNames(surface().folders["mpi"])
	var rows strings.Builder
	for _, f := range coll.Functions() {
		words := strings.Fields(regexp.MustCompile(`[A-Z]`).ReplaceAllString(f[coll.Blocking], " $0"))
		name := words[0] + strings.ToLower(strings.Join(append([]string{""}, words[1:]...), "_"))
		ours := slices.Clone(f[:])
		for i, name := range ours {
			if method := "Comm." + name; slices.Contains(exported, method) {
				ours[i] = method
			}
		}
		fmt.Fprintf(&rows, "%s I%s %s_init | %s |\n", name, strings.ToLower(name), name, strings.Join(ours, " "))
	}
	return strings.Replace(string(text), "@collectives\n", rows.String(), 1)
}

// TestAPIFaultsAreFound removes and adds names, and checks that each is noticed.
func TestAPIFaultsAreFound(t *testing.T) {
	exported := []string{"Send", "Comm", "Comm.Rank"}
	names := map[string]bool{"MPI_Send": true, "MPI_Comm_rank": true, "MPI_File_open": true, "MPI_ANY_TAG": false}
	good := "Send | Send |\nComm_rank ANY_TAG | Comm Comm.Rank |\nFile_* | - | no files\n"
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{"Send | Send |\n", "Send | - | no\n", "Send of package mpi has no row"},
		{"Comm.Rank", "", "Comm.Rank of package mpi has no row"},
		{"Send | Send", "Send | Send Recv", "package mpi does not export Recv"},
		{"Send | Send", "Send Recv | Send", "MPI_Recv is in neither cabi/functions.txt nor cabi/abi/mpich.txt"},
		{"Send | Send", "- | Send", "MPI_Send has no row"},
		{"File_*", "Files_*", "MPI_File_open has no row; MPI_Files_* is in neither cabi/functions.txt nor cabi/abi/mpich.txt"},
		{"no files", "", "\"File_*\" is absent without a reason"},
	} {
		_, rows := apiSections(strings.Replace(good, c.old, c.new, 1))
		if got := strings.Join(apiFaults(rows, exported, names), "; "); got != c.want {
			t.Errorf("with %q instead of %q: %q, want %q", c.new, c.old, got, c.want)
		}
	}
}

// apiRow is a line of the table.
type apiRow struct {
	mpi, ours []string
	remark    string
}

// apiSections returns the table as sections of the page, and its rows.
func apiSections(text string) (page string, rows []apiRow) {
	var b strings.Builder
	inTable := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		columns := strings.Split(line, "|")
		switch {
		case strings.HasPrefix(line, "# ") || line == "#" || line == "" && b.Len() == 0:
		case len(columns) == 3:
			r := apiRow{strings.Fields(columns[0]), strings.Fields(columns[1]), strings.TrimSpace(columns[2])}
			rows = append(rows, r)
			if !inTable {
				b.WriteString("|MPI|package `mpi`||\n|---|---|---|\n")
			}
			inTable = true
			b.WriteString(r.String())
		default:
			inTable = false
			b.WriteString(line + "\n")
		}
	}
	return b.String(), rows
}

func (r apiRow) String() string {
	standard, ours := "–", "–"
	if r.mpi[0] != "-" {
		standard = strings.ReplaceAll(strings.Join(r.mpi, ", "), "*", `\*`)
	}
	if r.ours[0] != "-" {
		shown := slices.Clone(r.ours)
		for i, name := range shown {
			if !strings.Contains(name, ".") {
				name = "mpi." + name
			}
			shown[i] = "`" + name + "`"
		}
		ours = strings.Join(shown, ", ")
	}
	return fmt.Sprintf("|%s|%s|%s|\n", standard, ours, r.remark)
}

// apiFaults compares the rows with the exported names of package mpi, and with the names of
// MPI, of which those that are true must have a row.
func apiFaults(rows []apiRow, exported []string, names map[string]bool) (faults []string) {
	listed, covered := map[string]bool{}, map[string]bool{}
	for _, r := range rows {
		if r.ours[0] == "-" && r.remark == "" {
			faults = append(faults, fmt.Sprintf("%q is absent without a reason", strings.Join(r.mpi, " ")))
		}
		for _, name := range r.ours {
			if name != "-" && !slices.Contains(exported, name) {
				faults = append(faults, "package mpi does not export "+name)
			}
			listed[name] = true
		}
		for _, pattern := range r.mpi {
			if pattern == "-" {
				continue
			}
			if !strings.HasPrefix(pattern, "MPI") {
				pattern = "MPI_" + pattern
			}
			found := false
			for name := range names {
				if ok, _ := path.Match(pattern, name); ok {
					found, covered[name] = true, true
				}
			}
			if !found {
				faults = append(faults, pattern+" is in neither cabi/functions.txt nor cabi/abi/mpich.txt")
			}
		}
	}
	for _, name := range exported {
		if !listed[name] {
			faults = append(faults, name+" of package mpi has no row")
		}
	}
	for name, needed := range names {
		if needed && !covered[name] {
			faults = append(faults, name+" has no row")
		}
	}
	slices.Sort(faults)
	return faults
}

// namesOfMPI returns the functions (true) and the constants of the C interface. Functions
// whose names end in _c, for large counts, are left out: a Go length has no other form. So
// are those with which the Fortran libraries of MPICH and Open MPI call the C library (MPII, ompi).
func namesOfMPI() (map[string]bool, error) {
	names := map[string]bool{}
	for file, column := range map[string]int{"cabi/functions.txt": 0, "cabi/abi/mpich.txt": 1} {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			if len(words) == 0 || strings.HasPrefix(line, "#") || column == 1 && words[0] != "int" && !strings.HasPrefix(words[0], "MPI") {
				continue
			}
			if words[0] == "front" || words[0] == "direct" {
				words = words[1:]
			}
			if name := words[column]; column == 1 || !strings.HasSuffix(name, "_c") && !strings.HasPrefix(name, "MPII") && !strings.HasPrefix(name, "ompi_") {
				names[name] = column == 0
			}
		}
	}
	return names, nil
}

// exportedNames returns what files export: functions, types, constants, variables, and the
// methods of exported types, as Type.Method.
func exportedNames(files []*source) (names []string) {
	for _, s := range files {
		if s.test {
			continue
		}
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = typeName(receiver(d)) + "." + name
				}
				if d.Name.IsExported() && ast.IsExported(name) {
					names = append(names, name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						names = append(names, spec.Name.Name)
					case *ast.ValueSpec:
						for _, n := range spec.Names {
							names = append(names, n.Name)
						}
					}
				}
			}
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !ast.IsExported(n) })
	slices.Sort(names)
	return slices.Compact(names)
}
