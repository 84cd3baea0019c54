// Package launchers tests Muster under common launchers and schedulers, which the tests
// start themselves: Slurm with two nodes on loopback, Hydra on two network namespaces,
// Open MPI's mpirun, and processes with only four environment variables. It also tests
// C programs built with MPICH under muster run.
//
//	make test-launchers
//
// The tests have the build tag launchers, because they start servers and build several
// programs. A test whose launcher is not installed is skipped.
package launchers
