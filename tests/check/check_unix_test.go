//go:build unix

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAffectedPackages(t *testing.T) {
	add := func(name string, imports, tests, xtests string) *pkg {
		p := &pkg{ImportPath: "m" + name, Imports: strings.Fields(imports), TestImports: strings.Fields(tests), XTestImports: strings.Fields(xtests)}
		p.Module.Path = "m"
		return p
	}
	list := []*pkg{add("", "m/mpi", "", ""), add("/cmd/muster", "m/mpi", "", ""), add("/mpi", "m/rdma", "", ""), add("/rdma", "", "", "m/rdma/tests"), add("/rdma/tests", "", "", ""), add("/sim", "", "m/rdma", ""), add("/x", "", "", "")}
	for files, want := range map[string]string{
		"":                            " | ",
		"README.md docs/a.md":         " | ",
		"mpi/comm.go":                 "./mpi | ./cmd/muster",
		"mpi/testdata/a/b.txt":        "./mpi | ./cmd/muster",
		"rdma/a.go":                   "./rdma | ./sim ./mpi",
		"rdma/a.go rdma/tests/b.go":   "./rdma ./rdma/tests | ./sim ./mpi",
		"rdma/tests/b.go":             "./rdma/tests | ./rdma",
		"go.mod x/y.go":               "./x | ./rdma ./rdma/tests ./sim ./cmd/muster ./mpi",
		"x/deleted.go gone/deleted.c": "./x | ",
	} {
		changed, importers := findAffected(list, strings.Fields(files))
		if got := strings.Join(changed, " ") + " | " + strings.Join(importers, " "); got != want {
			t.Errorf("%q affects %q, want %q", files, got, want)
		}
	}
}

// TestChangedFiles checks that files that are committed, changed, deleted and new are found.
func TestChangedFiles(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	t.Chdir(t.TempDir())
	git := func(command string) {
		t.Helper()
		args := append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, strings.Fields(command)...)
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", command, err, out)
		}
	}
	write := func(files ...string) {
		t.Helper()
		for _, f := range files {
			if err := os.WriteFile(f, []byte(strings.Join(files, " ")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	git("init -q -b main")
	write("old", "deleted", "changed")
	git("add .")
	git("commit -q -m one")
	git("checkout -q -b branch")
	write("committed")
	git("add .")
	git("commit -q -m two")
	write("changed")
	write("new")
	if err := os.Remove("deleted"); err != nil {
		t.Fatal(err)
	}
	for base, want := range map[string]string{"": "changed committed deleted new", "HEAD": "changed deleted new"} {
		files, err := changedFiles(t.Context(), base)
		slices.Sort(files)
		if got := strings.Join(files, " "); err != nil || got != want {
			t.Errorf("base %q: %q (%v), want %q", base, got, err, want)
		}
	}
}

// TestTestsEndInTime runs a program in place of go that never ends.
func TestTestsEndInTime(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\ncase $* in *slow*) sleep 60;; *bad*) exit 1;; esac\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	began := time.Now()
	left, err := testInTime(t.Context(), []string{"a", "b", "c", "d", "slow", "e"}, began.Add(200*time.Millisecond))
	if took := time.Since(began); err != nil || strings.Join(left, " ") != "slow e" || took > 30*time.Second {
		t.Errorf("left %q (%v) after %v, want slow and e", left, err, took)
	}
	if _, err := testInTime(t.Context(), []string{"bad"}, began.Add(time.Hour)); err == nil {
		t.Error("a test that fails is not reported")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := testInTime(ctx, []string{"a"}, began.Add(time.Hour)); err == nil {
		t.Error("an interrupted check succeeds")
	}
}
