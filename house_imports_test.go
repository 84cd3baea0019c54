package muster_test

import (
	"go/ast"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The import policy. A line is a folder, or a single file, and the folders of this module
// that it may import; tests may import any package. A folder without a line is a fault, so
// that a new package starts with a decision. "examples/*" means the folders directly below
// examples. A folder below rdma imports nothing above it (TestDevicesImportNothingAbove).
const importPolicy = `
rdma                internal/direct
prof
internal/longcopy
internal/dtype      internal/longcopy
internal/pmi        internal/pmix internal/shmem
internal/pmix
internal/lab
internal/chaos      internal/lab
internal/needs
internal/netprobe
internal/cputime
internal/seeded
internal/shmem
internal/race
internal/bytesize
internal/settings   internal/bytesize
internal/sparse
internal/rankset
internal/ft
rdma/internal/ddp   rdma
rdma/internal/capture
rdma/shm            rdma internal/sparse internal/direct internal/shmem
internal/direct
rdma/*              rdma
rdma/ofi            rdma rdma/ofi/internal/leap
rdma/ofi/internal/leap
rdma/internal/guard
rdma/rdmatest       rdma internal/cputime internal/race
internal/regcache   rdma
rdma/internal/pin   rdma
rdma/internal/crc32c
rdma/internal/soft  rdma rdma/internal/guard rdma/internal/ddp rdma/internal/pin
rdma/iwarp          rdma internal/race rdma/internal/guard rdma/internal/ddp rdma/internal/soft rdma/internal/crc32c
rdma/soft           rdma internal/race rdma/internal/guard rdma/internal/ddp rdma/internal/soft rdma/internal/crc32c rdma/internal/reliable rdma/recvpool
rdma/internal/reliable
rdma/hybrid         rdma rdma/soft rdma/iwarp rdma/internal/soft
internal/devices    rdma rdma/*

internal/p2p        rdma internal/direct
internal/sched      internal/longcopy
internal/coll       internal/sched
internal/trace      internal/coll
internal/traffic
internal/advise     internal/trace internal/traffic internal/coll
sim                 internal/coll internal/sched internal/p2p internal/trace internal/ft rdma
internal/nodecoll   internal/coll internal/shmem internal/longcopy
internal/engine     internal/ft rdma prof internal/sparse internal/rankset internal/p2p internal/regcache rdma/recvpool internal/pmi internal/sched internal/rma internal/direct internal/shmem internal/race
internal/rma        internal/dtype
internal/mpiio      internal/dtype
internal/cbinding   internal/dtype internal/engine internal/rma internal/rankset internal/direct
internal/launch     internal/pmi internal/coll internal/needs internal/traffic
internal/doctor     internal/launch internal/netprobe rdma/ofi

mpi                 rdma prof internal/ft internal/rankset internal/bytesize internal/settings internal/dtype internal/pmi internal/p2p internal/sched internal/coll internal/nodecoll internal/engine internal/rma internal/mpiio internal/cbinding mpi/internal/hook internal/trace internal/longcopy
mpi/inspect.go      rdma/ofi
mpi/devices.go      internal/netprobe internal/devices rdma/shm rdma/ofi
mpi/rails.go        internal/netprobe internal/devices
mpi/trace_cores.go  internal/cputime rdma/shm
mpi/processes_other.go rdma/shm

mpi/internal/hook   rdma rdma/ofi internal/engine internal/pmi
mpi/inspect         mpi mpi/internal/hook rdma rdma/ofi internal/engine internal/p2p internal/launch

mpitest             mpi mpi/inspect internal/cputime
bench               mpi mpi/inspect prof rdma internal/devices internal/regcache internal/cputime internal/coll
bench/groups        bench bench/results internal/lab prof rdma
bench/documents     bench bench/results
bench/peers         bench/groups bench/results bench/documents
bench/results       bench

cabi
cabi/core           mpi internal/cbinding internal/settings internal/direct internal/dtype internal/rma prof
cabi/gen            cabi/core internal/direct internal/p2p rdma/shm
cabi/lib            cabi/core

tests/*
tests/mpich         tests/judge
tests/debian        tests/judge
tests/imports       tests/judge cabi/core
tests/channels/storm mpi mpi/inspect
tests/release/pack
tests/soak          internal/lab
tests/soak/program  mpi
tests/advise/program mpi
tests/soak/rank     mpi tests/soak/program
tests/recover      apps internal/lab mpi
examples/*          mpi
apps                mpi apps/internal/npb apps/bt apps/cg apps/ep apps/ft apps/heat apps/is apps/lu apps/mg apps/nbody apps/radix apps/sp apps/train
apps/*              mpi apps/internal/npb apps/internal/flow
apps/internal/flow  mpi apps/internal/npb
apps/internal/npb   mpi
cmd/muster          anything
`

// Pure folders contain state machines without I/O, clock or goroutine, so that they can be
// scripted, fuzzed, explored and simulated. They must not use these packages and functions;
// they take the time as an argument.
var (
	pureFolders   = []string{"internal/p2p", "internal/dtype", "internal/sched", "internal/coll", "internal/rma", "internal/mpiio", "internal/trace", "internal/advise", "internal/traffic", "internal/ft", "sim", "rdma/recvpool", "rdma/internal/ddp", "rdma/internal/reliable"}
	impureImports = []string{"net", "os", "syscall", "sync", "math/rand", "runtime", "golang.org/x/sys"}
	impureTime    = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
)

// TestImportPolicyMatchesTree checks that the policy names only folders and files that exist.
func TestImportPolicyMatchesTree(t *testing.T) {
	for name, allowed := range policy() {
		for _, p := range append([]string{name}, allowed...) {
			if found, err := fs.Glob(os.DirFS("."), p); p != "anything" && (err != nil || len(found) == 0) {
				t.Errorf("the line of %s names %s, which does not exist (%v)", name, p, err)
			}
		}
	}
}

// TestDevicesImportNothingAbove checks that a folder below rdma may import only others below
// rdma, and folders that import nothing of this module.
func TestDevicesImportNothingAbove(t *testing.T) {
	rules := policy()
	for name, allowed := range rules {
		if name != "rdma" && !strings.HasPrefix(name, "rdma/") {
			continue
		}
		for _, p := range allowed {
			if below := p == "rdma" || strings.HasPrefix(p, "rdma/"); !below && len(rules[p]) > 0 {
				t.Errorf("%s may import %s, which is above it: it imports %s", name, p, strings.Join(rules[p], " "))
			}
		}
	}
}

// TestRaceSkipsPureFolders checks that the race detector skips the pure folders and no others.
func TestRaceSkipsPureFolders(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if want := "\nPURE := " + strings.Join(pureFolders, " ") + "\n"; !strings.Contains(string(makefile), want) {
		t.Errorf("the Makefile must have the line %q", strings.TrimSpace(want))
	}
}

// TestRaceAtNight checks that the folders which the race detector visits only at night start
// no goroutines, commands aside.
func TestRaceAtNight(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(makefile), "\nRACE_AT_NIGHT := ")
	list, _, _ = strings.Cut(list, "\n")
	if !found || list == "" {
		t.Fatal("the Makefile has no line RACE_AT_NIGHT := folders")
	}
	h := surface()
	for folder, files := range h.folders {
		if !slices.ContainsFunc(strings.Fields(list), func(f string) bool { return folder == f || strings.HasPrefix(folder, f+"/") }) {
			continue
		}
		for _, s := range files {
			if s.test || s.file.Name.Name == "main" || strings.HasPrefix(folder, "tests/") {
				continue
			}
			ast.Inspect(s.file, func(n ast.Node) bool {
				if g, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%s: starts a goroutine, but RACE_AT_NIGHT of the Makefile has %s", h.at(g), folder)
				}
				return true
			})
		}
	}
}

// policy parses importPolicy.
func policy() map[string][]string {
	rules := map[string][]string{}
	for line := range strings.Lines(importPolicy) {
		if words := strings.Fields(line); len(words) > 0 {
			rules[words[0]] = words[1:]
		}
	}
	return rules
}

// rule returns the line of a folder, and whether it has one.
func rule(folder string) (allowed []string, listed bool) {
	rules := policy()
	if allowed, listed = rules[folder]; !listed {
		allowed, listed = rules[path.Dir(folder)+"/*"]
	}
	return allowed, listed
}

func (h *house) checkImports(folder string, files []*source) {
	allowed, listed := rule(folder)
	for _, s := range files {
		if s.test {
			continue
		}
		if !listed {
			h.fault(folder, "has no line in the import rule (house_imports_test.go): decide what it may import")
			return
		}
		mine := slices.Concat(allowed, policy()[s.path])
		for _, imp := range s.file.Imports {
			h.checkImport(s, imp, mine)
		}
		if slices.Contains(pureFolders, folder) {
			h.checkPure(s)
		}
	}
}

func (h *house) checkImport(s *source, imp *ast.ImportSpec, allowed []string) {
	name, err := strconv.Unquote(imp.Path.Value)
	if err != nil {
		h.fault(h.at(imp), "import path %s: %v", imp.Path.Value, err)
		return
	}
	ours, isOurs := strings.CutPrefix(name, module+"/")
	first, _, _ := strings.Cut(name, "/")
	switch {
	case name == "C":
		if s.folder != "rdma/ofi" && s.folder != "internal/pmix" && s.folder != "cabi/lib" {
			h.fault(h.at(imp), "uses cgo: only rdma/ofi, internal/pmix and cabi/lib may")
		}
	case isOurs:
		match := func(p string) bool { ok, err := path.Match(p, ours); return ok && err == nil }
		if !slices.ContainsFunc(allowed, match) && !slices.Contains(allowed, "anything") {
			h.fault(h.at(imp), "%s may not import %s (the import rule is in house_imports_test.go)", s.folder, ours)
		}
	case strings.Contains(first, ".") && !strings.HasPrefix(name, "golang.org/x/"):
		if !strings.HasPrefix(s.folder, "cmd/") {
			h.fault(h.at(imp), "imports %s: only commands use more than the standard library and golang.org/x", name)
		}
	}
}

func (h *house) checkPure(s *source) {
	for _, imp := range s.file.Imports {
		name := strings.Trim(imp.Path.Value, `"`)
		for _, impure := range impureImports {
			if name == impure || strings.HasPrefix(name, impure+"/") {
				h.fault(h.at(imp), "%s is pure and does not import %s", s.folder, name)
			}
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			h.fault(h.at(n), "%s is pure and starts no goroutine", s.folder)
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(impureTime, n.Sel.Name) {
				h.fault(h.at(n), "%s is pure and does not call time.%s: take the time as an argument", s.folder, n.Sel.Name)
			}
		}
		return true
	})
}
