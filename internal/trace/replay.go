package trace

// A trace as a program that can be replayed: what each rank computes and calls, without the
// times that its calls took.

// OpKind classifies the operations of a program.
type OpKind uint8

const (
	OpSend       OpKind = iota // sends Bytes to Peer with Tag
	OpRecv                     // receives FromBytes of From with FromTag
	OpSendrecv                 // both
	OpWait                     // waits for the operations Completes
	OpCollective               // a collective on Comm: Name, Bytes, and the root Peer or None
	OpOther                    // a call that neither sends nor receives: it takes Took
)

// Op is an operation of a rank. A simulator replays it as: compute for Compute, then do it.
// Ranks are those of the world.
type Op struct {
	Kind OpKind
	Name string
	// Compute is the time in ns from the end of all earlier calls of the rank until this
	// one, and Took how long the recorded call took.
	Compute, Took int64
	Comm          *Comm
	Peer          int
	Tag, Bytes    int
	// From, FromTag and FromBytes describe the message that the operation receives. From is
	// the rank that has sent it, also if the program named none. It is None if the program
	// has received no message, because it was cancelled or the trace has ended before.
	From, FromTag, FromBytes int
	// Starts reports that the call only starts the operation. A later one completes it, or
	// none if the trace has ended before.
	Starts bool
	// Completes are the indices of the operations that the call has completed.
	Completes []int
}

// Program returns the operations of a rank in the order of its calls. Op i is event i.
func (k *Rank) Program() []Op {
	ops := make([]Op, len(k.Events))
	busy := int64(0) // until when the rank was in calls
	for i := range k.Events {
		e := &k.Events[i]
		if i == 0 {
			busy = min(0, e.Begin)
		}
		ops[i] = Op{Kind: e.opKind(), Name: e.Name, Compute: max(0, e.Begin-busy), Took: e.End - e.Begin, Comm: &k.Comms[e.Comm],
			Peer: int(e.Peer), Tag: int(e.Tag), Bytes: e.Bytes, From: int(e.From), FromTag: int(e.FromTag), FromBytes: e.FromBytes, Starts: e.Starts}
		busy = max(busy, e.End)
	}
	for i := range k.Events {
		if e := &k.Events[i]; e.Starts && e.By >= 0 && int(e.By) != i {
			by := &ops[e.By]
			by.Kind = OpWait
			by.Completes = append(by.Completes, i)
		}
	}
	return ops
}

func (e *Event) opKind() OpKind {
	switch {
	case e.Kind == kindSendrecv:
		return OpSendrecv
	case e.Kind == kindSend:
		return OpSend
	case e.Kind == kindRecv, e.From >= 0: // the message of an Mrecv is that of its Mprobe
		return OpRecv
	case e.Kind == kindCollective:
		return OpCollective
	}
	return OpOther
}
