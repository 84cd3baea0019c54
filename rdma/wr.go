package rdma

// Op is what a work request does, and what a completion reports.
type Op uint8

const (
	OpSend  Op = iota // a message into the peer's receive queue
	OpWrite           // Body into the peer's memory at Remote
	OpRead            // the peer's memory at Remote into Body
	// OpPull and OpPush are the two halves of a cooperative copy. The owner of
	// a region registered as Cooperative posts OpPush with its RKey; the peer
	// posts OpPull with the region's RKey and Remote and its own Body. Each side
	// claims pieces from a cursor that both see, whenever it polls: two cores
	// copy at once when both wait, one does it all when the other computes.
	// Both complete when the last byte has arrived, with its count in Len. An OpPush
	// waits until the peer pulls: it has room of its own, Attr.MaxPush.
	OpPull
	OpPush
	OpRecv     // completions only: a message has come
	OpLowWater // completions only: an SRQ runs low
	// OpWriteRecord, on UD, puts Body into the peer's memory at Remote, as far as
	// nothing is lost on the way. It completes when it has been handed on. The peer
	// learns by OpRecord what has come.
	OpWriteRecord
	// OpRecord, completions only: a Write-Record of Len bytes was placed. Data is
	// what has come of it, a range of the registered memory, and ID that of the
	// work request at its origin. If parts were lost, every range that came makes a
	// completion of its own, all with the same ID and Len, in ascending order. Nothing
	// more is placed of it afterwards.
	OpRecord
	// OpRefused, completions only: a peer could not use a UD message that had
	// completed here before. ID is that of the work request; Status says why. It may
	// get lost, as the message may.
	OpRefused
	// OpDisconnected, completions only: nothing more comes from Peer, though this side has not
	// closed the connection, and Status says why. It comes once, in the receive queue, also to
	// a side that has nothing posted. RC devices report every end of a connection; a device
	// that goes on by other means reports only what it could not repair.
	// StatusRemoteAccess: Peer has tried too often to reach memory that it may not, and the
	// device takes nothing more from it.
	OpDisconnected
	opCount
)

var opNames = [opCount]string{"send", "write", "read", "pull", "push", "recv", "low-water", "write-record", "record", "refused", "disconnected"}

func (o Op) String() string {
	if o < opCount {
		return opNames[o]
	}
	return "op?"
}

// OpSet is a set of operations.
type OpSet uint16

// Ops makes a set.
func Ops(ops ...Op) OpSet {
	var s OpSet
	for _, o := range ops {
		s |= 1 << o
	}
	return s
}

// Has reports whether o is in the set.
func (s OpSet) Has(o Op) bool { return s>>o&1 != 0 }

// HeadMax is the room for a message's Head in a work request.
const HeadMax = 64

// Flags of a work request.
type Flags uint8

const (
	// Inline: Body is copied when the request is taken, and only a failure makes
	// a completion. Body is at most Attr.MaxInline.
	Inline Flags = 1 << iota
	// Prompt, on an OpWrite: a device that moves the data with this processor
	// should do it before PostSend returns, as far as that is bearable, because the
	// caller will not come back soon. It changes nothing but time.
	Synchronous
	// Solicited: the message is one that the peer should see even if it computes,
	// because it waits for an answer (the solicited event of RFC 5040 section
	// 5.3 and of InfiniBand). See SolicitedCQ; other queues take no notice.
	Solicited
	// Lazy: nobody waits for the end of this message. A device that hears of it from
	// the peer may hear late, together with other things. Inline says so too.
	Lazy
)

// SendWR is a work request. It holds no interface and no slice header, so that
// filling one in costs a few stores.
type SendWR struct {
	ID      uint64 // comes back in the completion
	Body    Mem
	Remote  uint64 // OpWrite, OpRead, OpPull, OpWriteRecord: address at the peer
	RKey    uint64 // the region's key there; OpPush: one's own
	Peer    PeerID // RD and UD
	LKey    uint32 // of the region Body lies in, if Attr.LocalKeys
	Op      Op
	Flags   Flags
	HeadLen uint16
	Head    [HeadMax]byte // OpSend: goes before Body
}

// RecvWR is a buffer for one message.
type RecvWR struct {
	ID   uint64
	Body Mem
	LKey uint32
}

// Completion reports the end of a work request or the coming of a message.
type Completion struct {
	ID     uint64 // of the work request; 0 for a lent message
	Data   Mem    // OpRecv: the message, Head first; OpRecord: what was placed
	Len    uint64 // bytes moved
	Peer   PeerID // the other side
	Op     Op
	Status Status
}

// Status is the outcome of a work request.
type Status uint8

const (
	StatusOK           Status = iota
	StatusRemoteAccess        // key, bounds or rights refused the access
	StatusTooLong             // the message did not fit the posted buffer
	StatusPeerGone            // the peer's process or link no longer exists
	StatusFlushed             // the queue was closed first
	StatusFault               // the transport failed; the device's log says how
	statusCount
)

var statusNames = [statusCount]string{
	"ok", "remote access refused", "message longer than the posted buffer",
	"peer is gone", "flushed when the queue closed", "transport fault",
}

func (s Status) String() string {
	if s < statusCount {
		return statusNames[s]
	}
	return "status?"
}

// Err is nil for StatusOK.
func (s Status) Err() error {
	if s == StatusOK {
		return nil
	}
	return statusError(s)
}
