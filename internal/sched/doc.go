// Package sched is collectives as data: a collective is a graph of sends,
// receives, copies and reductions for each rank. Algorithms (package coll) build
// graphs; Run executes one over a Port, blocking, non-blocking or persistent;
// Validate proves that the graphs of all ranks together do what the collective is
// defined to do, in any order that the dependencies allow; String and Parse are
// their text, SVG their picture. The package is pure: no I/O, no clock, no
// goroutine.
package sched
