// Package nodecoll is collectives of ranks that share memory: they write into a
// common segment and read what the others wrote, without messages (T2 4.3, 4.4).
//
// The segment has a section for each rank, which only that rank writes:
//
//	cells   16 lines; each has a word that says which round it belongs to,
//	        and 56 bytes of data: a small contribution travels in one line
//	slots   16 of 4 KB, for what is larger; a round may take up to 8
//	done    the last round that the rank is through with
//	asleep  whom the rank sleeps for
//	calls   the latest calls of the rank, for errors
//
// A collective is one or more rounds, counted by all ranks alike. In a round some
// ranks put data into their cell or slot of that round and raise its word; others
// wait for the word and copy the data out, all at the same time (team.go). What
// each collective does in its rounds is in move.go and reduce.go.
//
// A segment costs 65.25 KB of memory for each rank, as far as it is touched: a
// communicator that only sees small collectives takes one page of each section.
//
// Team knows nothing of communicators: a [Driver] lets the rank's messages move
// while it waits, and puts it to sleep and wakes it; an [Exchange] carries the few
// messages by which the segment is made known (form.go). So the part of a
// communicator that lives on one node can be a Team as well as a whole one.
package nodecoll
