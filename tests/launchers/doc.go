// Package launchers has tests alone: Muster under the launchers and schedulers
// that people have, each of them real and started here: Slurm with two nodes on
// loopback, Hydra on two network namespaces, Open MPI's mpirun, processes with
// nothing but four variables; and C programs built with MPICH under muster run.
//
//	make test-launchers
//
// The tests have the build tag launchers, because they start servers and build
// several programs. One whose launcher is not installed is skipped.
package launchers
