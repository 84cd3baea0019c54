package rdma

// Attr describes a device.
type Attr struct {
	Name       string    // the name that users select it by, such as "shm"
	Transports Transport // supported kinds of queue pair
	Ops        OpSet     // operations that PostSend accepts

	MaxSend   int // largest Head plus Body of one OpSend
	MaxInline int // largest Body that may be sent with Inline
	// MaxTransfer is the largest Body of one OpRead or OpWrite. 0: no limit.
	MaxTransfer int
	// MaxPush is the number of OpPush that a queue pair accepts in addition to its depth.
	// An OpPush waits until the peer's application requests the data, so it must not
	// fill the send queue.
	MaxPush int
	// MaxRegions is the number of regions that can be registered at a time; Register
	// returns ErrNoResources for more. 0: no practical limit.
	MaxRegions int
	// CopyAbove is the length from which a Body is better sent without Inline,
	// because Inline would copy it and the completion comes soon. 0: Inline is
	// always right.
	CopyAbove int
	// SegmentHint is the size of the segments into which a larger message should be cut
	// so that copying in and copying out overlap. 0: do not cut below MaxSend.
	SegmentHint int

	// LocalKeys reports whether the Body of a work request must lie in a registered
	// region whose LKey is given, unless it is sent Inline.
	LocalKeys bool
	// Pins reports whether registration locks pages. It is then expensive, and
	// registrations are worth caching.
	Pins bool
	// RemoteCPU reports whether an OpRead or OpWrite progresses only while the target
	// polls.
	RemoteCPU bool
	// Served reports whether the device has no progress thread because its owner makes
	// progress for it while the application computes, by a second goroutine that polls
	// (Caps.Notify).
	Served bool
	// Oversubscribed reports whether peers share cores. A copy that keeps two of them
	// busy then gains nothing over one that needs only one.
	Oversubscribed bool
	// WaitEarly reports whether a waiter should sleep in CQ.Wait instead of polling:
	// goroutines of this process bring the completions, and polling keeps the core from
	// them.
	WaitEarly bool

	// Costs of single operations, for choosing among protocols. Only their ratios
	// matter.
	SendCost Cost // a message of n bytes from post to completion at the peer
	ReadCost Cost // OpRead
	PutCost  Cost // OpWrite
	PullCost Cost // OpPull with the peer's OpPush running concurrently
	RegCost  Cost // Register and Deregister
	// EndCost is the time in nanoseconds between a Send without Inline and its
	// completion, beyond the sending itself: 0 if the request completes when the bytes
	// have left this memory, a round trip or more if the peer must acknowledge them.
	EndCost float64
}

// Cost is a linear cost in nanoseconds: Fixed + PerByte × size.
type Cost struct{ Fixed, PerByte float64 }

// Of returns the cost of n bytes.
func (c Cost) Of(n int) float64 { return c.Fixed + c.PerByte*float64(n) }

// Plus adds two costs.
func (c Cost) Plus(d Cost) Cost { return Cost{c.Fixed + d.Fixed, c.PerByte + d.PerByte} }

// Access is the set of rights of a registration.
type Access uint8

const (
	RemoteRead  Access = 1 << iota // peers may read
	RemoteWrite                    // peers may write
	// Cooperative lets a peer take part in a copy out of this region: the peer names
	// the region in an OpPull, the owner in an OpPush, and both copy.
	Cooperative
	// Assisted, with RemoteWrite, lets the owner take part in a Write into this
	// region: whenever the owner polls, it may copy a piece itself. This is invisible
	// to the writer and its completion. Devices whose writes need no processor ignore
	// it.
	Assisted
)

// MR identifies a registered region. It is a plain value: the key can be sent to a
// peer, which uses it with addresses in [Base, Base+Len).
type MR struct {
	Base uint64 // address of the first byte, for SendWR.Remote
	Len  uint64
	RKey uint64 // for peers
	LKey uint32 // for SendWR.LKey
}
