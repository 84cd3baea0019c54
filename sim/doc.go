// Package sim simulates collectives of many ranks in virtual time. It executes the
// schedules of package internal/coll, which are those that programs run, on a model of a
// machine: LogGP (Alexandrov, Ionescu, Schauser, Scheiman 1995) for messages within a node
// and between nodes, with the occupancy of rails, cores and memory. Ranks with the same
// schedule share its structure, so that a million ranks fit into a small computer.
//
// The package is pure: it does no I/O, reads no clock and starts no goroutine. The
// command muster sim is on top of it.
package sim
