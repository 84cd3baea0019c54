package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	results := "||Ax-b||_oo/(eps*...) = 0.01 ...... PASSED\nWALL 400 400 40 40 2 2 0.01 PASSED 0.01 0.00\n" +
		"Found 0 errors in 1048576 locations (passed).\nmax(|x-x0|): 2.1e-15\nSuccess=1\n"
	abort := "The final auxiliary test is for BLACS_ABORT.\n"
	rule := passIfPrinted(`tests completed and passed`, `[1-9]\d* tests completed and failed.*`)
	for _, c := range []struct {
		what    string
		rule    func(int, bool, string) (bool, string)
		status  int
		timeout bool
		out     string
		want    bool
	}{
		{"all tests pass", rule, 0, false, "8 tests completed and passed\n0 tests completed and failed\n", true},
		{"one fails", rule, 0, false, "7 tests completed and passed\n1 tests completed and failed\n", false},
		{"the status is an error", rule, 1, false, "8 tests completed and passed\n", false},
		{"nothing is printed", rule, 0, false, "", false},
		{"the time limit is reached", rule, 0, true, "8 tests completed and passed\n", false},
		{"BLACS_ABORT ends the job", blacsPassed, 255, false, "75 TESTS; 75 PASSED, 0 SKIPPED, 0 FAILED.\n" + abort, true},
		{"BLACS_ABORT does not", blacsPassed, 0, false, abort, false},
		{"a test of BLACS fails", blacsPassed, 255, false, "75 TESTS; 73 PASSED, 0 SKIPPED, 2 FAILED.\n" + abort, false},
		{"all parts of HPCC", hpccPassed, 0, false, results, true},
		{"no transform", hpccPassed, 0, false, strings.Replace(results, "e-15", "e-01", 1), false},
		{"a wrong transpose", hpccPassed, 0, false, results + "WALL 1 1 1 1 2 2 0.01 FAILED 0.01 0.00\n", false},
	} {
		if got, why := c.rule(c.status, c.timeout, c.out); got != c.want {
			t.Errorf("%s: got %v, %s", c.what, got, why)
		}
	}
}

func TestSmallProblem(t *testing.T) {
	if got := string(smallProblem([]byte("1            # of problems sizes (N)\n1000         Ns\n80           NBs\n"))); !strings.Contains(got, "\n400 Ns\n80 ") {
		t.Errorf("the size must be 400, the rest as before: %q", got)
	}
}

func TestRelink(t *testing.T) {
	root := t.TempDir()
	for link, to := range map[string]string{"absolute": "/usr/share/data", "relative": "data"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := relink(root); err != nil {
		t.Fatal(err)
	}
	for link, want := range map[string]string{"absolute": filepath.Join(root, "usr/share/data"), "relative": "data"} {
		if got, err := os.Readlink(filepath.Join(root, link)); err != nil || got != want {
			t.Errorf("%s must point to %s, got %s, %v", link, want, got, err)
		}
	}
}
