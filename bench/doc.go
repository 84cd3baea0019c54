// Package bench is a registry of benchmarks that run as ranks of a job and print the
// columns of the OSU Micro-Benchmarks or JSON. "muster bench" starts them. Folder
// groups compares them with the same loops in C on other MPI libraries and has the claims,
// folder results has the tables and the pages, and folder peers is the command that
// measures docs/results.
//
// The loops are those of OSU, so that figures can be compared: the application touches
// buffers once before the loop and, unless Params.Touch is set, not inside it; latency
// is half of a round trip; bandwidth counts a window of non-blocking sends answered by
// one short message.
//
// Benchmarks of the second kind, [Verbs], run between two processes without MPI. They
// alternate between devices of package rdma and bare sockets.
//
// Times are taken over batches, not single messages, because reading the clock
// costs as much as a short message takes; min, p50 and p99 are over batches.
package bench
