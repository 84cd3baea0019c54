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

// AbandoningQP is a QP that may hold many messages to a peer for a long time.
type AbandoningQP interface {
	QP
	// Abandon completes all requests to a peer that is known to have failed with
	// StatusPeerGone, and refuses later ones. Otherwise they would use the queue, which all
	// peers share, until the peer counts as silent.
	Abandon(PeerID)
}

// ExplainingDevice is a Device that can explain the failure of a peer in more detail than
// a Status.
type ExplainingDevice interface {
	Device
	// Explain returns the reason why a peer is unreachable, nil if none is known.
	Explain(PeerID) error
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
