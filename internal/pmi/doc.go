// Package pmi implements the bootstrap: how the ranks of a job find each other before
// they can send messages. A launcher gives every process its rank, the size of the job
// and access to a small key-value store; a [Client] is a rank's end of it. The wire
// protocol is PMI-1, which MPICH's Hydra and Slurm also use.
//
// [Open] inspects the environment and returns the matching client:
//
//   - PMI-1 under a launcher that supports it;
//   - PMIx under a launcher that supports only that (package pmix);
//   - PMI-1 served by rank 0, if four variables replace a launcher (rendezvous.go);
//   - a world of one rank without a launcher.
//
// Open returns an error under a launcher that Muster does not support, because N worlds
// of one rank are never what the user wants. [NewLocal] returns n clients in one process,
// for ranks that are goroutines.
//
// The [Board] is a page of shared memory that `muster run` creates. Each rank writes to it
// what it waits for before it blocks, and the launcher writes which ranks have failed. So
// the launcher can report which rank of a stuck job waits for which, and a rank notices a
// failure without a message.
//
// [Server] is the launcher's end. It also serves C programs built with MPICH.
package pmi
