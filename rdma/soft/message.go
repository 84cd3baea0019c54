package soft

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// The messages of package reliable, and its parameters for RD.

type (
	// message is a posted message.
	message      = reliable.Message[posted]
	transmission = reliable.Transmission[posted]
	windowPool   = reliable.Pool[posted]
)

// posted is what the device keeps about a message.
type posted struct {
	id      uint64 // work request ID
	role    role
	number  uint32 // MSN
	opcode  ddp.Opcode
	tag     ddp.Tag // of a tagged message; address is the tagged offset of its first byte
	address uint64
	fault   ddp.Fault // of a response that refuses
	source  ddp.Tag   // of a Read response: the source region
	from    uint64
	inline  bool
	headLen int
	head    [rdma.HeadMax]byte
	body    rdma.Mem
	kept    []byte // a copy of the body, or memory for one (bodies.go)
	short   [shortBody]byte
}

// role is what the end of a message means.
type role uint8

const (
	roleSend     role = iota // a completion
	roleWrite                // nothing: the response to the request behind it completes the Write
	roleRequest              // nothing: the response completes it
	roleResponse             // room for another response
)

const (
	// ackEvery is how many datagrams make an ack due.
	ackEvery = 16
	// ackDelay is how long an ack may wait for a datagram to be piggybacked on.
	ackDelay = 200 * time.Microsecond
	// longAckDelay is the delay of an ack whose sender only needs it to free its copy.
	// Applications usually reply, or send the next message, within that time. A
	// standalone ack costs both hosts nearly as much as a short message.
	longAckDelay = 8 * time.Millisecond
	// defaultPeerTimeout is how long a peer may be silent before it counts as gone. It
	// is longer than a process computes without polling.
	defaultPeerTimeout = 30 * time.Second

	never = reliable.Never
)
