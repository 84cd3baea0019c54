// Package bench is the measuring kit: a registry of benchmarks that run as ranks
// of a job, and their output in the columns of the OSU Micro-Benchmarks or as
// JSON. "muster bench" starts them; folder peers holds the same loops in C for
// other MPI libraries.
//
// The loops are OSU's, so that figures can be compared: buffers are touched once
// before the loop and, unless Params.Touch is set, not by the application
// inside it; latency is half of a round trip; bandwidth counts a window of
// non-blocking sends answered by one short message.
//
// Benchmarks of a second kind, [Verbs], run between two processes without MPI: they drive
// devices of package rdma, and bare sockets to compare them with, in turns.
//
// Times are taken over batches, not single messages, because reading the clock
// costs as much as a short message takes; min, p50 and p99 are over batches.
package bench
