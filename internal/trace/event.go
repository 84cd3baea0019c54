package trace

import "slices"

// None is the rank of an event that has no peer. AnyRank is that of a receive from any.
const (
	AnyRank = -1
	None    = -2
)

// Event is a call of a rank. Times are in ns since the beginning of the trace; ranks are
// those of the world. A trace may have ten million events, hence their narrow fields.
type Event struct {
	*Label
	Begin, End       int64
	Bytes, FromBytes int
	Comm             int32 // the communicator: an index of Rank.Comms
	Peer, Tag        int32
	Calls            int32 // how many calls it represents, if more than one

	// Sends reports whether the call has sent a message to Peer, with Tag and Bytes, and
	// SendNumber is its number.
	SendNumber int32

	// From is the rank whose message the call has received, or None. FromTag, FromBytes and
	// RecvNumber describe the message.
	From, FromTag, RecvNumber int32

	// Starts reports whether the call has started an operation, and By is the index of the
	// call of the same rank that completed it, or -1.
	By int32

	// Nth is the number of a collective call among those of its communicator that block, or
	// among those that do not.
	Nth int32

	// Packing is the time in ns in which data of layouts was copied for the call: before it, if
	// it sends; within it, if it receives or waits; before and after a collective.
	Packing int32

	Sends, Starts bool
}

// Label is what all calls at a place have in common.
type Label struct {
	Name string
	Kind string // as mpi.CallKind: send, receive, wait, ...
	Site string // file and line from which the program called it, or "" if not known
}

// Labels returns the same label for equal ones.
type Labels map[Label]*Label

// Of returns a label.
func (l Labels) Of(x Label) *Label {
	if l[x] == nil {
		l[x] = &x
	}
	return l[x]
}

// Kinds of events that the analysis treats differently.
const (
	kindSend       = "send"
	kindRecv       = "receive"
	kindSendrecv   = "sendrecv"
	kindCollective = "collective"
)

// Comm is a communicator.
type Comm struct {
	Name    string
	Context uint32 // separates its messages from those of others with a rank in common
	Ranks   []int  // its ranks in the world, in order; nil: all of the job
}

// lowest returns the lowest rank of the world in the communicator. Together with the
// context it identifies the communicator in the job.
func (c *Comm) lowest() int {
	if len(c.Ranks) == 0 {
		return 0
	}
	return slices.Min(c.Ranks)
}

// Phase is what the library does for a rank besides or within its calls, in its own row
// of the timeline.
type Phase struct {
	Row        string // one of the rows below
	Name       string
	Begin, End int64 // equal for an instant
	Sends      bool  // a message that this rank sends, not receives
	Peer       int   // a rank of the world, or None
	Tag, Bytes int
	Count      int    // of retransmissions
	Steps      []Step // of a message
}

// Step is a step of the protocol of a message. It lasts until the next one.
type Step struct {
	Name string
	At   int64
}

// UnusedRTR is the name of the phase of an RTR that no message has used.
const UnusedRTR = "RTR unused"

// Rows of phases.
const (
	// RowProtocol has messages that use a rendezvous, with their steps. A message that is
	// sent eagerly has none beside its calls.
	RowProtocol = "protocol"
	// RowProgress has the times in which the progress thread drives the rank's messages.
	RowProgress = "progress thread"
	// RowAsleep has the times in which a rank that waits has given up its core.
	RowAsleep = "asleep"
	// RowNetwork has the retransmissions that the rank has found, as instants.
	RowNetwork = "network"
)

// channel separates messages that match in order.
type channel struct {
	peer, tag int32
	context   uint32
}

// Number numbers the messages and collective calls of a rank. The n-th message from one rank
// to another with a context and tag is received by the n-th receive, in the order in which
// the receives were posted, that has received such a message.
func (r *Rank) Number() {
	sent, received := map[channel]int32{}, map[channel]int32{}
	type group struct {
		context uint32
		starts  bool
	}
	calls := map[group]int32{}
	for i := range r.Events {
		e := &r.Events[i]
		context := r.Comms[e.Comm].Context
		if e.Sends {
			k := channel{e.Peer, e.Tag, context}
			e.SendNumber = sent[k]
			sent[k]++
		}
		if e.From >= 0 {
			k := channel{e.From, e.FromTag, context}
			e.RecvNumber = received[k]
			received[k]++
		}
		if e.Kind == kindCollective {
			k := group{context, e.Starts}
			e.Nth = calls[k]
			calls[k]++
		}
	}
}

// lanes assigns each of n slices, ordered by their beginnings, a row of the timeline, from
// 0: calls of several goroutines may overlap, and those of one row must not.
func lanes(n int, span func(i int) (begin, end int64)) []int {
	lanes := make([]int, n)
	var busy []int64 // until when
	for i := range lanes {
		begin, end := span(i)
		lane := 0
		for lane < len(busy) && busy[lane] > begin {
			lane++
		}
		if lane == len(busy) {
			busy = append(busy, 0)
		}
		lanes[i], busy[lane] = lane, end
	}
	return lanes
}
