//go:build cabi

package cabi_test

import (
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSymbols checks that a library defines both names of every function, and whatever the
// library of Debian defines for programs: Python loads it with RTLD_NOW, so that a missing
// symbol is an error although nobody uses it. Objects must have the size that programs copy.
func TestSymbols(t *testing.T) {
	for _, c := range []struct {
		abi      string // its file in folder abi
		library  string
		count    int
		public   *regexp.Regexp // names that programs use
		others   []string
		absent   *regexp.Regexp // names of Debian's library that are not for programs
		variable *regexp.Regexp
	}{
		{"mpich", "libmpich.so.12", 600, regexp.MustCompile(`^P?MPIX?_`),
			[]string{"MPI_UNWEIGHTED", "MPI_WEIGHTS_EMPTY", "MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE"}, regexp.MustCompile(`^$`), regexp.MustCompile(`^$`)},
		{"openmpi", "libmpi.so.40", 580, regexp.MustCompile(`^P?MPIX?_|^OMPI_C_`),
			[]string{"MPI_Comm_c2f", "PMPI_Type_f2c", "mpi_fortran_bottom_", "ompi_attr_create_keyval_fint"},
			regexp.MustCompile(`_(FN|FN_NULL)$|_F90$|MPI_(AINT_ADD|AINT_DIFF|SIZEOF)|^[A-Z_]+$|^P?MPIX_(Query_cuda|.*_stub)|OMPI_Affinity`),
			regexp.MustCompile(`^ompi_(mpi_(comm_(null|self|world)|op_(?:no_op|[a-z]+)|group_(?:null|empty)|info_(null|env)|file_null|win_null|errhandler_null|errors_(are_fatal|return))|message_n\w+|request_null)$`)},
		{"mpi5", "libmpi_abi.so.1", 640, regexp.MustCompile(`^$`), []string{"MPI_Comm_toint", "PMPI_Win_fromint"}, regexp.MustCompile(`^$`), regexp.MustCompile(`^$`)},
	} {
		t.Run(c.library, func(t *testing.T) {
			ours := defined(t, filepath.Join(libraries(), c.library))
			count, without := 0, withoutOf(t, c.abi)
			for _, name := range functionNames(t) {
				if without.MatchString(name) {
					continue
				}
				count++
				for _, name := range []string{name, "P" + name} {
					if _, ok := ours[name]; !ok && strings.HasPrefix(strings.TrimPrefix(name, "P"), "MPI") {
						t.Errorf("functions.txt has %s, the library does not define it", name)
					}
				}
			}
			if count < c.count {
				t.Errorf("functions.txt has only %d functions", count)
			}
			for _, name := range c.others {
				if _, ok := ours[name]; !ok {
					t.Errorf("the library does not define %s", name)
				}
			}
			debian, err := filepath.Glob("/usr/lib/*/" + c.library)
			if err != nil || len(debian) == 0 {
				t.Logf("Debian's %s is not installed: not compared", c.library)
				return
			}
			for name, size := range defined(t, debian[0]) {
				mine, ok := ours[name]
				if c.public.MatchString(name) && !c.absent.MatchString(name) && !ok {
					t.Errorf("Debian's library defines %s, ours does not", name)
				}
				if c.variable.MatchString(name) && mine != size {
					t.Errorf("the variable %s has %d bytes in Debian's library and %d in ours", name, size, mine)
				}
			}
		})
	}
}

// withoutOf returns the pattern of the functions that the library of an ABI does not have.
func withoutOf(t *testing.T, abi string) *regexp.Regexp {
	t.Helper()
	text, err := os.ReadFile("abi/" + abi + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^without (\S+)$`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("abi/%s.txt has no line that begins with without", abi)
	}
	return regexp.MustCompile(string(m[1]))
}

func functionNames(t *testing.T) (names []string) {
	t.Helper()
	table, err := os.ReadFile("functions.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		words := strings.Fields(strings.TrimPrefix(strings.TrimPrefix(line, "front "), "direct "))
		if len(words) > 0 && !strings.HasPrefix(line, "#") {
			names = append(names, words[0])
		}
	}
	return names
}

// defined returns the dynamic symbols that a library defines, with the sizes of variables.
func defined(t *testing.T, path string) map[string]uint64 {
	t.Helper()
	lib, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	symbols, err := lib.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]uint64{}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			names[s.Name] = 0
			if elf.ST_TYPE(s.Info) == elf.STT_OBJECT {
				names[s.Name] = s.Size
			}
		}
	}
	return names
}
