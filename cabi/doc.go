// Package cabi makes libmpich.so.12 and libmpi.so.40, with which C and Fortran programs that were
// built for MPICH and Open MPI run on Muster without being compiled again.
//
//	functions.txt   every function with its parameters
//	abi             what each ABI has chosen: constants, handles, the layout of MPI_Status
//	gen             makes the fronts, the tables of the core and the reference page of both
//	front           the libraries in C: MPI_X and PMPI_X, error handlers, loading of the core;
//	                direct.c exchanges short messages over shared memory without the core
//	lib             the core as a shared library: the only code with cgo
//	core            the functions, in Go, on integer handles and addresses
//
// The front loads the core in MPI_Init, because a Go runtime does not survive a fork: a
// program may become a daemon first. "make cabi" builds the libraries.
package cabi

//go:generate go run ./gen
