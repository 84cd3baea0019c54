// Package direct lists the words of a rank that the C front of package cabi shares with the
// engine. With them a C program sends and receives short messages over the rings of shared
// memory without entering Go, which costs about 100 ns for each call.
//
// The front takes the engine's lock as its biased owner (internal/engine/lock.go), so both
// sides use the words in place, and neither needs a copy of the other's state. What the
// front must check before it uses a word, and what it leaves to Go, is in
// cabi/front/direct.c. Package cabi generates the C header from the structs here.
//
// The words are fields of Go objects, which are pinned (Pins).
package direct
