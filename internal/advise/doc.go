// Package advise finds what a program should change so that it runs faster, from its trace.
//
// [Find] asks each of a table of questions: is one rank always late at a collective, are long
// transfers waited for where the rank could compute, and so on. An answer is a [Finding]: the
// call sites, what was seen, the change, and by how much the change can shorten the run. The
// gain is an upper bound from the trace alone: it assumes that the change works, and that the
// rest of the program stays as it was.
//
// The package does no I/O and reads no clock.
package advise
