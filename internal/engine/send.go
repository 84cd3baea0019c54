package engine

// Sends. A short message goes out inside the call and needs no operation; the steps, each
// for what the one before does not handle:
//
//	sendShort   one packet that the device accepts at once
//	sendQueued  packets for which the device or the link has no room, a link that is not
//	            connected yet, several packets
//	start       an operation: rendezvous, synchronous mode, no credit
//
// A send whose packets wait in the link becomes an operation as well (adopt).

import (
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/rdma"
)

// shortKind is how a short message is sent.
type shortKind uint8

const (
	// sendCopied copies the message: the call may not return before the device has
	// finished with the buffer, and waiting for that costs more than the copy.
	sendCopied shortKind = iota
	// sendUrgent is sendCopied for a message that the peer handles even while it computes.
	sendUrgent
	// sendWaits and sendGoesOn send from the user's buffer if that pays (sources.go). The
	// caller waits for the send, or does not.
	sendWaits
	sendGoesOn
	// sendPart and sendLast are the same for messages of a collective, which never polls.
	// After sendLast the collective only waits for its sends.
	sendPart
	sendLast
)

// sendShort sends a message that needs no operation. sent reports that the device has
// accepted it. Otherwise x is the operation that completes it, or nil if the message needs
// another protocol than eager.
func (e *Held) sendShort(l *p2p.Link, c *Comm, tag int32, buf []byte, kind shortKind) (x *p2p.Xfer, sent bool) {
	if kind >= sendWaits && l.Sourced(len(buf)) {
		if x, sent = e.sendSourced(l, c, tag, buf, kind); sent || x != nil {
			return x, sent
		}
	}
	wr := e.m.SendOne(l, c.Ctx, c.Rank, tag, buf)
	if wr != nil && l.Open && len(l.Wait) == 0 && kind != sendUrgent {
		if kind == sendGoesOn && e.flushesHeld(l) {
			wr[0].Flags |= rdma.More
		}
		n, _ := l.QP.PostSend(wr[:])
		wr[0].Flags &^= rdma.More
		if n == 1 {
			e.noteTraffic(l)
			return nil, true
		}
	}
	return e.sendQueued(l, c, tag, buf, kind, wr)
}

// flushesHeld reports whether somebody will poll for the messages that a device holds back
// (rdma.More): the application's next call, or the progress thread. A caller that sleeps would
// not.
func (e *Held) flushesHeld(l *p2p.Link) bool {
	t := e.thread
	return t != nil && t.lane.attr.Served && l.Dev == t.lane.number && !e.waits.any()
}

// noteTraffic records that a link is used: its lane is polled with every poll again. A lane
// to the rank itself does not wake the driver.
func (e *Held) noteTraffic(l *p2p.Link) {
	if t := e.thread; t != nil && l.Dev == t.lane.number {
		e.leaves = true
	}
	if l.Dev == 0 {
		return
	}
	d := e.lanes[l.Dev]
	d.silence = 0
	if d.alone {
		e.poke()
	}
}

// sendQueued is sendShort for messages that the device has not accepted at once. wr is the
// result of SendOne.
func (e *Held) sendQueued(l *p2p.Link, c *Comm, tag int32, buf []byte, kind shortKind, wr *[1]rdma.SendWR) (x *p2p.Xfer, sent bool) {
	flags := rdma.Flags(0)
	if kind == sendUrgent {
		flags = rdma.Solicited
	}
	if wr != nil {
		wr[0].Flags |= flags
		e.post(l, wr[:])
		wr[0].Flags &^= flags
	} else if e.m.SendNow(l, c.Ctx, c.Rank, tag, buf) {
		e.m.Out.WR[len(e.m.Out.WR)-1].Flags |= flags
		e.flush()
	} else {
		return nil, false
	}
	return e.queuedResult(l)
}

// queuedResult returns the result of a send whose packets have been posted to a link.
func (e *Held) queuedResult(l *p2p.Link) (x *p2p.Xfer, sent bool) {
	if len(l.Wait) == 0 && l.Err == nil {
		return nil, true
	}
	return e.adopt(l), false
}

// sendSourced is sendShort for a message that may go from the user's buffer.
func (e *Held) sendSourced(l *p2p.Link, c *Comm, tag int32, buf []byte, kind shortKind) (x *p2p.Xfer, sent bool) {
	wr, x := e.m.SendShort(l, c.Ctx, c.Rank, tag, buf, kind == sendWaits || kind == sendLast)
	if wr == nil {
		return nil, false
	}
	e.post(l, wr[:])
	switch {
	case x == nil:
		return e.queuedResult(l)
	case kind >= sendPart:
		e.lanes[l.Dev].sources.stats.Collective++
	case len(l.Wait) == 0:
		e.reap(l, x)
	}
	return x, false
}

// adopt creates an operation for a send without one whose packets the device has not all
// accepted. The last packet that waits on the link completes it.
func (e *Held) adopt(l *p2p.Link) *p2p.Xfer {
	x := e.m.Adopt(l)
	if n := len(l.Wait); n > 0 && l.Err == nil {
		l.Wait[n-1].ID = x.Handle()
		return x
	}
	e.m.Refuse(x, l.Err)
	return x
}

// startShort is sendShort for messages of the engine itself, which also starts an
// operation if the message needs one. It does not poll: its caller may be processing the
// results of a poll.
func (e *Held) startShort(l *p2p.Link, c *Comm, tag int32, buf []byte, kind shortKind) (x *p2p.Xfer, sent bool) {
	if x, sent = e.sendShort(l, c, tag, buf, kind); sent || x != nil {
		return x, sent
	}
	x = e.m.New()
	x.Link, x.Ctx, x.Source, x.Tag, x.Buf = l, c.Ctx, c.Rank, tag, buf
	e.m.Send(x)
	if len(e.m.Out.WR) > 0 {
		e.flush()
	}
	return x, false
}

// startAnnounced starts a send whose receiver decides when the data is sent.
func (e *Held) startAnnounced(l *p2p.Link, c *Comm, tag int32, buf []byte) *p2p.Xfer {
	x := e.m.New()
	x.Link, x.Ctx, x.Source, x.Tag, x.Buf = l, c.Ctx, c.Rank, tag, buf
	e.m.SendAnnounced(x)
	return x
}

// Send sends and waits until buf may be reused. op is the name of the MPI call.
func (r *Engine) Send(c *Comm, op string, dst int, tag int32, buf []byte, mode p2p.Mode) error {
	e := r.lock()
	l := e.links.last
	if l == nil || l.Rank != dst {
		l = e.link(dst)
	}
	var x *p2p.Xfer
	if mode != p2p.Synchronous && (e.ft.revoked == nil || e.ft.revoked[c.Ctx] == nil) {
		var sent bool
		if x, sent = e.sendShort(l, c, tag, buf, sendWaits); sent {
			e.unlock()
			return nil
		}
	}
	if x == nil {
		x = e.start(c, dst, tag, buf, mode)
	}
	e.waitOne(x, c, op)
	err := x.Err
	e.m.Free(x)
	e.unlock()
	return err
}

// Isend starts a send. A short one has often completed when the call returns; then the
// Op is zero.
func (r *Engine) Isend(c *Comm, dst int, tag int32, buf []byte, mode p2p.Mode) Op {
	e := r.lock()
	l := e.links.last
	if l == nil || l.Rank != dst {
		l = e.link(dst)
	}
	var x *p2p.Xfer
	if mode != p2p.Synchronous && (e.ft.revoked == nil || e.ft.revoked[c.Ctx] == nil) {
		var sent bool
		if x, sent = e.sendShort(l, c, tag, buf, sendGoesOn); sent {
			e.unlock()
			return Op{}
		}
	}
	if x == nil {
		x = e.start(c, dst, tag, buf, mode)
	} else {
		e.poke()
	}
	op := Op{x, x.Handle()}
	e.unlockStarted(x)
	return op
}

// start starts a send that needs an operation.
func (e *Held) start(c *Comm, dst int, tag int32, buf []byte, mode p2p.Mode) *p2p.Xfer {
	l := e.link(dst)
	if err := e.ft.revoked[c.Ctx]; err != nil {
		x := e.m.New()
		e.m.Refuse(x, err)
		return x
	}
	if e.waits.driver == nil && l.Rendezvous(len(buf)) {
		// If the receiver was first, this poll finds its RTR, and the data is written
		// inside this call (T1 4.2.2). It takes all completions: the RTRs of several
		// receives may wait, in another order than the sends.
		d := e.lanes[l.Dev]
		e.work(d, d.cq.Poll(e.comps[:]))
	}
	x := e.m.New()
	x.Link, x.Ctx, x.Source, x.Tag, x.Buf, x.Mode = l, c.Ctx, c.Rank, tag, buf, mode
	e.m.Send(x)
	e.settle()
	if x.Written() && e.waits.driver == nil {
		// A device that writes with this processor has finished. Process the
		// completion and send the FIN now, not in the caller's next call.
		d := e.lanes[l.Dev]
		e.work(d, d.cq.Poll(e.comps[:]))
	}
	return x
}
