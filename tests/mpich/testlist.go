package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// test is a line of a testlist.
type test struct {
	folder string // below test/mpi
	name   string // of the program
	ranks  int
	args   []string
	env    []string
	expect string        // resultTest: how the test passes
	limit  time.Duration // 0: none of its own
	id     string        // the folder and the line
}

// folders are those of the suite that Muster can run, Fortran last.
var folders = []string{
	"attr", "basic", "coll", "comm", "datatype", "errhan", "errors", "group", "info", "init", "io", "mpi_t", "part", "pt2pt", "rma", "spawn", "threads", "topo",
	"f77", "f90",
}

// absent are folders inside of these that use functions Muster does not have.
var absent = map[string]bool{"cxx": true, "f08": true, "faults": true, "perf": true, "ext": true}

// readTests returns the tests of a folder and of the folders that its testlist names.
func readTests(tree, folder string) ([]*test, error) {
	text, err := os.ReadFile(filepath.Join(tree, folder, "testlist"))
	if os.IsNotExist(err) {
		return nil, nil // a part that was not configured
	}
	if err != nil {
		return nil, err
	}
	var tests []*test
	for n, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) == 1 {
			if info, err := os.Stat(filepath.Join(tree, folder, words[0])); err == nil && info.IsDir() && !absent[words[0]] {
				inner, err := readTests(tree, folder+"/"+words[0])
				if err != nil {
					return nil, err
				}
				tests = append(tests, inner...)
			}
			continue
		}
		t, err := parseTest(folder, words)
		if err != nil {
			return nil, fmt.Errorf("%s/testlist:%d: %w", folder, n+1, err)
		}
		if t != nil {
			tests = append(tests, t)
		}
	}
	return tests, nil
}

// parseTest returns the test of a line, or nil if it is not for Muster.
func parseTest(folder string, words []string) (*test, error) {
	ranks, err := strconv.Atoi(words[1])
	if err != nil {
		return nil, fmt.Errorf("number of ranks: %w", err)
	}
	t := &test{folder: folder, name: words[0], ranks: max(ranks, 1), id: folder + "/" + strings.Join(words, " ")}
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "arg":
			t.args = append(t.args, value)
		case "env":
			if strings.HasPrefix(value, "MPIR_CVAR_") || strings.HasPrefix(value, "MPICH_") {
				return nil, nil // the same test with an algorithm of MPICH
			}
			t.env = append(t.env, value)
		case "strict":
			if strings.EqualFold(value, "false") {
				return nil, nil // beyond the standard
			}
		case "mem":
			return nil, nil // needs gigabytes
		case "resultTest":
			t.expect = value
		case "timeLimit":
			seconds, err := strconv.Atoi(value)
			if err != nil {
				return nil, fmt.Errorf("timeLimit: %w", err)
			}
			t.limit = time.Duration(seconds) * time.Second
		}
	}
	return t, nil
}

// judge reports whether a test passes by the rules of the suite (its program runtests), and
// if not, why.
func (t *test) judge(status int, timeout bool, out string) (ok bool, why string) {
	switch t.expect {
	case "TestStatus", "TestErrFatal":
		// A test with a limit of its own may be there to reach it.
		if timeout && t.limit == 0 {
			return false, "timeout"
		}
		return status != 0, "status 0 instead of an error"
	case "TestStatusNoErrors":
		if ok, why := noErrors(out); !ok || timeout {
			return false, why
		}
		return status != 0, "status 0 instead of an error"
	}
	if timeout {
		return false, "timeout"
	}
	if ok, why := noErrors(out); !ok {
		return false, fmt.Sprintf("%s (status %d)", why, status)
	}
	return status == 0, fmt.Sprintf("status %d", status)
}

// noErrors reports whether an output is "No Errors" and nothing else.
func noErrors(out string) (ok bool, why string) {
	for line := range strings.Lines(out) {
		switch line = strings.TrimSpace(line); line {
		case "No Errors", "No errors":
			ok = true
		case "", "Test Passed":
		default:
			if !strings.Contains(line, "FORTRAN STOP") {
				return false, "prints: " + line
			}
		}
	}
	return ok, "does not print No Errors"
}
