// Package inspect reports what a job of package mpi does and why: which
// protocol and device carry the messages to a rank, which algorithm serves a
// collective call, which network a job would use, and counters of each
// mechanism. It serves the muster command, benchmarks and tests. A program that
// only communicates does not need it.
//
// The counters are those of the calling rank. To see the effect of a part of a
// program, read them before and after it.
package inspect
