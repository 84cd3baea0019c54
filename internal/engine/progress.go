package engine

// Polling, posting and delivery, between the machine and the devices, with the lock
// held.

import (
	"errors"
	"fmt"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/rdma"
)

// poll takes completions from all lanes, passes them to the machine, and posts the
// machine's work requests. It returns the number of completions.
func (e *Held) poll() int {
	n := e.work(&e.home, e.home.cq.Poll(e.comps[:]))
	if len(e.lanes) > 1 {
		n += e.pollOthers(&e.home)
	}
	return n
}

// pollOthers polls all lanes except one.
func (e *Held) pollOthers(but *lane) (n int) {
	for _, d := range e.lanes {
		if d != but {
			n += e.pollLane(d)
		}
	}
	return n
}

// pollLane polls a lane other than home and updates its silence counter.
func (e *Held) pollLane(d *lane) int {
	n := d.cq.Poll(e.comps[:])
	if d.silence++; n > 0 {
		d.silence = 0
	}
	return e.work(d, n)
}

// A lane is silent after silentAfter polls without traffic, more than some waits
// make. Only every silentEvery-th wait poll includes it then; a power of two.
const (
	silentAfter = 2000
	silentEvery = 8
)

// pollWaiting is poll for a caller that only waits; it skips most polls of silent
// lanes. A rank whose messages all stay on its node would otherwise pay for a poll of
// the network with each poll of shared memory, and where ranks share cores, all of
// them would wait for it (measured: a third of the time of a barrier of 16 ranks on
// two cores).
func (e *Held) pollWaiting() int {
	n := e.work(&e.home, e.home.cq.Poll(e.comps[:]))
	for _, d := range e.lanes {
		if d == &e.home {
			continue
		}
		if d.silence < silentAfter || d.silence%silentEvery == 0 {
			n += e.pollLane(d)
		} else {
			d.silence++
		}
	}
	return n
}

// mover is the counter of a device whose Poll can transfer a part of a large message
// without a completion, and its value at the last check.
type mover struct {
	moved func() uint64
	count uint64
}

// piecesMoved reports whether a device has transferred a part of a large message since
// the last call.
func (e *Held) piecesMoved() bool {
	moved := false
	for i := range e.movers {
		m := &e.movers[i]
		if n := m.moved(); n != m.count {
			m.count, moved = n, true
		}
	}
	return moved
}

// pollAllNext makes the next pollWaiting include every lane: one of them may have
// woken the driver.
func (e *Held) pollAllNext() {
	for _, d := range e.lanes {
		if d.silence >= silentAfter {
			d.silence = silentAfter
		}
	}
}

// work passes n completions of a lane to the machine, then posts and delivers the
// results.
func (e *Held) work(d *lane, n int) int {
	if t := e.thread; t != nil && n > 0 && d == t.lane {
		e.leaves = true
	}
	for i := range e.comps[:n] {
		c := &e.comps[i]
		if c.Op == rdma.OpRecv {
			l := d.byPeer.Get(int(c.Peer))
			if l == nil {
				if l = e.arrivalLink(d, c.Peer); l == nil {
					continue
				}
			}
			e.m.HandlePacket(l, c.Data.Bytes())
			if e.cfg.Rings > 0 {
				e.considerRing(d, l)
			}
			continue
		}
		if c.Op == rdma.OpLowWater {
			continue // handled by returnBuffers
		}
		if c.Op == rdma.OpDisconnected {
			e.handleDisconnect(d, c)
			continue
		}
		if c.ID == p2p.RingID {
			if l := d.byPeer.Get(int(c.Peer)); l != nil && c.Status != rdma.StatusOK {
				e.checkDeaths()
				e.m.FailLink(l, fmt.Errorf("%w: write into its ring over %s: %w", p2p.ErrTransport, d.attr.Name, c.Status.Err()))
			}
			continue
		}
		if c.Status != rdma.StatusOK {
			// A peer that learnt of a death before this rank has ended its operations,
			// and with them our transfers. The caller should see the death as the
			// cause.
			e.checkDeaths()
			if d.caps.Explain != nil && c.Status == rdma.StatusPeerGone {
				e.handleDisconnect(d, c)
			}
		}
		e.m.HandleCompletion(c.ID, c.Status, int(c.Len))
	}
	if d.pool != nil && n > 0 {
		e.returnBuffers(d, n)
	}
	if len(d.rings) > 0 {
		n += e.pollRings(d)
	}
	if e.quiet() {
		return n
	}
	if len(e.m.Out.WR) > 0 {
		e.flush()
	}
	if len(e.links.blocked) > 0 {
		n += e.retry()
	}
	if e.colls.held > 0 {
		e.serveHeld()
	}
	if len(e.m.Out.Notes) > 0 {
		e.takeNotes()
	}
	if len(e.m.Out.Done) > 0 {
		e.deliver()
	}
	if e.waits.probers > 0 && n > 0 {
		e.wakeProbers()
	}
	return n
}

// quiet reports whether there is nothing to post, to deliver or to retry, and no
// caller waits for a message or an arrival.
func (e *Held) quiet() bool {
	return len(e.m.Out.WR)|len(e.m.Out.Done)|len(e.m.Out.Notes)|len(e.links.blocked)|e.waits.probers|e.colls.held == 0
}

// flush posts the machine's work requests, link by link in order.
func (e *Held) flush() {
	o := &e.m.Out
	for i := range o.WR {
		// Control packets need an answer even while the peer computes.
		if wr := &o.WR[i]; wr.Op == rdma.OpSend && wr.Body.Len() == 0 {
			wr.Flags |= rdma.Solicited
		}
	}
	for i := 0; i < len(o.WR); {
		l := o.Link[i]
		j := i + 1
		for j < len(o.WR) && o.Link[j] == l {
			j++
		}
		e.post(l, o.WR[i:j])
		i = j
	}
	for i := range o.WR {
		o.WR[i].Body = rdma.Mem{} // release the user's buffer to the garbage collector
	}
	o.WR, o.Link = o.WR[:0], o.Link[:0]
}

// post offers work requests to the device. Those it does not accept wait in the link,
// in order and with their heads, like all that are posted before the link is connected.
func (e *Held) post(l *p2p.Link, wrs []rdma.SendWR) {
	if l.Err != nil {
		e.m.HandleDropped(wrs)
		return
	}
	if !l.Open && len(l.Wait) == 0 && !e.openAtOnce(l) {
		e.connect(l)
	} else if len(l.Wait) == 0 {
		n := e.offer(l, wrs)
		wrs = wrs[n:]
		if len(wrs) == 0 || l.Err != nil {
			e.m.HandleDropped(wrs)
			return
		}
		e.links.blocked = append(e.links.blocked, l)
	}
	l.Wait = append(l.Wait, wrs...)
}

// offer posts work requests and returns how many the device accepted.
func (e *Held) offer(l *p2p.Link, wrs []rdma.SendWR) int {
	var n int
	var err error
	e.noteTraffic(l)
	if l.HasRing() {
		n, err = e.offerByRing(l, wrs)
	} else {
		n, err = l.QP.PostSend(wrs)
	}
	for i := range wrs[:n] {
		if wrs[i].ID != 0 && wrs[i].Flags&rdma.Inline != 0 {
			e.m.HandleTaken(wrs[i].ID)
		}
	}
	if err != nil && !errors.Is(err, rdma.ErrAgain) {
		e.m.FailLink(l, fmt.Errorf("%w: %w", p2p.ErrTransport, err))
	}
	return n
}

// keepWaiting is the capacity that the wait list of a link keeps when it is empty.
const keepWaiting = 64

// retry offers waiting packets again.
func (e *Held) retry() int {
	moved := 0
	keep := e.links.blocked[:0]
	for _, l := range e.links.blocked {
		n := 0
		if l.Err == nil {
			n = e.offer(l, l.Wait)
		}
		moved += n
		if l.Err != nil {
			e.m.HandleDropped(l.Wait[n:])
			l.Wait = nil
			continue
		}
		clear(l.Wait[:n]) // release the users' buffers to the garbage collector
		switch {
		case n < len(l.Wait):
			l.Wait = l.Wait[n:]
			keep = append(keep, l)
		case cap(l.Wait) > keepWaiting:
			l.Wait = nil
		default:
			l.Wait = l.Wait[:0]
		}
	}
	clear(e.links.blocked[len(keep):])
	e.links.blocked = keep
	return moved
}

// deliver signals the owners of completed operations. A message of a collective
// advances its run, which may complete more operations; the same loop delivers them.
func (e *Held) deliver() {
	for i := 0; i < len(e.m.Out.Done); i++ {
		x := e.m.Out.Done[i]
		e.m.Out.Done[i] = nil
		w := x.Owner
		x.Owner = nil
		if w == nil {
			continue
		}
		if w.Ready == nil {
			switch whole := w.Whole.(type) {
			case *Collective:
				e.partEnded(whole, x)
			case *heldWindow:
				whole.complete(x)
			default:
				if w == e.m.Drain() {
					e.m.Free(x)
				}
			}
			continue
		}
		if w.Pending--; w.Pending <= 0 {
			e.signal(w)
		}
	}
	e.m.Out.Done = e.m.Out.Done[:0]
}

// signal wakes a waiter, also if it is the driver.
func (e *Held) signal(w *p2p.Waiter) {
	select {
	case w.Ready <- struct{}{}:
	default:
	}
	if w == e.waits.driver && e.waits.parked {
		e.home.cq.Wake()
	}
}

// settle posts and delivers the results of a call into the machine.
func (e *Held) settle() {
	if len(e.m.Out.WR) > 0 {
		e.flush()
	}
	if len(e.m.Out.Notes) > 0 {
		e.takeNotes()
	}
	if len(e.m.Out.Done) > 0 {
		e.deliver()
	}
	if e.waits.parked && len(e.links.blocked) > 0 {
		e.home.cq.Wake() // the driver must not stay parked while packets wait
	}
}
