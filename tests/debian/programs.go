package main

// The programs, and how each reports right results.

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/muster-mpi/muster/tests/judge"
)

// passIfPrinted returns the rule of a program that exits with status 0, prints what matches right, and
// nothing that matches wrong.
func passIfPrinted(right, wrong string) func(int, bool, string) (bool, string) {
	good, bad := regexp.MustCompile(right), regexp.MustCompile(wrong)
	return func(status int, timeout bool, out string) (bool, string) {
		switch line := bad.FindString(out); {
		case timeout:
			return false, "timeout"
		case wrong != "" && line != "":
			return false, "prints: " + strings.TrimSpace(line)
		case status != 0:
			return false, fmt.Sprintf("status %d", status)
		case !good.MatchString(out):
			return false, fmt.Sprintf("does not print %q", right)
		}
		return true, ""
	}
}

// netpipe checks the data of messages of all sizes up to 64 KiB.
func (f *family) netpipe(cache, root string) *judge.Test {
	name := "NPmpich2"
	if f.openmpi {
		name = "NPopenmpi"
	}
	return &judge.Test{
		ID: "netpipe/" + name + " 2", Dir: workFolder(cache, "netpipe"), Program: filepath.Join(root, "usr/bin", name), Ranks: 2,
		Args:   []string{"-i", "-u", "65536"},
		Passed: passIfPrinted(`Integrity check passed`, `(?i)integrity check failed.*`),
	}
}

// scalapack returns the tests of ScaLAPACK, of its message passing (BLACS) and of its linear algebra
// (PBLAS). They read the problems to solve from files in their folder.
func (f *family) scalapack(_, root string) ([]*judge.Test, error) {
	folder := one(root, "usr/lib/*/scalapack/"+f.folder()+"-tests")
	passed := map[string]func(int, bool, string) (bool, string){
		"":      passIfPrinted(`tests? completed and passed|RESULT +: passed|PASSED`, `[1-9]\d* tests? completed and failed.*|RESULT +: failed|.*\bFAILED\b.*`),
		"BLACS": blacsPassed,
		"PBLAS": passIfPrinted(`End of Tests`, `.*check: .*FAILED.*`),
	}
	var tests []*judge.Test
	for _, part := range []string{"", "BLACS", "PBLAS"} {
		dir := filepath.Join(folder, part)
		names, err := executables(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if part == "" && strings.HasSuffix(name, "btest") {
				continue // they are those of BLACS, which read files there
			}
			tests = append(tests, &judge.Test{
				ID: filepath.Join("scalapack", part, name) + " 4", Dir: dir, Program: "./" + name, Ranks: 4, Passed: passed[part],
			})
		}
	}
	return tests, nil
}

// blacsPassed is the rule of the tests of BLACS, whose last one is that BLACS_ABORT ends the job.
func blacsPassed(status int, timeout bool, out string) (bool, string) {
	if status == 0 {
		return false, "status 0 after BLACS_ABORT"
	}
	return passIfPrinted(`final auxiliary test is for BLACS_ABORT`, `.*[1-9]\d* FAILED.*|.*FAILED +.*TEST.*`)(0, timeout, out)
}

// images are the numbers of ranks that tests of OpenCoarrays need; the others have 4.
var images = map[string]int{
	"alloc_comp_multidim_shape": 2, "asynchronous_hello_world": 2, "issue-515-mimic-mpi-gatherv": 2, "issue-552-send_by_ref-singleton": 2,
	"issue-493-coindex-slice": 8, "sync_team": 8, "team_number": 8,
}

// coarrays returns the tests of OpenCoarrays, the run-time library of coarrays in Fortran, which
// uses windows, their locks and atomic operations.
func (f *family) coarrays(cache, root string) ([]*judge.Test, error) {
	folder := one(root, "usr/lib/*/open-coarrays/"+f.folder()+"/bin/OpenCoarrays-*-tests")
	names, err := executables(folder)
	if err != nil {
		return nil, err
	}
	dir := workFolder(cache, "coarrays")
	var tests []*judge.Test
	for _, name := range names {
		ranks := images[name]
		if ranks == 0 {
			ranks = 4
		}
		tests = append(tests, &judge.Test{
			ID: fmt.Sprintf("coarrays/%s %d", name, ranks), Dir: dir, Program: filepath.Join(folder, name), Ranks: ranks,
			Passed: passIfPrinted(`(?i)test passed`, `(?i)test failed.*|error stop.*`),
		})
	}
	return tests, nil
}

// workFolder returns a folder for the files that a program writes.
func workFolder(cache, name string) string {
	return filepath.Join(cache, "work", name)
}

// executables returns the names of the programs of a folder.
func executables(folder string) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(folder, e.Name())); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
