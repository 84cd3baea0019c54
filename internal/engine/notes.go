package engine

import "math"

// Tags of notes, in the context of collectives. Package mpi has the two above them.
const (
	noteBroken   = math.MaxInt32 - 2 - iota // broken.go: the communicator is broken
	noteAsk                                 // was that your call, too?
	noteReply                               // the calls of the sender
	noteAskAll                              // what were your calls?
	noteLeft                                // the sender is in Finalize and will not make the call
	noteRevoke                              // tolerate.go
	noteAgree                               // agree.go: a message of an agreement,
	notePart                                // a part of one
	noteWake                                // wakes a rank that sleeps in an agreement
	noteFreed                               // release.go: to the parent
	noteReleased                            // to the children
)
