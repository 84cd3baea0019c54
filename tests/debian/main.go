// Command debian runs programs of Debian that are built for MPICH on Muster's libmpich.so.12
// (package cabi), and compares them with MPICH itself. They check their own results.
//
//	make test-debian                                what must pass: testdata/passes.txt
//	make test-debian DEBIAN='-all -reference'       all programs, on both
//	make test-debian DEBIAN='-all -update'          add what passes now
//
// NetPIPE, the tests of ScaLAPACK and those of OpenCoarrays are binary packages, which apt
// downloads and dpkg unpacks into a cache folder; nothing is installed. HPCC is built from its source
// package with mpicc.mpich.
package main

import (
	"context"
	"path/filepath"

	"github.com/muster-mpi/muster/tests/judge"
)

func main() {
	judge.Main(judge.Suite{Name: "debian", Passes: "tests/debian/testdata/passes.txt", Tests: programs})
}

// programs returns the wanted programs of all packages.
func programs(ctx context.Context, cache string, wanted func(id string) bool) (tests []*judge.Test, missing []string, err error) {
	root, err := unpackAll(ctx, cache)
	if err != nil {
		return nil, nil, err
	}
	libraries, err := libraryPath(root)
	if err != nil {
		return nil, nil, err
	}
	all := []*judge.Test{netpipe(cache, root)}
	for _, list := range []func(cache, root string) ([]*judge.Test, error){scalapack, coarrays} {
		some, err := list(cache, root)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, some...)
	}
	all = append(all, hpcc(cache))
	for _, t := range all {
		if !wanted(t.ID) {
			continue
		}
		if t.Program == hpccProgram(cache) {
			if err := buildHPCC(ctx, cache, libraries); err != nil {
				return nil, nil, err
			}
		}
		t.Env = append(t.Env, "LD_LIBRARY_PATH="+libraries)
		tests = append(tests, t)
	}
	return tests, nil, nil
}

// one returns the only match of a pattern below a folder.
func one(folder, pattern string) string {
	if found, err := filepath.Glob(filepath.Join(folder, pattern)); err == nil && len(found) > 0 {
		return found[0]
	}
	return filepath.Join(folder, pattern)
}
