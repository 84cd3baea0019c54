package p2p

// One operation of the user, and one message that nobody has asked for yet.
// Both are pooled: the steady state allocates nothing. An Xfer has a handle, a
// small integer with a generation, which goes into work requests and packets; a
// handle whose operation has ended finds nothing.

import (
	"math/bits"

	"github.com/muster-mpi/muster/rdma"
)

// Mode is the kind of send (MPI-4.1 section 3.4).
type Mode uint8

const (
	Standard    Mode = iota
	Synchronous      // completes only when the receive has been matched
	Ready            // the user says that the receive is posted
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
	stagePartial          // receive: segments are coming
	stagePost             // send: waits for the device to take the packets
	stageAck              // send: waits for ACK
	stageAcked            // send: the ACK came first; waits for the device
	stageRTS              // send: RTS is out
	stageMatched          // receive: an RTS has just met it
	stageTransfer         // data is being moved by a work request
	stageCTS              // receive: CTS is out, FIN is to come
	stageReady            // receive: waits for a message, and RTR is out
	stageCancelling       // receive: waits for a message, or for RTRs to be revoked so that it can be cancelled
	stageFill             // receive: the sender writes into its buffer, FIN is to come
	stageDone
)

var stageNames = [...]string{"idle", "posted", "partial", "post", "ack", "acked", "rts", "matched", "transfer", "cts", "ready", "cancelling", "fill", "done"}

// Xfer is one send or receive.
type Xfer struct {
	Buf    []byte
	Link   *Link // send: to whom; receive: from whom, nil for AnySource until matched
	Source int32 // send: own rank in the communicator; receive: wanted, then actual
	Tag    int32
	Ctx    uint32
	Mode   Mode
	Send   bool

	// What came of it, valid once Done.
	Len       int // bytes received
	Err       error
	Cancelled bool
	Differs   bool // receive: the message had another signature

	// Owner is for the shell: whatever it wants to find again when the
	// operation appears in Out.Done. Operations with a nil Owner are not listed.
	Owner *Waiter

	stage      stage
	proto      uint8
	cancelling bool // receives: ends when its RTRs have been revoked
	revoking   bool // receives: REVOKE is out for its RTR
	// Sign is the signature that the message of a receive should have; if it Differs,
	// that which it has.
	Sign   uint32
	handle uint64

	order      uint64 // receives: place in the order of posting
	entry      *entry
	next, prev *Xfer

	mr     rdma.MR
	hasMR  bool
	lease  lease        // what the registration is counted as
	pushed bool         // send: an OpPush is under way for it
	Part   int32        // for the shell: which part of its Owner's work this is
	via    *Stage       // puts and gets: what the bytes are copied through
	cut    *cutTransfer // what is left to post of a transfer that was cut
	peer   uint64       // the other side's handle
	remote uint64
	rkey   uint64
	total  int // length of the message as sent
}

// Waiter is what the shell hangs on an operation that somebody waits for: a
// goroutine, or something made of several operations, which has no Ready.
type Waiter struct {
	Ready   chan struct{}
	Whole   any // what is made of several operations
	Pending int
	One     [1]*Xfer // for a wait on a single operation
	Next    *Waiter  // the shell's lists
}

// Done reports whether the operation has ended.
func (x *Xfer) Done() bool { return x.stage == stageDone }

// Total is the length of a received message as it was sent, which is more than Len
// if it was longer than the buffer.
func (x *Xfer) Total() int { return x.total }

// Handle is the operation's small integer name.
func (x *Xfer) Handle() uint64 { return x.handle }

// Stage is for people: what the operation waits for.
func (x *Xfer) Stage() string { return stageNames[x.stage] }

// Protocol is the name of the protocol that carries the operation.
func (x *Xfer) Protocol() string { return protocolName(x.proto) }

// pool hands out Xfers and finds them by handle.
type pool struct {
	slab []*Xfer
	free []*Xfer

	msgs     *Msg             // free messages
	bigMsgs  [msgClasses]*Msg // those that have kept a large buffer, by its size
	bigBytes int              // how much that is
	kept     kept
}

func (p *pool) get() *Xfer {
	if n := len(p.free); n > 0 {
		x := p.free[n-1]
		p.free = p.free[:n-1]
		*x = Xfer{handle: x.handle}
		return x
	}
	x := &Xfer{handle: uint64(len(p.slab)) + 1} // handle 0 names nothing
	p.slab = append(p.slab, x)
	return x
}

// put returns an Xfer. Its handle's generation moves on, so that a completion
// or packet that still names it finds nothing. It is wiped by get: put stands
// between a message and the answer to it, get does not.
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

// Msg is a message that has come before its receive: an eager message with its
// data, or an RTS. Mprobe takes it out of matching.
type Msg struct {
	Link   *Link
	Source int32
	Tag    int32
	Ctx    uint32
	Total  int
	sign   uint32

	data   []byte // eager: what has come, in a buffer of the message's own
	sync   bool
	rts    bool
	proto  uint8
	peer   uint64
	remote uint64
	rkey   uint64

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

// keepBig bounds the larger buffers that free messages keep, for programs that
// are usually late with their receives.
const keepBig = 1 << 20

func (p *pool) getMsg() *Msg {
	g := p.msgs
	if g == nil {
		return &Msg{}
	}
	p.msgs, g.free = g.free, nil
	return g
}

// getMsgFor prefers a message whose buffer may do for total bytes.
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

// msgClass is the class of buffers that hold n bytes: those of 128 << class.
func msgClass(n int) int { return bits.Len(uint(max(n, smallMsg)-1)) - 7 }

// msgClasses are those up to keepAhead; longer buffers are in the last.
const msgClasses = 10

func (p *pool) putMsg(g *Msg) {
	if !g.rts {
		p.kept.bytes -= g.Total
	}
	data := g.data[:0]
	big := cap(data) > smallMsg
	if big && p.bigBytes+cap(data) <= keepBig {
		list := &p.bigMsgs[min(bits.Len(uint(cap(data)))-8, msgClasses-1)] // which it can hold all of
		p.bigBytes += cap(data)
		*g = Msg{data: data, free: *list}
		*list = g
		return
	}
	if big {
		data = nil // to the collector
	}
	*g = Msg{data: data, free: p.msgs}
	p.msgs = g
}

// whole reports whether nothing of the message is still at the sender.
func (g *Msg) whole() bool { return !g.rts && len(g.data) == g.Total }
