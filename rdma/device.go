package rdma

import (
	"context"
	"time"
)

// Device is one opened rail: a protection domain with its queues.
type Device interface {
	// Attr describes the device's limits and costs. It does not change while the device
	// is open.
	Attr() *Attr
	// Caps returns what only some devices can do. Callers keep it: it does not change after
	// the first NewCQ.
	Caps() Caps
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
	// Pending returns the number of accepted messages that have not left this process
	// yet. They leave while the CQ is polled. It is 0 if PostSend itself sends.
	Pending() int
	Close() error
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
	// Arm, WaitArmed, Disarm, File and SetBeside are for a second goroutine, which waits while
	// the application computes or sleeps elsewhere, and may poll then. They are called only
	// as far as Caps.Notify allows; without it the queue must be polled periodically.
	//
	// Arm prepares a wait for NotifyAny or NotifySolicited and returns how long it may
	// last: at most limit, and 0 if Poll may have something to do of that kind. The
	// duration accounts for the device's timers: when it has passed, the caller must call
	// Poll in any case. It must be serialized with the other calls.
	//
	// An arming ends with WaitArmed, with Disarm, and may end with the event it is for. It
	// may also end with a Poll, unless File was called.
	Arm(on Notify, limit time.Duration) time.Duration
	// WaitArmed blocks until the armed event has happened, or Wake was called, since the
	// last such wait, or until the timeout has passed. It may return early. Everything
	// except Close may be called meanwhile, including Poll and Wait. Only one goroutine may
	// wait at a time.
	WaitArmed(timeout time.Duration) error
	// Disarm ends an arming, for those who sleep on File and for an application that polls
	// again itself.
	Disarm()
	// File returns a descriptor that is readable when the armed event has happened, or Wake
	// was called, since the last Disarm. It stays the same until Close. Several goroutines
	// may sleep on it, each between Arm and Disarm. Without NotifyFile it is -1.
	File() int
	// SetBeside(true) declares that the following calls come from the second goroutine while
	// the application computes: transfers that peers progress themselves are then left to
	// them. With NotifyBeside, buffers lent by the last Poll of the application stay lent;
	// those lent beside it are taken back by the next Poll of either. It must be serialized
	// with the other calls.
	SetBeside(on bool)
	Close() error
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
