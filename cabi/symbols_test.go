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

// TestSymbols checks that the library defines both names of every function, and whatever
// Debian's library defines for programs: Python loads it with RTLD_NOW, so that a missing
// symbol is an error although nobody uses it.
func TestSymbols(t *testing.T) {
	ours := defined(t, filepath.Join(libraries(), "libmpich.so.12"))
	table, err := os.ReadFile("functions.txt")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(string(table)) {
		words := strings.Fields(strings.TrimPrefix(strings.TrimPrefix(line, "front "), "direct "))
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		count++
		for _, name := range []string{words[0], "P" + words[0]} {
			if !ours[name] {
				t.Errorf("functions.txt has %s, the library does not define it", name)
			}
		}
	}
	if count < 600 {
		t.Errorf("functions.txt has only %d functions", count)
	}
	for _, name := range []string{"MPI_UNWEIGHTED", "MPI_WEIGHTS_EMPTY", "MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE"} {
		if !ours[name] {
			t.Errorf("the library does not define the variable %s", name)
		}
	}
	debian, err := filepath.Glob("/usr/lib/*/libmpich.so.12")
	if err != nil || len(debian) == 0 {
		t.Log("Debian's libmpich.so.12 is not installed: not compared")
		return
	}
	public := regexp.MustCompile(`^P?MPIX?_`)
	for name := range defined(t, debian[0]) {
		if public.MatchString(name) && !ours[name] {
			t.Errorf("MPICH's library defines %s, ours does not", name)
		}
	}
}

// defined returns the dynamic symbols that a library defines.
func defined(t *testing.T, path string) map[string]bool {
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
	names := map[string]bool{}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			names[s.Name] = true
		}
	}
	return names
}
