package rdma

import "time"

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

// NotifyCQ is a CQ for which a second goroutine can wait while the application computes or
// sleeps elsewhere, and which that goroutine can poll. A CQ without it must be polled
// periodically.
type NotifyCQ interface {
	CQ
	// Notifies returns what the queue supports. It does not change.
	Notifies() Notify
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
	// Beside(true) declares that the following calls come from the second goroutine while
	// the application computes: transfers that peers progress themselves are then left to
	// them. With NotifyBeside, buffers lent by the last Poll of the application stay lent;
	// those lent beside it are taken back by the next Poll of either. It must be serialized
	// with the other calls.
	Beside(on bool)
}

// Notifier returns cq as a NotifyCQ if it supports all of want, otherwise nil.
func Notifier(cq CQ, want Notify) NotifyCQ {
	if n, ok := cq.(NotifyCQ); ok && n.Notifies()&want == want {
		return n
	}
	return nil
}

// UrgentCQ is a CQ of a device that now and then has work under way which its user has not
// posted and only Poll continues, such as a change between two paths to a peer.
type UrgentCQ interface {
	CQ
	// Urgent reports whether such work is under way: the queue should then be polled within
	// a millisecond. It must be serialized with the other calls.
	Urgent() bool
}
