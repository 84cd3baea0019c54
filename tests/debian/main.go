// Command debian runs programs of Debian that are built for MPICH or Open MPI on Muster's libraries
// (package cabi), and compares them with these MPIs. They check their own results.
//
//	make test-debian                                what must pass: testdata/passes.txt
//	make test-debian DEBIAN='-openmpi'              programs built for Open MPI: testdata/passes-openmpi.txt
//	make test-debian DEBIAN='-all -reference'       all programs, on both
//	make test-debian DEBIAN='-all -update'          add what passes now
//
// NetPIPE, the tests of ScaLAPACK and those of OpenCoarrays are binary packages, which apt
// downloads and dpkg unpacks into a cache folder; nothing is installed. HPCC is built from its source
// package with mpicc.mpich, and is a binary package for Open MPI.
package main

import (
	"context"
	"flag"
	"path/filepath"

	"github.com/muster-mpi/muster/tests/judge"
)

func main() {
	var f family
	flag.BoolVar(&f.openmpi, "openmpi", false, "run programs that are built for Open MPI")
	judge.Main(judge.Suite{Name: "debian", Passes: "tests/debian/testdata/passes.txt", OpenMPI: &f.openmpi, Tests: f.programs})
}

// family is the MPI that the programs are built for.
type family struct{ openmpi bool }

// folder returns the part of the names of files for this MPI.
func (f *family) folder() string {
	if f.openmpi {
		return "openmpi"
	}
	return "mpich"
}

// programs returns the wanted programs of all packages.
func (f *family) programs(ctx context.Context, cache string, wanted func(id string) bool) (tests []*judge.Test, missing []string, err error) {
	root, err := f.unpackAll(ctx, cache)
	if err != nil {
		return nil, nil, err
	}
	libraries, err := libraryPath(root)
	if err != nil {
		return nil, nil, err
	}
	all := []*judge.Test{f.netpipe(cache, root)}
	for _, list := range []func(cache, root string) ([]*judge.Test, error){f.scalapack, f.coarrays} {
		some, err := list(cache, root)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, some...)
	}
	all = append(all, hpcc(cache))
	if f.openmpi {
		more, err := f.trees(cache, root)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, more...)
	}
	for _, t := range all {
		if !wanted(t.ID) {
			continue
		}
		if t.Program == hpccProgram(cache) {
			make := func() error { return buildHPCC(ctx, cache, libraries) }
			if f.openmpi {
				make = func() error { return linkHPCC(cache, root) }
			}
			if err := make(); err != nil {
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
