// Package pmix connects to launchers that support only PMIx: Open MPI's mpirun, prterun,
// srun --mpi=pmix. The wire protocol of PMIx changes between releases, so the package uses
// the host's own library, libpmix.so.2. It is loaded at run time: a program built with tag
// pmix also starts on hosts without it.
//
//	go build -tags pmix    needs cgo and a C compiler
//
// The C interface (tag cabi) always has it. Without a tag, [Built] is false and [Open]
// returns an error. Package pmi implements its client on a [Session].
package pmix
