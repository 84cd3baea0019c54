// Package coll holds the algorithms of collective communication, one file for a
// family, as rows of a table (Algorithms), and the choice between them. An
// algorithm builds the graph of one rank from a Shape; package sched runs, proves
// and draws it. The package is pure.
package coll
