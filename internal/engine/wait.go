package engine

// Waiting. It releases the lock while the goroutine yields, sleeps or parks.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
)

// parkIdle and parkBlocked bound the time a driver parks. parkBlocked applies while
// packets wait for queue space, which the device does not announce.
const (
	parkIdle    = 100 * time.Millisecond
	parkBlocked = 500 * time.Microsecond
	// othersEvery is the number of polls of the expected lane between two polls of the
	// others; a power of two.
	othersEvery = 16
)

// NoContext is the context of calls that wait without a limit. It is nil, so such
// calls pay nothing for context support.
var NoContext context.Context

// waitOne waits for one operation. This is the fast path of a blocking call: the first
// polls happen here, without the bookkeeping for several goroutines.
func (e *Held) waitOne(x *p2p.Xfer, c *Comm, op string) {
	e.calls++
	if e.waits.driver == nil && len(e.links.connecting) == 0 {
		if x.Done() {
			return
		}
		d := &e.home
		if len(e.lanes) > 1 {
			d = e.laneOf(x)
		}
		if e.thread != nil {
			e.enter()
			e.leaves = e.leaves || d == e.thread.lane
		}
		for i := d.spin; i > 0; i-- {
			if i&(othersEvery-1) == 0 && len(e.lanes) > 1 {
				e.pollOthers(d)
				if x.Done() {
					return
				}
			}
			n := d.cq.Poll(e.comps[:])
			if n == 1 && e.comps[0].Op == rdma.OpRecv && d.pool == nil {
				// The same as work, for the awaited message.
				m := &e.comps[0]
				if l := d.byPeer.Get(int(m.Peer)); l != nil {
					e.m.HandlePacket(l, m.Data.Bytes())
					if x.Done() && e.quiet() {
						return
					}
					e.work(d, 0)
					i, n = d.spin, 0
					if x.Done() {
						return
					}
				}
			}
			if n > 0 || len(e.links.blocked) > 0 || len(d.rings) > 0 {
				if e.work(d, n) > 0 {
					i = d.spin
				}
				if x.Done() {
					return
				}
			}
			if e.mu.wanted.Load() != 0 {
				break
			}
		}
	}
	_ = e.waitSlow(NoContext, c, op, x)
}

// waitSlow is waitOne after spinning failed, or with a context.
func (e *Held) waitSlow(ctx context.Context, c *Comm, op string, x *p2p.Xfer) error {
	w := e.waits.get()
	w.One[0] = x
	err := e.wait(ctx, c, op, w, w.One[:], 1)
	w.One[0] = nil
	e.waits.put(w)
	return err
}

// wait waits until need of the operations have completed, counting those that are
// complete on entry, or the context ends.
func (e *Held) wait(ctx context.Context, c *Comm, op string, w *p2p.Waiter, xs []*p2p.Xfer, need int) error {
	w.Pending = need
	for _, x := range xs {
		if x == nil {
			continue
		}
		if x.Done() {
			w.Pending--
		} else {
			x.Owner = w
		}
	}
	if ctx != nil && ctx.Done() != nil && e.waits.driver == nil {
		e.poll() // even with a context that has ended, take messages that have arrived
	}
	e.await(ctx, &awaited{w: w, c: c, op: op, xs: xs})
	for _, x := range xs {
		if x != nil && x.Owner == w {
			x.Owner = nil
		}
	}
	if w.Pending > 0 {
		return GaveUp(ctx)
	}
	return nil
}

// awaited is what a wait waits for: operations, or a message that a probe would find.
type awaited struct {
	w    *p2p.Waiter
	done <-chan struct{} // closed when the context ends; nil: it does not
	c    *Comm
	op   string      // name of the call
	xs   []*p2p.Xfer // the operations
	// For a probe:
	probe     bool
	src, tag  int32
	worldPeer int32
}

// over reports whether the wait is over, apart from its context.
func (a *awaited) over(e *Held) bool {
	if a.probe {
		return e.failed != nil || e.m.Look(a.c.Ctx, a.src, a.tag) != nil || e.lostSource(a.c.Ctx, a.src) != nil
	}
	return a.w.Pending <= 0
}

// await waits until it is over or the context ends.
func (e *Held) await(ctx context.Context, a *awaited) {
	if ctx != nil {
		a.done = ctx.Done()
	}
	if a.done != nil {
		if len(e.links.connecting) > 0 {
			e.links.timer.Reset(0) // the end of the context does not interrupt openNext
		}
		stop := context.AfterFunc(ctx, e.home.cq.Wake)
		e.board.WaitingBounded(e.rank, 1)
		defer func() {
			e.board.WaitingBounded(e.rank, -1)
			stop()
		}()
	}
	for !a.over(e) && !ended(a.done) {
		switch {
		case len(e.links.connecting) > 0 && a.done == nil:
			e.openNext()
		case e.waits.driver == nil:
			e.drive(a)
		default:
			e.sleep(a)
		}
	}
	e.handOver()
}

// handOver wakes a sleeper to drive, if there is no driver. Every goroutine that leaves
// a wait calls it, not only the driver: the sleeper that the driver woke may have
// been complete already and must then wake the next one.
func (e *Held) handOver() {
	if e.waits.driver == nil && e.waits.sleepers != nil {
		e.signal(e.waits.sleepers)
	}
}

// ErrGaveUp reports that a context ended before the operation. The error also wraps
// the context's cause.
var ErrGaveUp = errors.New("gave up waiting")

// GaveUp returns the error for a context that has ended.
func GaveUp(ctx context.Context) error {
	return fmt.Errorf("%w: %w", ErrGaveUp, context.Cause(ctx))
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done: // a nil channel is never ready
		return true
	default:
		return false
	}
}

// sleep waits until the driver has completed our operations or hands over to us. A probe
// also wakes up for any message.
func (e *Held) sleep(a *awaited) {
	w := a.w
	e.waits.addSleeper(w, a.probe)
	e.mu.unlock()
	select {
	case <-w.Ready:
	case <-a.done:
	}
	e.mu.lock()
	e.waits.removeSleeper(w, a.probe)
}

// wakeProbers wakes all sleepers that wait for any message.
func (e *Held) wakeProbers() {
	for w := e.waits.sleepers; w != nil; w = w.Next {
		if w.Pending == probing {
			e.signal(w)
		}
	}
}

// drive polls on behalf of all waiters until our own wait is over: first with the lock
// held, then yielding between polls, then parked in the device. It returns early if links
// wait to be connected: that must not hold up other goroutines.
func (e *Held) drive(a *awaited) {
	e.waits.driver, e.waits.driven = a.w, true
	if e.thread != nil {
		e.enter()
	}
	var asks asking
	shown, late := false, false
	s := e.newStrategy()
	s.idle = s.first // waitOne has spun already
	for !a.over(e) {
		found := e.pollWaiting() > 0
		if late && found {
			e.waits.stats.late++
		}
		late = false
		if a.over(e) || ended(a.done) || len(e.links.connecting) > 0 && a.done == nil {
			break
		}
		if !found && s.idle >= s.spin && e.piecesMoved() {
			// A large message is progressing: do not park, and do not report the rank
			// as waiting.
			s.noteProgress()
			if shown {
				e.board.Running(e.rank)
				shown = false
			}
		}
		step := s.next(found, e.mu.wanted.Load() != 0)
		if step != stepPark {
			if e.cfg.ShowWaits && step == stepYield && !shown {
				e.board.Waiting(e.rank, a.describe(e))
				shown = true
			}
			e.pause(&s, step)
			continue
		}
		// Once more after each wake-up: what has arrived may be a message that the report of
		// a stuck job names.
		e.board.Waiting(e.rank, a.describe(e))
		shown = true
		e.waitsLong(&s)
		late = e.park()
		s.polled = e.clock()
		e.checkDeaths()
		asks.ask(e, s.long, a.xs)
	}
	if shown {
		e.board.Running(e.rank)
	}
	e.endWait(&s)
	e.waits.driver, e.waits.driven = nil, false
}

// park waits in the device for the next event, and reports whether none came before the
// timeout. It releases the lock meanwhile.
func (e *Held) park() (late bool) {
	for _, d := range e.lanes {
		if d.regs != nil {
			d.regs.Age() // release memory that was sent once and is not sent again
		}
	}
	timeout := parkIdle
	if len(e.links.blocked) > 0 {
		timeout = parkBlocked
		e.waits.stats.blocked++
	}
	if len(e.lanes) > 1 {
		if timeout = e.armLanes(timeout); timeout == 0 {
			// A lane that is still connecting cannot be armed; the rank at the other
			// end may need this core to accept.
			e.mu.unlock()
			e.yieldCore(0)
			e.mu.lock()
			return false
		}
	}
	beside := e.beside
	if len(beside) > 0 {
		timeout = min(timeout, unwatchedPark)
	}
	e.waits.parked = true
	e.waits.stats.parks++
	began := e.clock()
	if e.watcher != nil {
		e.watcher.Asleep(true)
	}
	e.alarmOff()
	e.mu.unlock()
	pollBeside(beside)
	_ = e.home.cq.Wait(timeout)
	e.mu.lock()
	e.waits.parked = false
	if e.watcher != nil {
		e.watcher.Asleep(false)
	}
	e.pollAllNext()
	return e.clock()-began >= timeout
}

// describe returns the wait state for the board: that of the first unfinished operation.
func (a *awaited) describe(e *Held) pmi.WaitState {
	s := e.describeProbe(a.c, a.op, pmi.PeerNone, pmi.TagNone)
	if a.probe {
		s.Peer, s.Tag = a.worldPeer, a.tag
		s.Other = e.nearMessage(a.c.Ctx, a.src, a.tag)
	}
	for _, x := range a.xs {
		if x == nil || x.Done() {
			continue
		}
		if co := e.colls.find(x); co != nil {
			if part := co.partAwaited(); part != nil {
				x = part
			}
		}
		s.Sending, s.Tag, s.Context = x.Send, x.Tag, x.Ctx
		if ofLibrary(x.Ctx) {
			s.Tag = pmi.TagNone
		}
		s.Peer = pmi.PeerAny
		if x.Link != nil {
			s.Peer = int32(x.Link.Rank)
		}
		if !x.Send && !ofLibrary(x.Ctx) {
			s.Other = e.nearMessage(x.Ctx, x.Source, x.Tag)
		}
		break
	}
	return s
}

// nearMessage returns a message that a receive of this source and tag would get if it had
// another source or tag: the usual cause of a wait that does not end.
func (e *Held) nearMessage(ctx uint32, src, tag int32) pmi.Unreceived {
	if g := e.m.FindNear(ctx, src, tag); g != nil && g.Link != nil {
		return pmi.MakeUnreceived(g.Link.Rank, g.Tag)
	}
	return 0
}

// ofLibrary reports whether the tags of a context are the library's own, which mean nothing to a
// user: those of collectives and of the data of partitioned messages. Package mpi assigns
// contexts in pairs, of which the second is for these.
func ofLibrary(ctx uint32) bool { return ctx&1 != 0 }

// describeProbe returns the wait state of a call that waits for a rank and a tag.
func (e *Held) describeProbe(c *Comm, op string, peer, tag int32) pmi.WaitState {
	return pmi.WaitState{Op: op, Comm: c.Name.String(), Context: c.Ctx, Peer: peer, Tag: tag}
}
