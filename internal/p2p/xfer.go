package p2p

// The state of one operation, and of one unexpected message. Both are pooled: the steady
// state allocates nothing. An Xfer has a handle, a small integer with a generation, which
// work requests and packets carry; the handle of a freed operation is not found.

import (
	"math/bits"

	"github.com/muster-mpi/muster/rdma"
)

// Mode is the kind of send (MPI-4.1 section 3.4).
type Mode uint8

const (
	Standard    Mode = iota
	Synchronous      // completes only when a receive has matched it
	Ready            // the user guarantees that the receive is posted
)

// Wildcards of receives and probes.
const (
	AnySource = -1
	AnyTag    = -1
)

type stage uint8

const (
	stageIdle       stage = iota
	stagePosted           // receive: waits for a message
	stagePartial          // receive: segments are arriving
	stagePost             // send: waits for the device to accept the packets
	stageAck              // send: waits for ACK
	stageAcked            // send: the ACK arrived first; waits for the device
	stageRTS              // send: RTS sent
	stageMatched          // receive: matched by an RTS
	stageTransfer         // a work request transfers the data
	stageCTS              // receive: CTS sent, waits for FIN
	stageReady            // receive: RTR sent, waits for a message
	stageCancelling       // receive: waits for a message, or until RTRs are revoked and it can be cancelled
	stageFill             // receive: the sender writes into its buffer; waits for FIN
	stageDone
)

var stageNames = [...]string{"idle", "posted", "partial", "post", "ack", "acked", "rts", "matched", "transfer", "cts", "ready", "cancelling", "fill", "done"}

// Xfer is one send or receive.
type Xfer struct {
	Buf    []byte
	Link   *Link // send: destination; receive: source, nil for AnySource until matched
	Source int32 // send: own rank in the communicator; receive: requested, then actual source
	Tag    int32
	Ctx    uint32
	Mode   Mode
	Send   bool

	Result

	// Owner is the engine's: it identifies the operation's waiter when the operation
	// appears in Out.Done. Operations with a nil Owner are not listed.
	Owner *Waiter

	stage      stage
	proto      uint8
	cancelling bool // receives: ends when its RTRs have been revoked
	revoking   bool // receives: REVOKE sent for its RTR
	// Sign is the signature that a receive expects; if Differs, that of the message.
	Sign   uint32
	handle uint64

	posted
	mr     rdma.MR
	lease  lease        // how mr is counted
	pushed bool         // send: its OpPush is pending
	Part   int32        // engine: which part of its Owner's work this is
	via    *Stage       // puts and gets: bounce buffer
	cut    *cutTransfer // the rest of a transfer that was cut
	grantShare
	remoteBuffer
	total int // length of the message as sent
}

// Result is the outcome of an operation, valid once Done.
type Result struct {
	Len       int // bytes received
	Err       error
	Cancelled bool
	Differs   bool  // receive: the message has another signature
	Vote      uint8 // receive: that of the message
}

// remoteBuffer is the other side's operation and its memory.
type remoteBuffer struct {
	peer   uint64 // handle
	remote uint64 // address
	rkey   uint64
}

// Waiter is the engine's owner of operations: a goroutine, or something composed of
// several operations, which has no Ready.
type Waiter struct {
	Ready   chan struct{}
	Whole   any // what is composed of several operations
	Pending int
	One     [1]*Xfer // for a wait on a single operation
	Next    *Waiter  // for lists of the engine
}

// Done reports whether the operation has completed.
func (x *Xfer) Done() bool { return x.stage == stageDone }

// Total returns the length of a received message as sent, which exceeds Len if the message
// was truncated.
func (x *Xfer) Total() int { return x.total }

// Handle returns the operation's handle.
func (x *Xfer) Handle() uint64 { return x.handle }

// Stage returns the name of the operation's stage, for humans.
func (x *Xfer) Stage() string { return stageNames[x.stage] }

// Protocol returns the name of the protocol that carries the operation.
func (x *Xfer) Protocol() string { return protocolName(x.proto) }

// pool allocates Xfers and finds them by handle.
type pool struct {
	slab []*Xfer
	free []*Xfer

	msgs     *Msg             // free messages
	bigMsgs  [msgClasses]*Msg // free messages with a large buffer, by its size class
	bigBytes int              // bytes of these buffers
	kept     kept
}

func (p *pool) get() *Xfer {
	if n := len(p.free); n > 0 {
		x := p.free[n-1]
		p.free = p.free[:n-1]
		*x = Xfer{handle: x.handle}
		return x
	}
	x := &Xfer{handle: uint64(len(p.slab)) + 1} // handle 0 is invalid
	p.slab = append(p.slab, x)
	return x
}

// put returns an Xfer. It advances the handle's generation, so that a late completion or
// packet that names it finds nothing. get clears the Xfer: put is on the path between a
// message and its answer, get is not.
func (p *pool) put(x *Xfer) {
	x.handle += 1 << 32
	x.stage = stageIdle
	x.Buf, x.Owner = nil, nil
	p.free = append(p.free, x)
}

func (p *pool) find(handle uint64) *Xfer {
	i := handle&(1<<32-1) - 1
	if i >= uint64(len(p.slab)) || p.slab[i].handle != handle {
		return nil
	}
	return p.slab[i]
}

// Msg is an unexpected message: an eager message with its data, or an RTS. Mprobe takes
// it out of matching.
type Msg struct {
	Link   *Link
	Source int32
	Tag    int32
	Ctx    uint32
	Total  int
	sign   uint32
	vote   uint8

	data  []byte // eager: the data that has arrived, in the message's own buffer
	sync  bool
	rts   bool
	proto uint8
	remoteBuffer

	nodes [listCount]msgNode
	free  *Msg
}

type msgNode struct {
	on         *msgList
	next, prev *Msg
}

// smallMsg is the size of the buffer that every pooled message keeps, so that short
// unexpected messages allocate nothing in the steady state.
const smallMsg = 128

// keepBig bounds the larger buffers that free messages keep, for programs that usually
// post their receives late.
const keepBig = 1 << 20

func (p *pool) getMsg() *Msg {
	g := p.msgs
	if g == nil {
		return &Msg{}
	}
	p.msgs, g.free = g.free, nil
	return g
}

// getMsgFor prefers a message whose buffer may hold total bytes.
func (p *pool) getMsgFor(total int) *Msg {
	if total > smallMsg {
		list := &p.bigMsgs[msgClass(min(total, keepAhead))]
		if g := *list; g != nil {
			*list, g.free = g.free, nil
			p.bigBytes -= cap(g.data)
			return g
		}
	}
	return p.getMsg()
}

// msgClass returns the class of buffers that hold n bytes: those of 128 << class.
func msgClass(n int) int { return bits.Len(uint(max(n, smallMsg)-1)) - 7 }

// msgClasses is the number of classes up to keepAhead; longer buffers are in the last.
const msgClasses = 10

func (p *pool) putMsg(g *Msg) {
	if !g.rts {
		p.kept.bytes -= g.Total
	}
	data := g.data[:0]
	big := cap(data) > smallMsg
	if big && p.bigBytes+cap(data) <= keepBig {
		list := &p.bigMsgs[min(bits.Len(uint(cap(data)))-8, msgClasses-1)] // the class it can serve completely
		p.bigBytes += cap(data)
		*g = Msg{data: data, free: *list}
		*list = g
		return
	}
	if big {
		data = nil // leave it to the garbage collector
	}
	*g = Msg{data: data, free: p.msgs}
	p.msgs = g
}

// whole reports whether the message has arrived completely.
func (g *Msg) whole() bool { return !g.rts && len(g.data) == g.Total }
