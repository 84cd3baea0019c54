// Package sched represents collectives as data: for each rank, a graph of sends,
// receives, copies and reductions.
//
//   - Algorithms (package coll) build graphs with a Builder.
//   - Run executes a graph over a Port; it serves blocking, non-blocking and
//     persistent collectives.
//   - Validate proves that the graphs of all ranks together implement the
//     collective, in any order that the dependencies allow.
//   - Ranks of a node may share a buffer and hand parts of it over to each other, in
//     one memory or with messages (Op.HandOver).
//   - Ranks with the same graph, up to the ranks of their peers, can share it (Pool), and
//     the operations of a long graph can be made while it runs (Generator).
//   - String converts graphs to text; WriteSVG draws them.
//
// The package is pure: it does no I/O, reads no clock and starts no goroutines.
package sched
