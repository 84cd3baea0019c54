package rdma

import (
	"context"
	"time"
)

// Device is one opened rail: a protection domain with its queues.
type Device interface {
	// Attr says what the device can do and what it costs. It does not change
	// while the device is open.
	Attr() *Attr
	// Register lets peers reach mem, with the given rights, and keeps mem alive
	// until Deregister.
	Register(mem []byte, acc Access) (MR, error)
	// Deregister ends a registration. Accesses that come later fail at their
	// origin.
	Deregister(mr MR) error
	NewCQ(depth int) (CQ, error)
	NewSRQ(SRQConfig) (SRQ, error)
	NewQP(QPConfig) (QP, error)
	// Resolve turns an address into the handle that work requests carry (RD and
	// UD). It may map memory or open a socket, and so costs microseconds to
	// milliseconds; the same address always gives the same handle.
	Resolve(Addr) (PeerID, error)
	Close() error
}

// NamedDevice is a Device that makes up its own handles for peers, and knows their
// names: the numbers that they were opened with, which in a job are ranks. A peer may
// be heard before it is resolved; its name then reports who it is.
type NamedDevice interface {
	Device
	// NameOf is the name of a peer that Resolve or a completion gave out.
	NameOf(PeerID) (name uint32, ok bool)
}

// QP is a queue pair.
type QP interface {
	// Addr is what peers Resolve or Connect to. It is opaque, printable and free
	// of spaces, and is published through the launcher.
	Addr() Addr
	// Connect binds an RC queue pair to a peer. RD and UD need none.
	Connect(ctx context.Context, peer Addr) error
	// PostSend takes a prefix of wrs. It never blocks.
	PostSend(wrs []SendWR) (n int, err error)
	// PostRecv gives buffers to a queue pair that has no SRQ.
	PostRecv(wrs []RecvWR) (n int, err error)
	Close() error
}

// DrainQP is a QP that may still hold messages it has taken. One that lacks it has
// passed on what it took.
type DrainQP interface {
	QP
	// Pending is the number of messages that were taken and have not left this
	// process yet. They leave while the CQ is polled.
	Pending() int
}

// ExplainingDevice is a device that knows more about the end of a peer than a Status tells.
type ExplainingDevice interface {
	Device
	// Explain says why a peer can no longer be reached, nil if nothing is known.
	Explain(PeerID) error
}

// KeepingQP is a QP that can let go of the memory of requests which it has taken and
// which are not complete.
type KeepingQP interface {
	QP
	// Keep copies what is under way to a peer, so that the memory may be used again
	// before the completions come. It is for who has sent the same by another way.
	Keep(PeerID)
}

// SRQ is a shared receive queue: receive buffers for many peers.
type SRQ interface {
	// PostRecv gives buffers to the queue. It fails on a lending queue, which
	// brings its own.
	PostRecv(wrs []RecvWR) (n int, err error)
	Close() error
}

// CQ is a completion queue.
type CQ interface {
	// Poll makes progress and fills out with what has completed. It never
	// blocks. It also ends the lending of whatever the last Poll lent.
	Poll(out []Completion) int
	// Wait parks until Poll may have something to do, until Wake, or until the
	// timeout has passed; it may return early. It does not spin.
	Wait(timeout time.Duration) error
	// Wake ends a Wait that is under way, or else the next one. Any goroutine
	// may call it at any time.
	Wake()
	Close() error
}

// ArmedCQ is a CQ that can be waited for beside other CQs, by a goroutine that
// does nothing else. A CQ that lacks it must be polled now and then.
type ArmedCQ interface {
	CQ
	// Arm gets ready to wait. It is false if Poll may have something to do: then
	// there is nothing to wait for. It is serialised with the other calls.
	Arm() bool
	// WaitArmed is Wait after Arm. Everything but Close may be called meanwhile,
	// Poll included.
	WaitArmed(timeout time.Duration) error
}

// FileCQ is a CQ that can be waited for together with others by one who sleeps on
// file descriptors. It is the one way to make one device of several.
type FileCQ interface {
	CQ
	// File is a descriptor that is readable when Poll may have something to do, or
	// when Wake was called. It stays the same until Close.
	File() int
	// Sleep gets ready for a sleep on File and reports how long it may last at most:
	// not longer than limit, and 0 if Poll may have something to do at once. Timers of
	// the device are in it: after the time is over Poll is called in any case.
	Sleep(limit time.Duration) time.Duration
	// Awake ends the sleep and takes back what Wake has done to File.
	Awake()
}

// BesideCQ is a CQ that a second goroutine can move while the first one is busy with what
// its Poll has shown it.
type BesideCQ interface {
	CQ
	// PollBeside is Poll, but what the last Poll lent stays lent. What PollBeside itself
	// lends ends with the next call of either.
	PollBeside(out []Completion) int
}

// SolicitedCQ is a CQ beside which a goroutine can wait for what must not wait
// until somebody polls: messages sent as Solicited, and requests that only this
// process can move on. Other messages do not wake it, so who sends them pays
// nothing for it.
type SolicitedCQ interface {
	CQ
	// ArmSolicited gets ready. It is false if Poll may have something to do that
	// others wait for. It is serialised with the other calls. One wake-up ends it.
	ArmSolicited() bool
	// Disarm takes it back, for a rank that polls again itself.
	Disarm()
	// Beside says that the calls from now on are made by the one who waits, and that
	// the rank computes: what peers are moving by themselves is left to them. It is
	// serialised with the other calls.
	Beside(on bool)
	// WaitSolicited parks until what was armed has happened, or Wake was called,
	// since the last such wait, or the timeout has passed; it may return early.
	// Everything but Close may be called meanwhile, Poll and Wait included. One
	// goroutine at a time.
	WaitSolicited(timeout time.Duration) error
}

// MovingCQ is a CQ whose Poll may move a part of a large request and return nothing,
// because the request is not complete. Who polls it looks at Moved before it takes an
// empty Poll for idleness.
type MovingCQ interface {
	CQ
	// Moved changes whenever Poll has moved such a part. It is serialised with the
	// other calls.
	Moved() uint64
}

// Addr is the published address of a queue pair.
type Addr string

// PeerID is a device's own small handle for a peer.
type PeerID uint32

// Transport is the kind of a queue pair.
type Transport uint8

const (
	RC Transport = 1 << iota // connected, reliable, ordered
	RD                       // datagrams, reliable, ordered per peer
	UD                       // datagrams, may be lost, doubled or reordered
)

// QPConfig says what to make.
type QPConfig struct {
	Type   Transport
	SendCQ CQ
	RecvCQ CQ
	SRQ    SRQ // nil: the queue pair has its own receive queue
	// Depth is how many work requests may be outstanding, but for OpPush
	// (Attr.MaxPush); 0: the device's default.
	Depth int
	// Peer is what completions of an RC queue pair carry as their Peer, so that many
	// of them can share a completion queue.
	Peer PeerID
}

// SRQConfig says what kind of shared receive queue to make.
type SRQConfig struct {
	// Lend makes the device bring its own buffers: a receive completion shows
	// the message where it is, valid until the next Poll of that CQ.
	Lend bool
	// Depth is the number of buffers to post (or to bring). 0: the default.
	Depth int
	// LowWater, when not 0, makes a completion of OpLowWater appear when fewer
	// posted buffers than this are left.
	LowWater int
}
