package trace

// None is the rank of an event that has no peer. AnyRank is that of a receive from any.
const (
	AnyRank = -1
	None    = -2
)

// Event is a call of a rank. Times are in ns since the beginning of the trace; ranks are
// those of the world.
type Event struct {
	Name       string
	Kind       string // as mpi.CallKind: send, receive, wait, ...
	Begin, End int64
	Comm       string // the name of the communicator
	Context    uint32 // of the communicator: separates its messages from others
	Lowest     int    // the lowest rank of the communicator
	Peer       int
	Tag, Bytes int
	Calls      int // how many calls it represents, if more than one

	// Sends reports whether the call has sent a message to Peer, with Tag and Bytes, and
	// SendNumber is its number.
	Sends      bool
	SendNumber int

	// From is the rank whose message the call has received, or None. FromTag, FromBytes and
	// RecvNumber describe the message.
	From                           int
	FromTag, FromBytes, RecvNumber int

	// Starts reports whether the call has started an operation, and By is the index of the
	// call of the same rank that completed it, or -1.
	Starts bool
	By     int

	// Nth is the number of a collective call among those of its communicator that block, or
	// among those that do not.
	Nth int
}

// Kinds of events that the analysis treats differently.
const (
	kindSend       = "send"
	kindSendrecv   = "sendrecv"
	kindCollective = "collective"
)

// channel separates messages that match in order.
type channel struct {
	peer, tag int
	context   uint32
}

// Number numbers the messages and collective calls of a rank. The n-th message from one rank
// to another with a context and tag is received by the n-th receive, in the order in which
// the receives were posted, that has received such a message.
func Number(events []Event) {
	sent, received := map[channel]int{}, map[channel]int{}
	type group struct {
		context uint32
		starts  bool
	}
	calls := map[group]int{}
	for i := range events {
		e := &events[i]
		if e.Sends {
			k := channel{e.Peer, e.Tag, e.Context}
			e.SendNumber = sent[k]
			sent[k]++
		}
		if e.From >= 0 {
			k := channel{e.From, e.FromTag, e.Context}
			e.RecvNumber = received[k]
			received[k]++
		}
		if e.Kind == kindCollective {
			k := group{e.Context, e.Starts}
			e.Nth = calls[k]
			calls[k]++
		}
	}
}

// Lanes assigns each event a row of the timeline, from 0: calls of several goroutines may
// overlap, and those of one row must not.
func Lanes(events []Event) []int {
	lanes := make([]int, len(events))
	var busy []int64 // until when
	for i, e := range events {
		lane := 0
		for lane < len(busy) && busy[lane] > e.Begin {
			lane++
		}
		if lane == len(busy) {
			busy = append(busy, 0)
		}
		lanes[i], busy[lane] = lane, e.End
	}
	return lanes
}
