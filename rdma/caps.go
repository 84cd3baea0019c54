package rdma

import "github.com/muster-mpi/muster/internal/direct"

// Caps is what only some devices can do. The zero value is a device that can do nothing of
// it: a nil function is not supported. Unless stated otherwise, calls must be serialized with
// the other calls of the device.
type Caps struct {
	// Notify is how the device's completion queues notify a second goroutine. It is valid
	// once there is such a queue.
	Notify Notify
	// Rails is the number of interfaces over which the device sends. 0: one.
	Rails int

	// NameOf returns the name of a peer whose handle came from Resolve or a completion:
	// the number with which the peer opened its device, in a job the rank. A message may
	// arrive from a peer before it is resolved; NameOf then identifies the sender. nil: the
	// handles are the numbers.
	NameOf func(PeerID) (name uint32, ok bool)
	// Alive reports whether the process of a peer on this host exists.
	Alive func(PeerID) bool
	// Explain returns why a peer is unreachable, in more detail than a Status; nil if
	// nothing is known.
	Explain func(PeerID) error
	// Abandon completes all requests to a peer that is known to have failed with
	// StatusPeerGone, and refuses later ones. Otherwise they would use the queue, which all
	// peers share, until the peer counts as silent.
	Abandon func(PeerID)
	// Moved returns a counter that changes whenever Poll has transferred a part of a large
	// request and returned nothing, because the request is not complete. Callers check it
	// before they treat an empty Poll as idle.
	Moved func() uint64
	// Urgent reports whether the device has work under way that only Poll continues, beside
	// requests that somebody waits for, such as a change between two paths to a peer, or
	// messages that it holds back (More): its queues should then be polled within a millisecond.
	Urgent func() bool
	// Count calls add with the current value of each counter. A name may occur more than
	// once; its values are to be added. It is not meant for the critical path of a message,
	// and still works after Close.
	Count func(add func(name Counter, value uint64))
	// Direct is the device's rings, for a C program that uses them without entering Go
	// (internal/direct). nil: there are none.
	Direct Direct
}

// Direct lets the C front of package cabi send and receive over the rings of a device.
type Direct interface {
	// DirectDevice stores pointers to the device's words. It returns false if the front
	// cannot use the rings.
	DirectDevice(t *direct.Engine, pins *direct.Pins) bool
	// DirectPeer stores pointers to the words of the rings to and from a peer, which stay
	// valid as long as the device.
	DirectPeer(id PeerID, t *direct.Peer, pins *direct.Pins) bool
	// DirectWake does what follows a message that the front has published while the peer
	// slept or had closed, and announces the room in its ring that the front has released.
	DirectWake(id PeerID)
}

// Notify is a set of the ways in which a completion queue can notify a second goroutine.
type Notify uint8

const (
	// NotifyAny: Arm can prepare a wait for everything that ends a Wait.
	NotifyAny Notify = 1 << iota
	// NotifySolicited: Arm can prepare a wait for events that must not be delayed until the
	// application polls: messages sent as Solicited, and requests that only this process
	// can progress. Other messages do not end it, so sending them costs nothing extra.
	NotifySolicited
	// NotifyFile: the wait that NotifyAny prepares can be made on a file descriptor,
	// together with others. A device that combines several devices uses it.
	NotifyFile
	// NotifyBeside: a Poll beside the application leaves alone what the application has
	// been lent.
	NotifyBeside
)

// Has reports whether all of want are in the set.
func (n Notify) Has(want Notify) bool { return n&want == want }
