package rdma

import (
	"context"
	"time"
)

// Device is one opened rail: a protection domain with its queues.
type Device interface {
	// Attr describes the device's capabilities and costs. It does not change while the
	// device is open.
	Attr() *Attr
	// Register makes mem accessible to peers with the given rights and keeps mem alive
	// until Deregister.
	Register(mem []byte, acc Access) (MR, error)
	// Deregister ends a registration. Later accesses fail at their origin.
	Deregister(mr MR) error
	NewCQ(depth int) (CQ, error)
	NewSRQ(SRQConfig) (SRQ, error)
	NewQP(QPConfig) (QP, error)
	// Resolve returns the handle for an address, for use in work requests (RD and UD).
	// It may map memory or open a socket, which takes microseconds to milliseconds. The
	// same address always returns the same handle.
	Resolve(Addr) (PeerID, error)
	Close() error
}

// NamedDevice is a Device that assigns its own handles to peers and knows their names:
// the numbers with which the peers opened their devices, which are ranks in a job. A
// message may arrive from a peer before it is resolved; NameOf then identifies the sender.
type NamedDevice interface {
	Device
	// NameOf returns the name of a peer whose handle came from Resolve or a completion.
	NameOf(PeerID) (name uint32, ok bool)
}

// QP is a queue pair.
type QP interface {
	// Addr returns the address that peers Resolve or Connect to. It is opaque, printable
	// and without spaces, and is published through the launcher.
	Addr() Addr
	// Connect connects an RC queue pair to a peer. RD and UD need no connection.
	Connect(ctx context.Context, peer Addr) error
	// PostSend accepts a prefix of wrs. It never blocks.
	PostSend(wrs []SendWR) (n int, err error)
	// PostRecv posts buffers to a queue pair that has no SRQ.
	PostRecv(wrs []RecvWR) (n int, err error)
	Close() error
}

// DrainQP is a QP that may buffer accepted messages before it sends them. A QP without
// this interface has sent every message it accepted.
type DrainQP interface {
	QP
	// Pending returns the number of accepted messages that have not left this process
	// yet. They leave while the CQ is polled.
	Pending() int
}

// ExplainingDevice is a Device that can explain the failure of a peer in more detail than
// a Status.
type ExplainingDevice interface {
	Device
	// Explain returns the reason why a peer is unreachable, nil if none is known.
	Explain(PeerID) error
}

// KeepingQP is a QP that can release the memory of accepted requests before they
// complete.
type KeepingQP interface {
	QP
	// Keep copies the outstanding requests to a peer, so that their memory may be reused
	// before the completions come. It is for callers that have sent the same data by
	// another path.
	Keep(PeerID)
}

// SRQ is a shared receive queue: receive buffers for many peers.
type SRQ interface {
	// PostRecv posts buffers to the queue. It fails on a lending queue, which has its
	// own buffers.
	PostRecv(wrs []RecvWR) (n int, err error)
	Close() error
}

// CQ is a completion queue.
type CQ interface {
	// Poll makes progress and fills out with completions. It never blocks. It also takes
	// back the buffers that the previous Poll lent.
	Poll(out []Completion) int
	// Wait blocks until Poll may have something to do, until Wake, or until the timeout
	// has passed. It may return early. It does not spin.
	Wait(timeout time.Duration) error
	// Wake ends the current Wait, or the next one if there is none. Any goroutine may
	// call it at any time.
	Wake()
	Close() error
}

// ArmedCQ is a CQ on which a dedicated goroutine can wait, in parallel with other CQs. A
// CQ without this interface must be polled periodically.
type ArmedCQ interface {
	CQ
	// Arm prepares a wait. It returns false if Poll may have something to do; then there
	// is nothing to wait for. It must be serialized with the other calls.
	Arm() bool
	// WaitArmed is Wait after Arm. Everything except Close may be called meanwhile,
	// including Poll.
	WaitArmed(timeout time.Duration) error
}

// FileCQ is a CQ that one thread can wait on together with other CQs through file
// descriptors. A device that combines several devices requires it of them.
type FileCQ interface {
	CQ
	// File returns a descriptor that is readable when Poll may have something to do, or
	// when Wake was called. It stays the same until Close.
	File() int
	// Sleep prepares a sleep on File and returns its maximum duration: at most limit, and
	// 0 if Poll may have something to do at once. The duration accounts for the device's
	// timers: when it has passed, the caller must call Poll in any case.
	Sleep(limit time.Duration) time.Duration
	// Awake ends the sleep and clears the effect of Wake on File.
	Awake()
}

// StayingCQ is a CQ of a device with a progress thread, which makes progress while the
// application computes.
type StayingCQ interface {
	CQ
	// Stay declares, until Stay(false), that the caller stays in the library and polls again
	// soon. Between two calls of Poll it only yields its core, however long other processes
	// use it, so that the progress thread need not make progress in its place. Stay may be
	// called at any time.
	Stay(on bool)
}

// BesideCQ is a CQ that a second goroutine can poll while the first one still processes
// the messages that its Poll returned.
type BesideCQ interface {
	CQ
	// PollBeside is Poll, except that buffers lent by the last Poll stay lent. Buffers lent
	// by PollBeside itself are taken back by the next call of either.
	PollBeside(out []Completion) int
}

// SolicitedCQ is a CQ on which a second goroutine can wait for events that must not be
// delayed until the application polls: messages sent as Solicited, and requests that only
// this process can progress. Other messages do not wake that goroutine, so sending them
// costs nothing extra.
type SolicitedCQ interface {
	CQ
	// ArmSolicited prepares a wait. It returns false if Poll may have something to do that
	// peers wait for. It must be serialized with the other calls. One wake-up disarms it.
	ArmSolicited() bool
	// Disarm cancels ArmSolicited, for a rank that polls again itself.
	Disarm()
	// Beside(true) declares that the following calls come from the waiting goroutine while
	// the rank computes: transfers that peers progress themselves are then left to them.
	// It must be serialized with the other calls.
	Beside(on bool)
	// WaitSolicited blocks until the armed event has happened, or Wake was called, since
	// the last such wait, or until the timeout has passed. It may return early. Everything
	// except Close may be called meanwhile, including Poll and Wait. Only one goroutine
	// may wait at a time.
	WaitSolicited(timeout time.Duration) error
}

// MovingCQ is a CQ whose Poll may transfer part of a large request and return nothing,
// because the request is not complete. Callers check Moved before they treat an empty Poll
// as idle.
type MovingCQ interface {
	CQ
	// Moved returns a counter that changes whenever Poll has transferred such a part. It
	// must be serialized with the other calls.
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
	UD                       // datagrams, may be lost, duplicated or reordered
)

// QPConfig configures a queue pair.
type QPConfig struct {
	Type   Transport
	SendCQ CQ
	RecvCQ CQ
	SRQ    SRQ // nil: the queue pair has its own receive queue
	// Depth is the maximum number of outstanding work requests, not counting OpPush
	// (Attr.MaxPush). 0: the device's default.
	Depth int
	// Peer is the Peer of all completions of an RC queue pair, so that many queue pairs
	// can share a completion queue.
	Peer PeerID
}

// SRQConfig configures a shared receive queue.
type SRQConfig struct {
	// Lend makes the device use its own buffers: a receive completion refers to the
	// message in such a buffer, valid until the next Poll of that CQ.
	Lend bool
	// Depth is the number of buffers to be posted, or to be lent. 0: the default.
	Depth int
	// LowWater, when not 0, generates a completion of OpLowWater when fewer posted
	// buffers than this are left.
	LowWater int
}
