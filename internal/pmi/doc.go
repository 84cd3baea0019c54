// Package pmi is how the ranks of a job find each other before they can send
// messages: the bootstrap. A launcher gives every process its rank, the size of
// the job and a small store of keys and values; a [Client] is a rank's end of
// it. The wire protocol is PMI-1, the one that MPICH's Hydra and Slurm speak.
//
// [Open] looks at the environment and gives the right client: PMI-1 under a
// launcher that speaks it, PMIx under one that speaks only that (package pmix),
// PMI-1 from rank 0 when four variables stand for a launcher (rendezvous.go), a
// world of one when there is none, and an error when there is a launcher that
// Muster cannot talk to, because N worlds of one are never what the user meant. [NewLocal] makes n clients in one
// process, for ranks that are goroutines.
//
// The [Board] is a page of shared memory beside it, made by `muster run`: each
// rank writes there what it waits for before it sleeps, and the launcher writes
// which ranks have died. So a stuck job can be asked who waits for whom, and a
// rank learns of a death without a message.
//
// [Server] is the launcher's end. It also serves C programs built with MPICH.
package pmi
