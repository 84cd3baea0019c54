package judge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRecordAndPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	known, err := readRecord(path)
	if err != nil || len(known) != 0 {
		t.Fatalf("a new record is empty: %v, %v", known, err)
	}
	run := func(id string, muster, mpich outcome) *result {
		return &result{test: &Test{ID: id}, muster: muster, mpich: mpich}
	}
	good, bad := outcome{ok: true}, outcome{why: "prints:\tan  error"}
	results := []*result{
		run("coll/a 4", good, good), run("coll/b 4", bad, good), run("coll/c 4", good, outcome{why: "timeout"}),
		run("rma/d 2", bad, bad), run("rma/e 2", good, bad), {test: &Test{ID: "rma/f 2"}, skipped: true},
	}
	known.add(&options{reference: true}, results)
	known.add(&options{}, []*result{run("rma/g 2", good, outcome{})})
	if err := known.write(path); err != nil {
		t.Fatal(err)
	}
	again, err := readRecord(path)
	if err != nil || len(again) != 6 || again["coll/b 4"][onMuster] != "prints: an error" || again["rma/g 2"][onMPICH] != "" {
		t.Errorf("what was written must be read again, in one line each: %v, %v", again, err)
	}
	timed := outcome{ok: true, took: 1500 * time.Millisecond}
	known.add(&options{reference: true}, []*result{run("app/h 2", timed, outcome{ok: true, took: 3 * time.Second})})
	if text := page("debian-openmpi", "today", known, nil); !strings.Contains(text, "| app | 1 | 1 | 1 | 0 | 1.5 | 3.0 | 0.50 | met |\n") || !strings.Contains(text, "| rma | 2 | 1 | 0 | 0 | | | | met |\n") {
		t.Errorf("the page must have the times of both:\n%s", text)
	}
	text := page("mpich", "today", again, []string{"coll/a 4", "rma/g 2", "topo/h 2"})
	for _, want := range []string{
		"| coll | 3 | 2 | 2 | 1 | **missed** |\n", "| rma | 2 | 1 | 0 | 0 | met |\n", "both libraries: 1 of rma, 1 of topo.\n",
		"Pass on MPICH only: 1\n\n- `coll/b 4`: prints: an error\n", "Pass on Muster only: 2\n", "Fail on both: 1\n\n- `rma/d 2`:",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q:\n%s", want, text)
		}
	}
}

func TestWriteSources(t *testing.T) {
	etc, to := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(etc, "sources.list.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"sources.list":               "# deb is a word\ndeb http://archive bookworm main\n",
		"sources.list.d/new.sources": "Types: deb\nURIs: http://archive\n",
	} {
		if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeSources(etc, to); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"sources.list": "# deb is a word\ndeb http://archive bookworm main\ndeb-src http://archive bookworm main\n",
		"new.sources":  "Types: deb deb-src\nURIs: http://archive\n",
	} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}
