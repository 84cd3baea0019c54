package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutputIsThatOfGoTest checks what is printed for the events of a test that passes, one
// that fails, one that ends with its package, and a package that does not build.
func TestOutputIsThatOfGoTest(t *testing.T) {
	const events = `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"    a_test.go:3: noted\n"}
{"Action":"pass","Package":"m/a","Test":"TestGood","Elapsed":1.5}
{"Action":"output","Package":"m/a","Test":"TestBad/part","Output":"=== RUN   TestBad/part\n"}
{"Action":"output","Package":"m/a","Test":"TestBad","Output":"--- FAIL: TestBad (2.00s)\n"}
{"Action":"output","Package":"m/a","Test":"TestBad/part","Output":"    --- FAIL: TestBad/part (2.00s)\n"}
{"Action":"output","Package":"m/a","Test":"TestBad/part","Output":"        a_test.go:9: wrong\n"}
{"Action":"fail","Package":"m/a","Test":"TestBad/part","Elapsed":2}
{"Action":"fail","Package":"m/a","Test":"TestBad","Elapsed":2}
{"Action":"output","Package":"m/a","Test":"TestStuck","Output":"panic: test timed out\n"}
{"Action":"output","Package":"m/a","Output":"FAIL\tm/a\t3.500s\n"}
{"Action":"fail","Package":"m/a","Elapsed":3.5}
# m/b
{"ImportPath":"m/b","Action":"build-output","Output":"b.go:1:1: syntax error\n"}
{"Action":"output","Package":"m/c","Output":"PASS\n"}
{"Action":"output","Package":"m/c","Output":"ok  \tm/c\t0.100s\n"}
{"Action":"pass","Package":"m/c","Elapsed":0.1}
`
	const want = "        a_test.go:9: wrong\n|--- FAIL: TestBad (2.00s)\n|FAIL\tm/a\t3.500s\n|panic: test timed out\n|# m/b\n|b.go:1:1: syntax error\n|ok  \tm/c\t0.100s\n"
	var out strings.Builder
	r := &reader{out: &out, step: "tests"}
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(want, "|") {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is missing from\n%s", line, out.String())
		}
	}
	for _, line := range []string{"noted", "=== RUN", "PASS", "Action"} {
		if strings.Contains(out.String(), line) {
			t.Errorf("%q is in\n%s", line, out.String())
		}
	}
	if len(r.times) != 2 || r.times[0] != (testTime{1.5, "tests", "m/a", "TestGood"}) {
		t.Errorf("recorded %v, want TestGood and TestBad", r.times)
	}
}

func TestSlowestAreShownOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "times")
	for _, times := range [][]testTime{{{1, "tests", "m/a", "TestA"}, {2, "tests", "m/a", "TestB"}}, {{5, "race", "m/a", "TestA"}, {0.5, "race", "m/b", "TestA"}}} {
		if err := appendTimes(file, times); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := showSlowest(file, 2, &out); err != nil {
		t.Fatal(err)
	}
	if want := "   5.0 s  a.TestA (race)\n   2.0 s  a.TestB (tests)\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestStatusOfCommand runs commands in place of go test.
func TestStatusOfCommand(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "go")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"args $*\"\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	status, err := recordTests(filepath.Join(dir, "times"), []string{program, "test", "-v", "./x", "-args", "-y"}, &out)
	if status != 3 || err != nil || out.String() != "args test -json -v ./x -args -y\n" {
		t.Errorf("status %d (%v) and %q", status, err, out.String())
	}
	if status, err := recordTests(filepath.Join(dir, "times"), []string{"go", "build"}, &out); status == 0 || err == nil {
		t.Errorf("go build is no go test: status %d (%v)", status, err)
	}
}
