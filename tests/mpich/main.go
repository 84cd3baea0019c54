// Command mpich runs the tests of MPICH's own suite on Muster's libmpich.so.12 (package cabi),
// and compares them with MPICH itself.
//
//	make test-mpich                                      what must pass: testdata/passes.txt
//	make test-mpich MPICH='-all -reference'              all tests, on both
//	make test-mpich MPICH='-all -update -only pt2pt/'    add what passes now
//	make test-mpich MPICH='-openmpi'                     the same programs, built for Open MPI
//
// The suite is in Debian's source package mpich. It is downloaded by apt and built once with
// mpicc.mpich, into a cache folder; the same programs then run on either library. A test
// passes by the rules of the suite: status 0, and "No Errors" and nothing else in the output,
// unless its line in the testlist asks for something else. Left out are tests that choose an
// algorithm of MPICH by an environment variable, and those that are marked as beyond the standard.
package main

import (
	"flag"

	"github.com/muster-mpi/muster/tests/judge"
)

type options struct {
	tree    string
	every   int
	openmpi bool
}

func main() {
	var o options
	flag.StringVar(&o.tree, "tree", "", "folder test/mpi of an MPICH source tree that is built already")
	flag.IntVar(&o.every, "every", 1, "build and run only every nth program of each folder, for a short run")
	flag.BoolVar(&o.openmpi, "openmpi", false, "build the suite with the compilers of Open MPI, and run it on libmpi.so.40")
	judge.Main(judge.Suite{Name: "mpich", Passes: "tests/mpich/testdata/passes.txt", OpenMPI: &o.openmpi, Tests: o.suite})
}
