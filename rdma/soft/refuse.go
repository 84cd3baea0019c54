package soft

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Errors on UD. T1 6.3.3 has no Terminate, because there is no stream to end. Instead,
// an error message goes to the one peer whose message is at fault and names that
// message by its number. refuse sends it; receiveError completes the sender's request
// with OpRefused.
//
// This package departs from T1 in one point: the queue pair that detects the fault does
// not go into the error state. It serves thousands of peers, and a faulty one must not
// end it for the others. The user whose message was refused gets a completion. The
// receiving user gets one for a message that was too long for its buffer; other faults
// are only counted (Device.Drops).
//
// Error messages go only to processes of the job, are never a reply to an error
// message, and are limited in rate, so nobody can use a device as an amplifier. A lost
// error message is not retransmitted.

const (
	refusalBurst = 16
	refusalEvery = time.Millisecond
)

// budget limits the rate of error messages. It is the time up to which they are paid
// for, which may be ahead of the clock by a burst.
type budget time.Duration

// spend takes one message out of the budget and reports whether there was one.
func (b *budget) spend(now time.Duration) bool {
	paid := max(time.Duration(*b), now)
	if paid >= now+refusalBurst*refusalEvery {
		return false
	}
	*b = budget(paid + refusalEvery)
	return true
}

// refuse sends an error message for a message that is of no use. raw is the segment at
// fault.
func (q *pair) refuse(to rdma.PeerID, number uint32, fault ddp.Fault, raw []byte) {
	d := q.dev
	if d.clock.tick(); !d.refusals.spend(d.clock.now) {
		return
	}
	l := d.nextPacket()
	if l == nil {
		return
	}
	h := header{kind: kindError}
	b := d.begin(l, &h, q.number, to)
	d.seal(l, appendTerminate(b, number, fault, raw), nil)
}

// appendTerminate appends the segment of a Terminate for one message.
func appendTerminate(b []byte, number uint32, fault ddp.Fault, raw []byte) []byte {
	b = appendDDP(b, &ddp.Header{Op: ddp.TerminateOp, Last: true, QN: ddp.QueueTerminate, MSN: number})
	t := ddp.TerminateFor(fault, raw, len(raw))
	n := len(b)
	b = b[:n+t.Len()]
	t.Put(b[n:])
	return b
}

// receiveError completes a message that a peer could not use. A peer can refuse only
// messages that were sent to it, and each only once.
func (q *pair) receiveError(segment []byte, from rdma.PeerID) {
	var h ddp.Header
	var t ddp.Terminate
	n, fault := h.Decode(segment, len(segment))
	if fault != ddp.NoFault || h.Op != ddp.TerminateOp || !t.Decode(segment[n:]) {
		q.dev.drops.Malformed++
		return
	}
	if q.sentUD == nil || h.MSN == 0 {
		return
	}
	one := &q.sentUD[h.MSN%remembered]
	if one.number != h.MSN || one.to != from {
		return
	}
	q.sendCQ.push(rdma.Completion{ID: one.id, Op: rdma.OpRefused, Peer: from, Status: statusOf(t.Fault)}, loan{})
	*one = sentUD{}
}

// statusOf returns the completion status for a fault at the peer.
func statusOf(f ddp.Fault) rdma.Status {
	switch {
	case f.Access():
		return rdma.StatusRemoteAccess
	case f == ddp.FaultTooLong:
		return rdma.StatusTooLong
	}
	return rdma.StatusFault
}
