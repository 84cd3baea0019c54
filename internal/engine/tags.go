package engine

import (
	"math"

	"github.com/muster-mpi/muster/internal/sched"
)

// The tags that the library reserves, for its own messages and those of package mpi. A tag
// must differ only from the others of its context (tags_test.go): contexts keep them
// apart from each other, and from the messages of the program.

// Tags in the context of collectives, in which they separate collectives that are under way
// at the same time.
const (
	// BlockingTag is that of all blocking calls. There is one at a time, and all ranks
	// make them in the same order. Messages between two ranks keep their order, and the
	// n-th send of a schedule to a rank matches that rank's n-th receive; so the messages
	// of the next call, which may arrive while this rank is in the last one, match
	// receives in order too.
	BlockingTag = 0
	// ReleaseTag wakes a rank that sleeps in a barrier on the board.
	ReleaseTag = 1
	// StartedTag and up are of the calls that begin with I, each with its own number,
	// counted per communicator. All ranks make them in the same order, so they count
	// alike. A number repeats after 2²⁹ calls.
	StartedTag = 2
	// PreparedTag and up are of the calls that end with Init, counted separately. A
	// persistent collective keeps its number, so that several may be started in any
	// order. Two runs of one are separated like blocking calls.
	PreparedTag = 1 << 29
	// MadeTag and up are of messages of a rank to itself, with which Idup completes. Nobody
	// has as many persistent collectives as precede it.
	MadeTag  = PreparedTag + 1<<28
	MadeTags = StreamTag - MadeTag
	// StreamTag and up are of the streams of a schedule that may overtake each other
	// (sched.Op), a range of tags for each of the tags above. 2¹⁵ started and almost as
	// many prepared collectives have their own ranges.
	StreamTag  = 1 << 30
	StreamRows = 1 << 15
	// LastTags and up are those of other messages, which follow.
	LastTags = StreamTag + (2*StreamRows-1)*sched.Streams
)

const (
	TeamTag      = math.MaxInt32 - iota // forms the team of the ranks of a host
	WakeTag                             // wakes a rank that sleeps in it
	noteBroken                          // a note, as those below: the communicator is broken (broken.go)
	noteAsk                             // was that your call, too?
	noteReply                           // the calls of the sender
	noteAskAll                          // what were your calls?
	noteLeft                            // the sender is in Finalize and will not make the call
	noteRevoke                          // tolerate.go
	noteAgree                           // agree.go: a message of an agreement,
	notePart                            // a part of one
	noteWake                            // wakes a rank that sleeps in an agreement
	noteFreed                           // release.go: to the parent
	noteReleased                        // to the children; the last note
	ProfileTag                          // the counters of a rank at the end, to rank 0
	CheckTag                            // the description of a call, in check mode
	SplitTag                            // the colors and keys of ranks
)

// Tags in the context of a window.
const (
	requestTag  = 0
	PostTag     = 1 // Win.Post: the exposure epoch begins
	CompleteTag = 2 // Win.Complete: the access epoch is over
	firstAnswer = 16
	lastAnswer  = math.MaxInt32 // answers have the tags from firstAnswer on
)

// CheckpointTag is the tag of parts, the only messages in the context of their communicator.
const CheckpointTag = 0

// FileTag is the tag of data of files, the only messages in the context of their communicator.
const FileTag = 0
