package engine

// Waiting. The lock is held except while the goroutine yields, sleeps or parks.

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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
	ctxEvery    = 64 // polls between two checks of the context
	// drainPolls bounds the polls with a result in a row after which a driver yields.
	drainPolls = 64
	// othersEvery is the number of polls of the expected lane between two polls of the
	// others; a power of two.
	othersEvery = 16
)

// NoContext is the context of calls that wait without a limit. It is nil, so such
// calls pay nothing for context support.
var NoContext context.Context

// waitOne waits for one operation. The lock is held on entry and on return. This is
// the fast path of a blocking call: the first polls happen here, without the
// bookkeeping for several goroutines.
func (e *Engine) waitOne(x *p2p.Xfer, c *Comm, op string) {
	if e.driver == nil && len(e.connecting) == 0 {
		if x.Done() {
			return
		}
		d := &e.home
		if len(e.lanes) > 1 {
			d = e.laneOf(x)
		}
		for i := e.spin; i > 0; i-- {
			if i&(othersEvery-1) == 0 && len(e.lanes) > 1 {
				e.pollOthers(d)
				if x.Done() {
					return
				}
			}
			n := d.cq.Poll(e.comps[:])
			if n == 1 && e.comps[0].Op == rdma.OpRecv && d.pool == nil {
				// The same as work, for the awaited message.
				if m := &e.comps[0]; int(m.Peer) < len(d.byPeer) && d.byPeer[m.Peer] != nil {
					e.m.Arrived(d.byPeer[m.Peer], m.Data.Bytes())
					if x.Done() && e.quiet() {
						return
					}
					e.work(d, 0)
					i, n = e.spin, 0
					if x.Done() {
						return
					}
				}
			}
			if n > 0 || len(e.blocked) > 0 || len(d.rings) > 0 {
				if e.work(d, n) > 0 {
					i = e.spin
				}
				if x.Done() {
					return
				}
			}
			if e.mu.wanted.Load() != 0 {
				break
			}
		}
	} else if e.threadDrives() {
		if !x.Done() {
			e.takeOver()
			e.waitOne(x, c, op)
			e.resumeThread()
		}
		return
	}
	_ = e.waitSlow(NoContext, c, op, x)
}

// waitSlow is waitOne after spinning failed, or with a context.
func (e *Engine) waitSlow(ctx context.Context, c *Comm, op string, x *p2p.Xfer) error {
	w := e.getWaiter()
	w.One[0] = x
	err := e.wait(ctx, c, op, w, w.One[:], 1)
	w.One[0] = nil
	e.putWaiter(w)
	return err
}

// wait waits until need of the operations have completed, counting those that are
// complete on entry, or the context ends. The lock is held on entry and on return.
func (e *Engine) wait(ctx context.Context, c *Comm, op string, w *p2p.Waiter, xs []*p2p.Xfer, need int) error {
	var done <-chan struct{}
	if ctx != nil {
		done = ctx.Done()
	}
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
	if done != nil {
		if e.undriven() {
			e.poll() // even with a context that has ended, take messages that have arrived
		}
		if len(e.connecting) > 0 {
			e.openTimer.Reset(0) // the end of the context does not interrupt openNext
		}
		stop := context.AfterFunc(ctx, e.home.cq.Wake)
		defer stop()
	}
	for w.Pending > 0 && !ended(done) {
		switch {
		case len(e.connecting) > 0 && done == nil:
			e.openNext()
		case e.undriven():
			e.takeOver()
			e.drive(w, done, c, op, xs)
		default:
			e.sleep(w, done)
		}
	}
	for _, x := range xs {
		if x != nil && x.Owner == w {
			x.Owner = nil
		}
	}
	e.handOver()
	e.resumeThread()
	if w.Pending > 0 {
		return GaveUp(ctx)
	}
	return nil
}

// handOver wakes a sleeper to drive, if there is no driver. Every goroutine that leaves
// a wait calls it, not only the driver: the sleeper that the driver woke may have
// been complete already and must then wake the next one.
func (e *Engine) handOver() {
	if e.driver == nil && e.sleepers != nil {
		e.signal(e.sleepers)
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

// sleep waits until the driver has completed our operations or hands over to us.
func (e *Engine) sleep(w *p2p.Waiter, done <-chan struct{}) {
	w.Next = e.sleepers
	e.sleepers = w
	e.unlock()
	select {
	case <-w.Ready:
	case <-done:
	}
	e.lock()
	for at := &e.sleepers; *at != nil; at = &(*at).Next {
		if *at == w {
			*at = w.Next
			break
		}
	}
	w.Next = nil
}

// probing is the Pending of a sleeper that waits for any message.
const probing = -1

// wakeProbers wakes all sleepers that wait for any message.
func (e *Engine) wakeProbers() {
	for w := e.sleepers; w != nil; w = w.Next {
		if w.Pending == probing {
			e.signal(w)
		}
	}
}

// drive polls on behalf of all waiters until our own operations have completed: first
// with the lock held, then yielding between polls, then parked in the device. After a
// poll with a result it polls again before it yields: one poll takes what one run of
// datagrams brought, and where ranks share cores the next time slice is far away. It
// returns early if links wait to be connected: that must not hold up other goroutines.
func (e *Engine) drive(w *p2p.Waiter, done <-chan struct{}, c *Comm, op string, xs []*p2p.Xfer) {
	e.driver = w
	shown := false
	var asks asking
	var long time.Time // when yielding began
	start := 0
	if e.Oversubscribed() {
		start = e.spin // waitOne has spun already, and other ranks need the core
	}
	busy := 0 // polls with a result in a row
	for idle := start; w.Pending > 0; idle++ {
		if e.pollWaiting() > 0 {
			idle = start
			if busy++; busy < drainPolls && e.mu.wanted.Load() == 0 && !ended(done) {
				idle--
				continue
			}
		}
		busy = 0
		if w.Pending <= 0 || len(e.connecting) > 0 && done == nil {
			break
		}
		if idle >= e.spin && e.piecesMoved() {
			// A large message is progressing: do not park, and do not report the rank
			// as waiting.
			idle = start
			if shown {
				e.board.Running(e.rank)
				shown = false
			}
		}
		if done != nil && (idle == start || idle%ctxEvery == 0 || idle > e.spin) && ended(done) {
			break
		}
		switch {
		case e.mu.wanted.Load() != 0:
			e.unlock()
			runtime.Gosched()
			e.lock()
		case idle < e.spin:
		case idle < e.spin+e.yields:
			if long.IsZero() {
				long = time.Now()
				e.stay(true)
			}
			e.waited.yields++
			e.unlock()
			e.yieldCore(idle)
			e.lock()
			if idle&63 == 0 {
				e.checkDeaths()
			}
		default:
			if !shown {
				e.board.Waiting(e.rank, e.describe(c, op, xs))
				shown = true
			}
			e.park()
			e.checkDeaths()
			asks.after(e, long, xs)
			idle = e.spin + e.yields // poll once, then park again
		}
	}
	if shown {
		e.board.Running(e.rank)
	}
	if !long.IsZero() {
		e.stay(false)
		e.waited.since(long)
	}
	e.driver = nil
}

// stay declares to the devices whether the driver stays between two polls, though it yields
// its core: their progress threads would take over a rank that waits for its time slice.
func (e *Engine) stay(on bool) {
	for _, cq := range e.stayers {
		cq.Stay(on)
	}
}

// park waits in the device for the next event. It releases the lock meanwhile.
func (e *Engine) park() {
	for _, d := range e.lanes {
		if d.regs != nil {
			d.regs.Age() // release memory that was sent once and is not sent again
		}
	}
	timeout := parkIdle
	if len(e.blocked) > 0 {
		timeout = parkBlocked
	}
	if len(e.lanes) > 1 {
		if timeout = e.armLanes(timeout); timeout == 0 {
			// A lane that is still connecting cannot be armed; the rank at the other
			// end may need this core to accept.
			e.unlock()
			e.yieldCore(0)
			e.lock()
			return
		}
	}
	e.parked = true
	e.waited.parks++
	e.unlock()
	_ = e.home.cq.Wait(timeout)
	e.lock()
	e.parked = false
	e.pollAllNext()
}

// yieldCore yields the core: to threads of other ranks by sched_yield, and to
// goroutines of this process by the Go scheduler. sched_yield is many times less
// expensive, so runtime.Gosched is called only now and then.
func (e *Engine) yieldCore(n int) {
	if e.cfg.InProcess || n&15 == 0 {
		runtime.Gosched()
	}
	if !e.cfg.InProcess {
		yieldThread()
	}
}

// describe returns the wait state of the first unfinished operation, for the board.
func (e *Engine) describe(c *Comm, op string, xs []*p2p.Xfer) pmi.WaitState {
	s := pmi.WaitState{Op: op, Comm: c.Name, Context: c.Ctx, Peer: pmi.PeerNone, Tag: pmi.TagNone}
	for _, x := range xs {
		if x == nil || x.Done() {
			continue
		}
		if part := e.partAwaited(x); part != nil {
			x = part
		}
		s.Sending, s.Tag, s.Context = x.Send, x.Tag, x.Ctx
		s.Peer = pmi.PeerAny
		if x.Link != nil {
			s.Peer = int32(x.Link.Rank)
		}
		break
	}
	return s
}

func (e *Engine) getWaiter() *p2p.Waiter {
	w := e.waiters
	if w == nil {
		return &p2p.Waiter{Ready: make(chan struct{}, 1)}
	}
	e.waiters, w.Next = w.Next, nil
	return w
}

func (e *Engine) putWaiter(w *p2p.Waiter) {
	select {
	case <-w.Ready: // drop a late signal
	default:
	}
	w.Pending = 0
	w.Next, e.waiters = e.waiters, w
}

// describeProbe is describe for a probe.
func (e *Engine) describeProbe(c *Comm, op string, peer, tag int32) pmi.WaitState {
	return pmi.WaitState{Op: op, Comm: c.Name, Context: c.Ctx, Peer: peer, Tag: tag}
}
