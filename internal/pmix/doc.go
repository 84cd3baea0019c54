// Package pmix talks to launchers that speak PMIx and nothing else: Open MPI's
// mpirun, prterun, srun --mpi=pmix. PMIx has no wire protocol that stays the
// same between releases, so the host's own library is used, libpmix.so.2. It is
// opened at run time: a program built with tag pmix starts where there is none.
//
//	go build -tags pmix    needs cgo, a C compiler, pkg-config and libpmix-dev
//
// Without the tag, [Built] is false and [Open] says so. Package pmi makes a
// client of a [Session].
package pmix
