package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReadTests(t *testing.T) {
	tree := t.TempDir()
	for name, text := range map[string]string{
		"errors/testlist": "# a comment\n\ncoll\ncxx\nabsent\n",
		"errors/coll/testlist": `bcast 4
twice 2 arg=-x arg=y=z env=A=b timeLimit=10 resultTest=TestErrFatal
variant 4 env=MPIR_CVAR_BCAST=binomial
extension 2 strict=FALSE
large 2 mem=8
`,
		"errors/cxx/testlist": "open 1\n",
	} {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tests, err := readTests(tree, "errors")
	if err != nil || len(tests) != 2 {
		t.Fatalf("there must be two tests, got %d, %v", len(tests), err)
	}
	if a := tests[0]; a.id != "errors/coll/bcast 4" || a.ranks != 4 || a.folder != "errors/coll" {
		t.Errorf("first test: %+v", a)
	}
	if b := tests[1]; strings.Join(b.args, " ") != "-x y=z" || b.env[0] != "A=b" || b.limit != 10*time.Second || b.expect != "TestErrFatal" {
		t.Errorf("second test: %+v", b)
	}
	if none, err := readTests(tree, "f77"); err != nil || len(none) != 0 {
		t.Errorf("a folder that was not configured has no tests: %v, %v", none, err)
	}
}

func TestEveryNth(t *testing.T) {
	var tests []*test
	for _, name := range []string{"a", "b", "b", "c", "a", "d"} {
		tests = append(tests, &test{folder: "coll", name: name})
	}
	var got string
	for _, v := range everyNth(tests, 2) {
		got += v.name
	}
	if got != "aca" {
		t.Errorf("every second program must be a and c, with all tests of each; got %s", got)
	}
	if all := everyNth(tests, 1); len(all) != len(tests) {
		t.Errorf("every program must be there, got %d tests", len(all))
	}
}

func TestPassed(t *testing.T) {
	for _, c := range []struct {
		expect  string
		limit   time.Duration
		status  int
		timeout bool
		out     string
		want    bool
	}{
		{out: " No Errors\n", want: true},
		{out: "No errors\nTest Passed\n\n", want: true},
		{out: "", want: false},
		{out: "No Errors\nsomething else\n", want: false},
		{status: 1, out: "No Errors\n", want: false},
		{timeout: true, status: 124, out: "No Errors\n", want: false},
		{expect: "TestErrFatal", status: 3, out: "anything\n", want: true},
		{expect: "TestErrFatal", status: 0, want: false},
		{expect: "TestErrFatal", status: 124, timeout: true, want: false},
		{expect: "TestErrFatal", status: 124, timeout: true, limit: time.Second, want: true},
		{expect: "TestStatusNoErrors", status: 3, out: "No Errors\n", want: true},
		{expect: "TestStatusNoErrors", status: 3, out: "", want: false},
	} {
		v := test{expect: c.expect, limit: c.limit}
		if got, why := v.judge(c.status, c.timeout, c.out); got != c.want {
			t.Errorf("%+v: got %v, %s", c, got, why)
		}
	}
}
