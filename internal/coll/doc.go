// Package coll implements the algorithms of collective communication and the choice
// between them. Each file holds a family of algorithms; Algorithms returns the table
// of all of them. An algorithm builds the graph of one rank from a Shape; package
// sched executes, proves and draws graphs. The package is pure: no I/O, no clock, no
// goroutines.
package coll
