package p2p

// The calls of the user, and what all protocols share.

import (
	"errors"
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// Config of a Machine. The zero value is right.
type Config struct {
	// EagerLimit is the largest message that may be sent before the receiver
	// has asked for it, whatever the costs say. Default 64 KiB: more would make
	// a receiver hold much memory for messages it may take late.
	EagerLimit int
	// Rendezvous forces one way for large messages: get, put or coop. Default:
	// by cost.
	Rendezvous string
	// Credit is how many bytes of unasked messages a receiver may have to hold
	// for one sender. Default 16 MiB. Beyond it sends become rendezvous.
	Credit int64
}

// Memory registers buffers with the device of a link. The shell provides it.
type Memory interface {
	Register(l *Link, mem []byte, acc rdma.Access) (rdma.MR, error)
	Deregister(l *Link, mr rdma.MR)
}

// Out is what the machine wants done. The shell empties it after every call; the
// slices are reused.
type Out struct {
	WR   []rdma.SendWR
	Link []*Link // the link of each work request
	Done []*Xfer // operations that ended and have an Owner
}

// Machine is the point-to-point state of one rank.
type Machine struct {
	Out   Out
	cfg   Config
	mem   Memory
	match matcher
	pool
}

// The reasons for which an operation can end badly. Package mpi adds with whom
// and over what.
var (
	ErrTruncated = errors.New("message is longer than the receive buffer")
	ErrTransport = errors.New("transport failed")
	ErrProtocol  = errors.New("peer does not speak our protocol")
)

// New makes a machine.
func New(cfg Config, mem Memory) *Machine {
	if cfg.EagerLimit == 0 {
		cfg.EagerLimit = 64 << 10
	}
	if cfg.Credit == 0 {
		cfg.Credit = 16 << 20
	}
	return &Machine{cfg: cfg, mem: mem}
}

// SetUp prepares a link the shell has made.
func (m *Machine) SetUp(l *Link) { l.setUp(m) }

// New gives an operation to fill in and hand to Send or Recv.
func (m *Machine) New() *Xfer { return m.get() }

// Free takes an operation back that is done, or was never started.
func (m *Machine) Free(x *Xfer) { m.put(x) }

// SendNow sends a short standard-mode message that needs no state: if it returns
// true, the packets are in Out and the send is over once the device has taken
// them. It is the fast path of Send and Isend.
func (m *Machine) SendNow(l *Link, ctx uint32, src, tag int32, buf []byte) bool {
	if len(buf) > l.eagerMax || l.Err != nil || l.credit < int64(len(buf))+eagerCharge {
		return false
	}
	m.emitEager(l, ctx, src, tag, buf, 0, false)
	return true
}

// Send starts a send. Buf, Link, Source, Tag, Ctx and Mode are set.
func (m *Machine) Send(x *Xfer) {
	x.Send = true
	l := x.Link
	if l.Err != nil {
		m.fail(x, l.Err)
		return
	}
	x.total = len(x.Buf)
	x.proto = l.choose(x.total)
	if x.proto == protoEager && l.credit < int64(x.total)+eagerCharge {
		l.Stats.NoCredit++
		x.proto = l.chooseRendezvous(x.total)
	}
	protocols[x.proto].Begin(m, x)
}

// Recv starts a receive. Buf, Source, Tag and Ctx are set, and Link unless the
// source is AnySource.
func (m *Machine) Recv(x *Xfer) {
	p := pattern{x.Ctx, x.Source, x.Tag}
	if m.match.waiting > 0 {
		if g := m.match.lookMsg(p); g != nil {
			m.match.takeMsg(g)
			m.Claim(x, g)
			return
		}
	}
	if x.Link != nil && x.Link.Err != nil {
		m.fail(x, x.Link.Err)
		return
	}
	x.stage = stagePosted
	m.match.post(x, m.match.entry(p))
}

// Claim gives a message that was taken out of matching to a receive.
func (m *Machine) Claim(x *Xfer, g *Msg) {
	if !g.rts {
		m.claimEager(x, g)
		return
	}
	m.matched(x, g.Link, g)
	m.putMsg(g)
}

// Look finds the first message that a receive would get, without taking it.
func (m *Machine) Look(ctx uint32, src, tag int32) *Msg {
	return m.match.lookMsg(pattern{ctx, src, tag})
}

// Take finds such a message and takes it out of matching, for Claim later.
func (m *Machine) Take(ctx uint32, src, tag int32) *Msg {
	g := m.Look(ctx, src, tag)
	if g != nil {
		m.match.takeMsg(g)
	}
	return g
}

// Cancel takes back a receive that no message has met. Sends cannot be called
// back: MPI 4.0 deprecated it, and the packets may be gone already.
func (m *Machine) Cancel(x *Xfer) bool {
	if x.Send || x.stage != stagePosted {
		return false
	}
	m.match.unpost(x)
	x.Cancelled = true
	m.complete(x)
	return true
}

// Unexpected is the number of messages that wait for a receive.
func (m *Machine) Unexpected() int { return m.match.waiting }

// Completed is called when a work request of ours ended.
func (m *Machine) Completed(id uint64, status rdma.Status, n int) {
	if x := m.find(id); x != nil && x.stage != stageDone {
		protocols[x.proto].Step(m, x, Event{Kind: EvDone, Status: status, Len: n})
	}
}

// Taken is called when the device has copied an inline request that has an ID.
func (m *Machine) Taken(id uint64) {
	if x := m.find(id); x != nil && x.stage != stageDone {
		protocols[x.proto].Step(m, x, Event{Kind: EvTaken})
	}
}

// Adopt makes an operation of a SendNow whose packets the device would not take
// yet: it ends when Taken is called with its handle.
func (m *Machine) Adopt(l *Link) *Xfer {
	x := m.get()
	x.Send, x.Link, x.proto, x.stage = true, l, protoEager, stagePost
	return x
}

// Fail ends everything that is under way: the job is broken.
func (m *Machine) Fail(err error) { m.failAll(nil, err) }

// FailLink ends what is under way with one peer, and whatever is started later.
func (m *Machine) FailLink(l *Link, err error) {
	l.Err = err
	m.failAll(l, err)
}

func (m *Machine) failAll(l *Link, err error) {
	for _, x := range m.slab {
		if x.stage != stageIdle && x.stage != stageDone && (l == nil || x.Link == l) {
			m.fail(x, err)
		}
	}
}

// fail ends one operation badly.
func (m *Machine) fail(x *Xfer, err error) {
	switch x.stage {
	case stagePosted:
		m.match.unpost(x)
	case stagePartial:
		for i := range x.Link.partial {
			if x.Link.partial[i].x == x {
				x.Link.partial[i].x = nil
			}
		}
	}
	protocols[x.proto].Abort(m, x)
	x.Err = err
	m.complete(x)
}

func (m *Machine) complete(x *Xfer) {
	x.stage = stageDone
	if x.Owner != nil {
		m.Out.Done = append(m.Out.Done, x)
	}
}

// packet adds a work request for a packet on l; the caller sets the head, its
// length, Body and ID.
func (m *Machine) packet(l *Link) *rdma.SendWR {
	wr := m.request(l)
	wr.Op, wr.Flags = rdma.OpSend, rdma.Inline
	l.sendSeq++
	return wr
}

func (m *Machine) request(l *Link) *rdma.SendWR {
	o := &m.Out
	n := len(o.WR)
	if n == cap(o.WR) {
		o.WR = append(o.WR, rdma.SendWR{})
	} else {
		o.WR = o.WR[:n+1] // a used slot: whoever asked for it sets every field
	}
	o.Link = append(o.Link, l)
	wr := &o.WR[n]
	wr.Peer = l.Peer
	return wr
}

// control fills in a packet without data.
func (m *Machine) control(wr *rdma.SendWR, l *Link, kind packetKind, handle, second, n uint64) {
	h := wr.Head[:]
	put64(h[offKind:], uint64(kind)|uint64(l.sendSeq-1)<<32)
	put64(h[offHandle:], handle)
	put64(h[offPeer:], second)
	put64(h[offTotal:], n)
	wr.HeadLen, wr.Body, wr.ID = headLen, rdma.Mem{}, 0
}

func (m *Machine) emitRTS(x *Xfer, proto uint8) {
	l := x.Link
	l.Stats.ByProtocol[proto]++
	l.Stats.Sent++
	l.Stats.BytesSent += uint64(len(x.Buf))
	x.stage = stageRTS
	wr := m.packet(l)
	m.control(wr, l, kindRTS, uint64(x.Ctx)|uint64(uint32(x.Source))<<32, uint64(uint32(x.Tag)), uint64(len(x.Buf)))
	wr.Head[offProto] = proto
	put64(wr.Head[offExtra:], x.handle)
	put64(wr.Head[offAddr:], x.mr.Base)
	put64(wr.Head[offKey:], x.mr.RKey)
	wr.HeadLen = headRTS
}

func (m *Machine) emitCTS(x *Xfer, n int) {
	wr := m.packet(x.Link)
	m.control(wr, x.Link, kindCTS, x.peer, x.handle, uint64(n))
	put64(wr.Head[offCTSAddr:], x.mr.Base)
	put64(wr.Head[offCTSKey:], x.mr.RKey)
	wr.HeadLen = headCTS
}

func (m *Machine) emitFIN(l *Link, handle uint64, n int, status rdma.Status) {
	wr := m.packet(l)
	m.control(wr, l, kindFIN, handle, 0, uint64(n))
	wr.Head[offStatus] = byte(status)
}

// move adds a work request that moves data for x and completes with its handle.
func (m *Machine) move(x *Xfer, op rdma.Op, body []byte, remote, key uint64) {
	wr := m.request(x.Link)
	wr.ID, wr.Op, wr.Flags, wr.HeadLen = x.handle, op, 0, 0
	wr.Body, wr.Remote, wr.RKey = rdma.MemOf(body), remote, key
	wr.LKey = x.mr.LKey
}

func (m *Machine) register(x *Xfer, l *Link, mem []byte, acc rdma.Access) bool {
	mr, err := m.mem.Register(l, mem, acc)
	if err != nil {
		m.refuse(x, l, err)
		return false
	}
	x.mr, x.hasMR = mr, true
	return true
}

// refuse ends an operation for which memory could not be registered, and tells a
// sender that has asked.
func (m *Machine) refuse(x *Xfer, l *Link, err error) {
	if !x.Send {
		m.emitFIN(l, x.peer, 0, rdma.StatusFault)
	}
	m.fail(x, fmt.Errorf("%w: registering %d bytes: %w", ErrTransport, len(x.Buf), err))
}

func (m *Machine) release(x *Xfer) {
	if x.hasMR {
		m.mem.Deregister(x.Link, x.mr)
		x.hasMR = false
	}
}

func transportError(x *Xfer, s rdma.Status) error {
	return fmt.Errorf("%w: %s (%s)", ErrTransport, s, protocolName(x.proto))
}
