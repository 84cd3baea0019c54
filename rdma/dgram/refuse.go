package dgram

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Errors on UD. T1 6.3.3 has no Terminate: there is no stream that could end. An error
// message to the one peer whose message is at fault names that message by its number.
// refuse sends it, receiveError takes it in at the other end and tells the user there.
//
// Where we depart from the thesis: the queue pair that meets the fault does not go into
// the error state. It serves thousands of peers, and one that is broken must not end it
// for the others. The user whose message was refused is told; the other one hears of a
// message that was too long for its buffer, and the rest is counted (Device.Drops).
//
// Error messages go to processes of the job alone, never in answer to one, and only so
// many in a time, so nobody can make a device shout. One that is lost is lost.

const (
	refusalBurst = 16
	refusalEvery = time.Millisecond
)

// budget bounds how many error messages are sent: it is the time up to which they are
// paid for, and that may be ahead of the clock by a burst.
type budget time.Duration

// spend takes one out of the budget, if there is any.
func (b *budget) spend(now time.Duration) bool {
	paid := max(time.Duration(*b), now)
	if paid >= now+refusalBurst*refusalEvery {
		return false
	}
	*b = budget(paid + refusalEvery)
	return true
}

// refuse tells a peer that its message was of no use. raw is the segment to blame.
func (q *pair) refuse(to rdma.PeerID, number uint32, fault ddp.Fault, raw []byte) {
	d := q.dev
	if d.tick(); !d.refusals.spend(d.now) {
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

// appendTerminate appends the segment of a Terminate that concerns one message.
func appendTerminate(b []byte, number uint32, fault ddp.Fault, raw []byte) []byte {
	b = appendDDP(b, &ddp.Header{Op: ddp.TerminateOp, Last: true, QN: ddp.QueueTerminate, MSN: number})
	t := ddp.TerminateFor(fault, raw, len(raw))
	n := len(b)
	b = b[:n+t.Len()]
	t.Put(b[n:])
	return b
}

// receiveError tells the user of a message that a peer could not use. Nobody can refuse
// what was sent to others, and a message is refused once.
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

// statusOf is what a fault at the peer is to the user here.
func statusOf(f ddp.Fault) rdma.Status {
	switch {
	case f.Access():
		return rdma.StatusRemoteAccess
	case f == ddp.FaultTooLong:
		return rdma.StatusTooLong
	}
	return rdma.StatusFault
}
