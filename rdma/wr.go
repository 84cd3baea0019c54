package rdma

// Op is the operation of a work request or completion.
type Op uint8

const (
	OpSend  Op = iota // sends a message to the peer's receive queue
	OpWrite           // writes Body to the peer's memory at Remote
	OpRead            // reads the peer's memory at Remote into Body
	// OpPull and OpPush are the two halves of a cooperative copy. The owner of a
	// region registered as Cooperative posts OpPush with its RKey; the peer posts
	// OpPull with the region's RKey and Remote and its own Body. Each side claims
	// pieces from a shared cursor whenever it polls: two cores copy if both sides wait,
	// one copies everything if the other computes. Both requests complete when the last
	// byte has arrived, with the byte count in Len. An OpPush waits until the peer pulls
	// and therefore has its own limit, Attr.MaxPush.
	OpPull
	OpPush
	OpRecv     // completions only: a message has arrived
	OpLowWater // completions only: an SRQ runs low
	// OpWriteRecord, on UD, writes Body to the peer's memory at Remote, except for parts
	// that are lost. It completes when it has been passed to the network. The peer's
	// OpRecord completions report what has arrived.
	OpWriteRecord
	// OpRecord, completions only: a Write-Record of Len bytes was placed. Data is the
	// range of registered memory that arrived, and ID is that of the work request at its
	// origin. If parts were lost, each range that arrived generates its own completion,
	// all with the same ID and Len, in ascending order. Nothing more of the record is
	// placed afterwards.
	OpRecord
	// OpRefused, completions only: a peer could not accept a UD message that had already
	// completed here. ID is that of the work request; Status is the reason. Like the
	// message, this report may be lost.
	OpRefused
	// OpDisconnected, completions only: nothing more arrives from Peer, although this side
	// has not closed the connection. Status is the reason. It appears once, in the receive
	// queue, even if nothing is posted. RC devices report every end of a connection; a
	// device that continues by other means reports only failures it could not repair.
	// StatusRemoteAccess: Peer has attempted too many forbidden accesses, and the device
	// accepts nothing more from it.
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

// Ops returns the set of the given operations.
func Ops(ops ...Op) OpSet {
	var s OpSet
	for _, o := range ops {
		s |= 1 << o
	}
	return s
}

// Has reports whether o is in the set.
func (s OpSet) Has(o Op) bool { return s>>o&1 != 0 }

// HeadMax is the capacity of the Head of a work request.
const HeadMax = 64

// Flags are the flags of a work request.
type Flags uint8

const (
	// Inline, on an OpSend or OpWrite: Body is copied when the request is accepted, needs no
	// LKey, and only a failure generates a completion. Body is at most Attr.MaxInline bytes
	// long.
	Inline Flags = 1 << iota
	// Synchronous, on an OpWrite: a device that copies with this processor should
	// transfer the data before PostSend returns, within reason, because the caller will
	// not poll soon. It affects only timing.
	Synchronous
	// Solicited: the peer should handle the message even while it computes, because the
	// sender waits for an answer (the solicited event of RFC 5040 section 5.3 and of
	// InfiniBand). See NotifySolicited; other queues ignore the flag.
	Solicited
	// Lazy: no one waits for this completion. A device that needs the peer's
	// acknowledgement may receive it late, combined with others. Inline implies Lazy.
	Lazy
	// More, on an inline OpSend: the caller will poll soon, perhaps after further requests
	// (FI_MORE of libfabric). A device without a progress thread (Attr.Served, RemoteCPU) may
	// hold the message back to send several together, until the next Poll. It reports that by
	// Caps.Urgent meanwhile, and a wait returns at once.
	More
)

// SendWR is a work request. It holds no interface and no slice header, so that
// initializing one takes only a few stores.
type SendWR struct {
	ID      uint64 // returned in the completion
	Body    Mem
	Remote  uint64 // OpWrite, OpRead, OpPull, OpWriteRecord: address at the peer
	RKey    uint64 // the region's key at the peer; OpPush: the own key
	Peer    PeerID // RD and UD
	LKey    uint32 // of the region that contains Body, if Attr.LocalKeys
	Op      Op
	Flags   Flags
	HeadLen uint16
	Head    [HeadMax]byte // OpSend: precedes Body
}

// RecvWR is a buffer for one message.
type RecvWR struct {
	ID   uint64
	Body Mem
	LKey uint32
}

// Completion reports the end of a work request or the arrival of a message.
type Completion struct {
	ID     uint64 // of the work request; 0 for a lent message
	Data   Mem    // OpRecv: the message, Head first; OpRecord: the placed range
	Len    uint64 // bytes transferred
	Peer   PeerID // the remote side
	Op     Op
	Status Status
}

// Status is the outcome of a work request.
type Status uint8

const (
	StatusOK           Status = iota
	StatusRemoteAccess        // the key, bounds or rights do not permit the access
	StatusTooLong             // the message did not fit the posted buffer
	StatusPeerGone            // the peer's process or link no longer exists
	StatusFlushed             // the queue was closed first
	StatusFault               // the transport failed; the device's log has details
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

// Err returns nil for StatusOK and an error for every other status.
func (s Status) Err() error {
	if s == StatusOK {
		return nil
	}
	return statusError(s)
}
