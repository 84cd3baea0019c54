package muster_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestHouseSeesFaults adds one fault at a time to a small tree and checks that it is found,
// and no other.
func TestHouseSeesFaults(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		want             string // part of the fault; "": none
	}{
		{"nothing", "internal/p2p/match.go", "package p2p\n\nimport (\n\t\"errors\"\n\n\t\"" + module + "/rdma\"\n)\n\nvar errFull = errors.New(\"full\")\n\nvar _ rdma.Op\n", ""},
		{"a forbidden import", "internal/p2p/match.go", "package p2p\n\nimport _ \"" + module + "/internal/engine\"\n", "internal/p2p may not import internal/engine"},
		{"a forbidden import in a test", "internal/p2p/match_test.go", "package p2p\n\nimport _ \"" + module + "/internal/engine\"\n", ""},
		{"a provider outside devices.go", "mpi/comm.go", "package mpi\n\nimport _ \"" + module + "/rdma/shm\"\n", "mpi may not import rdma/shm"},
		{"a provider in devices.go", "mpi/devices.go", "package mpi\n\nimport _ \"" + module + "/rdma/shm\"\n", ""},
		{"an example that looks inside", "examples/01-hello/main.go", "// Hello.\npackage main\n\nimport _ \"" + module + "/internal/engine\"\n\nfunc main() {}\n", "may not import internal/engine"},
		{"an example", "examples/01-hello/main.go", "// Hello.\npackage main\n\nimport _ \"" + module + "/mpi\"\n\nfunc main() {}\n", ""},
		{"the command", "cmd/muster/main.go", "// Muster.\npackage main\n\nimport _ \"" + module + "/internal/launch\"\nimport _ \"github.com/spf13/cobra\"\n\nfunc main() {}\n", ""},
		{"a folder without a line", "internal/magic/doc.go", "// Package magic is new.\npackage magic\n", "has no line in the import rule"},
		{"foreign code in the library", "mpi/comm.go", "package mpi\n\nimport _ \"github.com/spf13/cobra\"\n", "only commands use more"},
		{"cgo", "rdma/shm/ring.go", "package shm\n\nimport \"C\"\n", "uses cgo"},

		{"a lock in a pure folder", "internal/p2p/match.go", "package p2p\n\nimport _ \"sync\"\n", "is pure and does not import sync"},
		{"atomics in a pure folder", "internal/p2p/match.go", "package p2p\n\nimport _ \"sync/atomic\"\n", "is pure and does not import sync/atomic"},
		{"randomness in a pure folder", "internal/p2p/match.go", "package p2p\n\nimport _ \"math/rand/v2\"\n", "is pure and does not import math/rand/v2"},
		{"a lock in a pure folder's test", "internal/p2p/match_test.go", "package p2p\n\nimport _ \"sync\"\n", ""},
		{"the clock in a pure folder", "internal/p2p/match.go", "package p2p\n\nimport \"time\"\n\nfunc now() time.Time { return time.Now() }\n", "does not call time.Now"},
		{"a goroutine in a pure folder", "internal/p2p/match.go", "package p2p\n\nfunc f() { go f() }\n", "starts no goroutine"},

		{"unsafe in the wrong file", "rdma/shm/ring.go", "package shm\n\nimport _ \"unsafe\"\n", "imports unsafe"},
		{"unsafe in the right file", "rdma/shm/ring_unsafe.go", "package shm\n\nimport _ \"unsafe\"\n", ""},
		{"unsafe in the wrong test", "rdma/shm/ring_test.go", "package shm\n\nimport _ \"unsafe\"\n", "imports unsafe"},
		{"a long file", "mpi/comm.go", "package mpi\n" + strings.Repeat("\n", maxLines), "the limit is 600"},
		{"a long test", "mpi/comm_test.go", "package mpi\n" + strings.Repeat("\n", maxLines), ""},
		{"a program without a comment", "examples/02-ring/main.go", "package main\n\nfunc main() {}\n", "no doc.go"},
		{"init", "mpi/comm.go", "package mpi\n\nfunc init() {}\n", "has an init function"},
		{"a method named init", "mpi/comm.go", "package mpi\n\ntype t int\n\nfunc (t) init() {}\n", ""},
		{"a meaningless folder name", "internal/util/doc.go", "// Package util helps.\npackage util\n", "meaningless name"},
		{"a machine's path", "docs/notes.md", "See /" + "root/notes.\n", "path of one machine"},
		{"a file that does not parse", "mpi/comm.go", "package mpi\n\nfunc {\n", "does not parse"},

		{"a counter", "mpi/comm.go", "package mpi\n\nvar count int\n\nfunc f() { count++ }\n", "changes count"},
		{"a cache", "mpi/comm.go", "package mpi\n\nvar cache = map[int]int{}\n\nfunc f() { cache[1] = 2 }\n", "changes cache"},
		{"a field", "mpi/comm.go", "package mpi\n\nvar state struct{ n int }\n\nfunc f() { state.n = 2 }\n", "changes state"},
		{"an address", "mpi/comm.go", "package mpi\n\nvar n int\n\nfunc f() *int { return &n }\n", "changes n"},
		{"a registry", "mpi/comm.go", "package mpi\n\nvar names = make(map[string]int)\n", "initialized with make"},
		{"a lock", "mpi/comm.go", "package mpi\n\nimport \"sync\"\n\nvar mu sync.Mutex\n", "of a mutable type (sync.Mutex)"},
		{"a channel", "mpi/comm.go", "package mpi\n\nvar done chan int\n", "has a channel"},
		{"a table", "mpi/comm.go", "package mpi\n\nvar names = map[int]string{1: \"one\"}\n\nfunc f() string { return names[1] }\n", ""},
		{"a local of the same name", "mpi/comm.go", "package mpi\n\nvar names = []string{\"one\"}\n\nfunc f() { var names []string; names = nil; _ = names }\n", ""},
		{"a counter in a test", "mpi/comm_test.go", "package mpi\n\nvar count int\n\nfunc f() { count++ }\n", ""},

		{"a large type", "mpi/comm.go", "package mpi\n\ntype big struct {\n\tint8\n\t_, a, b int\n\tc [24]int\n" + strings.Repeat("\td, e int\n", 12) + "}\n", "type big has 28 fields"},
		{"a type of 25 fields", "mpi/comm.go", "package mpi\n\ntype full struct {\n\tint8\n\t_ [64]byte\n" + strings.Repeat("\td, e int\n", 12) + "}\n", ""},
		{"a large type in a test", "mpi/comm_test.go", "package mpi\n\ntype big struct {\n" + strings.Repeat("\td, e int\n", 14) + "}\n", ""},
		{"a generated type", "mpi/comm.go", "// Code generated by x. DO NOT EDIT.\n\npackage mpi\n\ntype big struct {\n" + strings.Repeat("\td, e int\n", 14) + "}\n", ""},
		{"a long function", "mpi/comm.go", "package mpi\n\nfunc long() {\n" + strings.Repeat("\tlong()\n", 79) + "}\n", "function long has 81 lines"},
		{"a function of 80 lines", "mpi/comm.go", "package mpi\n\nfunc full() {\n" + strings.Repeat("\tfull()\n", 78) + "}\n", ""},
		{"a function that is a table", "mpi/comm.go", "package mpi\n\nfunc rows() []int {\n\treturn []int{\n" + strings.Repeat("\t\t1,\n", 90) + "\t}\n}\n", ""},
		{"a short table in a long function", "mpi/comm.go", "package mpi\n\nfunc long() []int {\n" + strings.Repeat("\tlong()\n", 20) + "\treturn []int{\n" + strings.Repeat("\t\t1,\n", 90) + "\t}\n}\n", "function long has"},
		{"a long function in a table", "mpi/comm.go", "package mpi\n\nfunc rows() []func() {\n\treturn []func(){\n\t\tfunc() {\n" + strings.Repeat("\t\t\trows()\n", 80) + "\t\t},\n\t}\n}\n", "function rows has"},
		{"a participle", "mpi/comm.go", "package mpi\n\nfunc rehearsed() int { return 1 }\n", "function rehearsed is named by a bare participle"},
		{"an irregular participle", "mpi/comm.go", "package mpi\n\ntype t int\n\nfunc (*t) Dealt() {}\n", "function Dealt is named by a bare participle"},
		{"a preposition", "mpi/comm.go", "package mpi\n\nfunc beneath() (a, b bool) { return }\n", "function beneath is named"},
		{"a predicate", "mpi/comm.go", "package mpi\n\nfunc rehearsed() bool { return true }\n", ""},
		{"a participle and a noun", "mpi/comm.go", "package mpi\n\nfunc sentBytes() int { return 1 }\n", ""},
		{"a verb in -ed", "mpi/comm.go", "package mpi\n\nfunc Proceed() {}\n", ""},
		{"names of Go and MPI", "mpi/comm.go", "package mpi\n\nfunc Until() int { return 1 }\n\nfunc Indexed() int { return 1 }\n\nfunc of() int { return 1 }\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := fstest.MapFS{c.file: {Data: []byte(c.text)}}
			for _, folder := range []string{"rdma", "rdma/shm", "mpi", "internal/p2p"} {
				tree[folder+"/doc.go"] = &fstest.MapFile{Data: []byte("// Package x.\npackage " + folder[strings.LastIndexByte(folder, '/')+1:] + "\n")}
			}
			faults := inspect(tree)
			switch {
			case c.want == "" && len(faults) > 0:
				t.Errorf("a tree without faults has faults: %q", faults)
			case c.want != "" && !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, c.want) }):
				t.Errorf("no fault contains %q: %q", c.want, faults)
			}
		})
	}
}

// TestHouseWantsDocs checks that a folder without a package comment is found.
func TestHouseWantsDocs(t *testing.T) {
	for text, want := range map[string]int{"package rdma\n": 1, "// Package rdma is empty.\npackage rdma\n": 0} {
		if faults := inspect(fstest.MapFS{"rdma/doc.go": {Data: []byte(text)}}); len(faults) != want {
			t.Errorf("doc.go with %q: %d faults instead of %d: %q", text, len(faults), want, faults)
		}
	}
}
