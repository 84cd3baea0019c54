package engine

// Poll, post, deliver: between the machine and the device, with the lock held.

import (
	"errors"
	"fmt"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/rdma"
)

// poll takes what has come, lets the machine work on it, and posts what it wants
// posted. It returns the number of completions.
func (e *Engine) poll() int {
	n := e.work(&e.home, e.home.cq.Poll(e.comps[:]))
	if len(e.lanes) > 1 {
		n += e.pollOthers(&e.home)
	}
	return n
}

// pollOthers polls all lanes but one.
func (e *Engine) pollOthers(but *lane) (n int) {
	for _, d := range e.lanes {
		if d != but {
			n += e.pollLane(d)
		}
	}
	return n
}

// pollLane polls a lane other than home and notes whether there is traffic on it.
func (e *Engine) pollLane(d *lane) int {
	n := d.cq.Poll(e.comps[:])
	if d.silence++; n > 0 {
		d.silence = 0
	}
	return e.work(d, n)
}

// A lane is silent after so many polls without traffic: more than there are in some
// waits. It is then polled every silentEvery-th time; a power of two.
const (
	silentAfter = 2000
	silentEvery = 8
)

// pollWaiting is poll for who does nothing but wait. A rank whose messages all stay
// on its node would pay for a look at the network with each look at shared memory, and
// where ranks share cores, all would wait for it (reportRun: a third of the time of a
// barrier of 16 ranks on two cores).
func (e *Engine) pollWaiting() int {
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

// mover is a completion queue whose Poll may move a part of a large message without a
// completion, and its count when it was last asked.
type mover struct {
	cq    rdma.MovingCQ
	count uint64
}

// piecesMoved reports whether a device has moved a part of a large message since it was
// last asked.
func (e *Engine) piecesMoved() bool {
	moved := false
	for i := range e.movers {
		m := &e.movers[i]
		if n := m.cq.Moved(); n != m.count {
			m.count, moved = n, true
		}
	}
	return moved
}

// listen makes the next pollWaiting look at every lane: one has woken us, or may have.
func (e *Engine) pollAllNext() {
	for _, d := range e.lanes {
		if d.silence >= silentAfter {
			d.silence = silentAfter
		}
	}
}

// work lets the machine work on n completions of a lane.
func (e *Engine) work(d *lane, n int) int {
	for i := range e.comps[:n] {
		c := &e.comps[i]
		if c.Op == rdma.OpRecv {
			var l *p2p.Link
			if int(c.Peer) < len(d.byPeer) {
				l = d.byPeer[c.Peer]
			}
			if l == nil {
				if l = e.arrivalLink(d, c.Peer); l == nil {
					continue
				}
			}
			e.m.Arrived(l, c.Data.Bytes())
			if e.cfg.Rings > 0 {
				e.considerRing(d, l)
			}
			continue
		}
		if c.Op == rdma.OpLowWater {
			continue // returnBuffers answers it
		}
		if c.Op == rdma.OpDisconnected {
			e.disconnected(d, c)
			continue
		}
		if c.ID == p2p.RingID {
			if int(c.Peer) < len(d.byPeer) && d.byPeer[c.Peer] != nil && c.Status != rdma.StatusOK {
				e.checkDeaths()
				e.m.FailLink(d.byPeer[c.Peer], fmt.Errorf("write into its ring over %s: %w", d.attr.Name, c.Status.Err()))
			}
			continue
		}
		if c.Status != rdma.StatusOK {
			// A peer that has learnt of a death before us has ended its operations,
			// and with them what ours were moving. The death is what the caller must
			// be told.
			e.checkDeaths()
			if _, ok := d.dev.(rdma.ExplainingDevice); ok && c.Status == rdma.StatusPeerGone {
				e.disconnected(d, c)
			}
		}
		e.m.Completed(c.ID, c.Status, int(c.Len))
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
	if len(e.blocked) > 0 {
		n += e.retry()
	}
	if e.held > 0 {
		e.serveHeld()
	}
	if len(e.m.Out.Notes) > 0 {
		e.takeNotes()
	}
	if len(e.m.Out.Done) > 0 {
		e.deliver()
	}
	if e.probers > 0 && n > 0 {
		e.wakeProbers()
	}
	return n
}

// quiet reports whether there is nothing to post, to deliver or to try again, and
// nobody waits for somebody's arrival.
func (e *Engine) quiet() bool {
	return len(e.m.Out.WR)|len(e.m.Out.Done)|len(e.m.Out.Notes)|len(e.blocked)|e.probers|e.held == 0
}

// sendNow sends a message that needs no operation if it can: sent says that the
// device has taken it, tried that its packets wait in the link. wr is what SendOne
// gave, if the device has not taken it at once.
func (e *Engine) sendNow(l *p2p.Link, c *Comm, tag int32, buf []byte, wr *[1]rdma.SendWR) (sent, tried bool) {
	if wr != nil {
		e.post(l, wr[:])
	} else if e.m.SendNow(l, c.Ctx, c.Rank, tag, buf) {
		e.flush()
	} else {
		return false, false
	}
	return len(l.Wait) == 0 && l.Err == nil, true
}

// flush posts what the machine wants posted, link by link in order.
func (e *Engine) flush() {
	o := &e.m.Out
	for i := range o.WR {
		// What carries no data asks or answers: a peer that computes should see it.
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
		o.WR[i].Body = rdma.Mem{} // or the slot would keep the user's buffer alive
	}
	o.WR, o.Link = o.WR[:0], o.Link[:0]
}

// post offers work requests to the device; what it does not take waits in the
// link, in order, heads included.
func (e *Engine) post(l *p2p.Link, wrs []rdma.SendWR) {
	if l.Err != nil {
		e.m.Dropped(wrs)
		return
	}
	if !l.Open {
		if err := e.open(l); err != nil {
			e.m.FailLink(l, err)
			e.m.Dropped(wrs)
			return
		}
		for i := range wrs {
			wrs[i].Peer = l.Peer // which may be known only now
		}
	}
	if len(l.Wait) == 0 {
		n := e.offer(l, wrs)
		wrs = wrs[n:]
		if len(wrs) == 0 || l.Err != nil {
			e.m.Dropped(wrs)
			return
		}
		e.blocked = append(e.blocked, l)
	}
	l.Wait = append(l.Wait, wrs...)
}

func (e *Engine) offer(l *p2p.Link, wrs []rdma.SendWR) int {
	var n int
	var err error
	e.lanes[l.Dev].silence = 0
	if l.HasRing() {
		n, err = e.offerByRing(l, wrs)
	} else {
		n, err = l.QP.PostSend(wrs)
	}
	for i := range wrs[:n] {
		if wrs[i].ID != 0 && wrs[i].Flags&rdma.Inline != 0 {
			e.m.Taken(wrs[i].ID)
		}
	}
	if err != nil && !errors.Is(err, rdma.ErrAgain) {
		e.m.FailLink(l, err)
	}
	return n
}

// keepWaiting is how many places for waiting packets a link keeps when none wait.
const keepWaiting = 64

// retry offers what waits again.
func (e *Engine) retry() int {
	moved := 0
	keep := e.blocked[:0]
	for _, l := range e.blocked {
		n := 0
		if l.Err == nil {
			n = e.offer(l, l.Wait)
		}
		moved += n
		if l.Err != nil {
			e.m.Dropped(l.Wait[n:])
			l.Wait = nil
			continue
		}
		left := copy(l.Wait, l.Wait[n:])
		clear(l.Wait[left:]) // or they would keep the users' buffers alive
		if l.Wait = l.Wait[:left]; left > 0 {
			keep = append(keep, l)
		} else if cap(l.Wait) > keepWaiting {
			l.Wait = nil
		}
	}
	clear(e.blocked[len(keep):])
	e.blocked = keep
	return moved
}

// deliver tells those who wait that their operations have ended. A collective goes
// on when one of its messages has: that may end more operations, and their turn
// comes in the same loop.
func (e *Engine) deliver() {
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
			case *Window:
				whole.ended(x)
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

// signal wakes a waiter, the driver included.
func (e *Engine) signal(w *p2p.Waiter) {
	select {
	case w.Ready <- struct{}{}:
	default:
	}
	if w == e.driver && e.parked {
		e.home.cq.Wake()
	}
}

// settle posts and delivers after a call into the machine.
func (e *Engine) settle() {
	if len(e.m.Out.WR) > 0 {
		e.flush()
	}
	if len(e.m.Out.Notes) > 0 {
		e.takeNotes()
	}
	if len(e.m.Out.Done) > 0 {
		e.deliver()
	}
	if e.parked && len(e.blocked) > 0 {
		e.home.cq.Wake() // the driver must not sleep on packets that wait
	}
}
