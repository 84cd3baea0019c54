package rdma

// Attr describes a device.
type Attr struct {
	Name       string    // as users name it: "shm"
	Transports Transport // the kinds of queue pair it has
	Ops        OpSet     // what PostSend takes

	MaxSend   int // largest Head plus Body of one OpSend
	MaxInline int // largest Body that may be sent with Inline
	// MaxTransfer is the largest Body of one OpRead or OpWrite. 0: there is no limit.
	MaxTransfer int
	// MaxPush is how many OpPush a queue pair takes beside its depth. They wait until
	// the peer's application wants the data, so they must not fill the send queue.
	MaxPush int
	// MaxRegions is how many regions can be registered at a time; Register answers
	// more with ErrNoResources. 0: more than programs come to need.
	MaxRegions int
	// CopyAbove is the length from which a Body is better sent without Inline,
	// because Inline would copy it and the completion comes soon. 0: Inline is
	// always right.
	CopyAbove int
	// SegmentHint is the piece size at which a larger message should be cut so
	// that copying in and copying out overlap. 0: do not cut below MaxSend.
	SegmentHint int

	// LocalKeys says that Body of a work request must lie in a registered region
	// whose LKey is given, unless it is sent Inline.
	LocalKeys bool
	// Pins says that registering locks pages and is dear, so that registrations
	// are worth keeping.
	Pins bool
	// RemoteCPU says that an OpRead or OpWrite moves only while the target polls.
	RemoteCPU bool
	// Oversubscribed says that peers share cores, so a copy that keeps two of them
	// busy gains nothing over one that needs only one.
	Oversubscribed bool

	// What one operation costs, for choosing among protocols. Only proportions
	// matter.
	SendCost Cost // a message of n bytes from post to completion at the peer
	ReadCost Cost // OpRead
	PutCost  Cost // OpWrite
	PullCost Cost // OpPull with the peer's OpPush running beside it
	RegCost  Cost // Register and Deregister
	// EndCost is how many nanoseconds go by between a Send without Inline and its
	// completion, when the message itself is on its way: 0 where it completes when the bytes
	// have left this memory, a round trip or more where the peer's side must tell.
	EndCost float64
}

// Cost is a linear cost in nanoseconds: Fixed + PerByte × size.
type Cost struct{ Fixed, PerByte float64 }

// Of is the cost of n bytes.
func (c Cost) Of(n int) float64 { return c.Fixed + c.PerByte*float64(n) }

// Plus adds two costs.
func (c Cost) Plus(d Cost) Cost { return Cost{c.Fixed + d.Fixed, c.PerByte + d.PerByte} }

// Access are the rights of a registration.
type Access uint8

const (
	RemoteRead  Access = 1 << iota // peers may read
	RemoteWrite                    // peers may write
	// Cooperative lets a peer take part in a copy out of this region: it names
	// the region in an OpPull, the owner in an OpPush, and both copy.
	Cooperative
	// Assisted, with RemoteWrite, lets the owner take part in a Write into this
	// region: whenever it polls, it may fetch a piece itself. The writer and its
	// completion know nothing of it. Devices whose writes need no processor
	// ignore it.
	Assisted
)

// MR names a registered region. It is a plain value: the key can be sent to a
// peer, which uses it with addresses in [Base, Base+Len).
type MR struct {
	Base uint64 // address of the first byte, as peers must give it
	Len  uint64
	RKey uint64 // for peers
	LKey uint32 // for SendWR.LKey
}
