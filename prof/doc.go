// Package prof holds what the ranks of a job have counted, and shows it on one screen.
//
// The [Counters] of a rank are plain values: messages and bytes, their lengths, memory
// by purpose, connections, retransmissions. Each is added up while the program runs, in
// memory of the rank alone, or is worked out when it is asked for; a program pays the
// same whether somebody looks or not. mpi.Profile gives those of the calling rank.
//
// At the end of a job that wants a profile, the ranks combine theirs along a tree into
// one [Summary]: for each counter the sum, the least and the greatest value, and who has
// it. What travels is as long as the list of names, however many ranks there are.
//
// [Arrivals] is another profile: when the ranks came to each collective and when they left
// it, by one [Clock], and what that amounts to for each place of the program that makes
// calls. A rank keeps records of its calls; they are combined in the same way.
package prof
