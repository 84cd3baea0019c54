// Package nodecoll implements collectives of ranks that share memory: they write into a
// common segment and read what the others wrote, without messages (T2 4.3, 4.4).
//
// The segment has a section for each rank, which only that rank writes:
//
//	cells   16 cache lines; each has a word with its round number and 56 bytes of
//	        data: a small contribution travels in one line
//	slots   16 of 4 KB, for larger contributions; a round may use up to 8
//	done    the last round that the rank has finished
//	asleep  the rank that this rank sleeps for
//	calls   the latest calls of the rank, for errors
//
// A collective is one or more rounds, numbered alike by all ranks. In a round some ranks
// write data into their cell or slots of that round and publish its word; others wait for
// the word and copy the data out, all at the same time (team.go). move.go and reduce.go
// implement the collectives in terms of rounds.
//
// A segment uses 65.25 KB of memory for each rank, as far as it is touched: a communicator
// with only small collectives uses one page of each section.
//
// Team is independent of communicators. A [Driver] makes progress while the rank waits,
// and puts it to sleep and wakes it; an [Exchange] carries the few messages that set the
// segment up (form.go). So a Team can be a whole communicator, or the part of one that is
// on one node.
package nodecoll
