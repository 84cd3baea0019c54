package engine

// What the progress thread does for an application that is away: rounds of polls, sleeps in
// the lane of the network, and naps. progress_thread.go decides when.

import (
	"runtime"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// serve polls in place of the application until it is back or nothing is under way.
func (t *progressThread) serve() {
	for first := true; !t.stop.Load(); {
		e, ok := t.engine.borrow()
		if !ok {
			// The application has the lock: to wait, or for a call at whose end it may set
			// the alarm again.
			if !first && !t.serving.Load() {
				return
			}
			if first && !t.lane.solicits() {
				t.nap(awaySoon)
				return
			}
			t.napLonger()
			continue
		}
		if first && !e.beginServing() || !first && !e.keepServing() {
			e.mu.giveBack()
			return
		}
		first = false
		served := t.stats.Served
		timeout := e.round()
		paused := timeout > 0 && t.stats.Served > served && e.pauseServing(timeout)
		e.mu.giveBack()
		if timeout == 0 {
			t.napLonger()
			continue
		}
		t.naps = 0
		if timeout < 0 {
			return
		}
		if paused {
			if t.lane.notify != nil {
				t.lane.notify.Disarm()
			}
			return
		}
		if t.lane.notify == nil {
			time.Sleep(min(timeout, unwatchedPark))
			continue
		}
		if t.lane.solicits() {
			_ = t.lane.notify.WaitArmed(timeout)
			continue
		}
		t.alarm.sleepIn(t.lane, timeout)
		t.lane.notify.Disarm()
	}
}

// beginServing reports whether the application is away. If a caller drives, the thread acts
// again when it leaves.
func (e *Held) beginServing() bool {
	t := e.thread
	t.deadline.Store(0)
	t.soon, t.armed = false, false
	if e.waits.any() || t.stop.Load() {
		e.leaves = true
		return false
	}
	if e.awayTime() == 0 {
		return false
	}
	t.serving.Store(true)
	t.seen = e.calls
	t.stats.Duties++
	if e.watcher != nil {
		e.watcher.Progress(true)
	}
	return true
}

// keepServing reports whether the application is still away. If it has made calls, it
// makes progress itself, and the alarm decides.
func (e *Held) keepServing() bool {
	t := e.thread
	if !t.serving.Load() {
		return false // a call that waits has ended it
	}
	switch {
	case t.stop.Load():
	case e.waits.any():
		e.leaves = true
	case e.calls == t.seen || t.lane.solicits() || e.setAlarm():
		t.seen = e.calls
		return true
	}
	e.endServing()
	return false
}

// pauseServing ends the service until the alarm if nothing is under way, and reports whether it
// has. timeout is when a device needs its next poll.
func (e *Held) pauseServing(timeout time.Duration) bool {
	if e.thread.lane.solicits() || e.awayTime() != awayLater || len(e.links.blocked) > 0 {
		return false
	}
	e.startAlarm(e.clock(), min(timeout, arrivalPause))
	e.endServing()
	return true
}

func (e *Held) endServing() {
	e.thread.serving.Store(false)
	if e.watcher != nil {
		e.watcher.Progress(false)
	}
}

const (
	// idleRounds is the number of polls without completions after which the clock
	// decides whether data is moving: a piece of a copy produces no completion.
	idleRounds = 32
	// roundFloor is the least time of a poll that transfers a piece.
	roundFloor = time.Microsecond
	// notifiedNap is how long a thread waits that leave has woken: see awaySoon.
	notifiedNap = 30 * time.Microsecond
	// shortNap and longNap bound the pause of a thread that finds the lock taken, or
	// can neither make progress nor sleep.
	shortNap = 5 * time.Microsecond
	longNap  = 200 * time.Microsecond
)

// round polls until nothing is left to do. It returns how long the thread may sleep, 0 if
// another goroutine wants the lock or no data moves, and less if nothing is under way. The
// lock is borrowed.
func (e *Held) round() time.Duration {
	t := e.thread
	t.stats.Wakes++
	leaves := e.leaves
	defer func() { e.leaves = leaves }() // polls of the thread are no calls
	e.setBeside(true)
	defer e.setBeside(false)
	start, armed := e.clock(), false
	s := strategy{spin: idleRounds} // and then a nap or a sleep
	for {
		n := e.poll()
		t.stats.Served += uint64(n)
		if n > 0 {
			t.naps = 0
			start = e.clock()
		}
		if e.awayTime() == 0 {
			e.endServing()
			return -1
		}
		// The next poll returns the buffers of this poll's completions to the peers. What
		// arrives after an empty poll ends the sleep, except in shared memory, where the
		// thread polls once more after it has armed the device.
		if n == 0 {
			timeout := e.armThread()
			if timeout > 0 && (armed || !t.lane.solicits()) {
				return timeout
			}
			armed = timeout > 0
		}
		switch s.next(n > 0, e.mu.wanted.Load() != 0) {
		case stepUnlock:
			return 0
		case stepPark:
			if e.clock()-start < idleRounds*roundFloor {
				return 0
			}
			s.noteProgress()
			t.naps = 0
			start = e.clock()
		}
	}
}

// armThread arms the devices to wake the progress thread. It returns how long the
// thread may sleep, or 0 if there is work already.
func (e *Held) armThread() time.Duration {
	t := e.thread
	timeout := inactiveWait
	if len(e.links.blocked) > 0 {
		timeout = parkBlocked
	}
	for _, d := range e.lanes {
		if d != t.lane {
			if timeout = e.armBeside(d, timeout); timeout == 0 {
				return 0
			}
		}
		if len(d.rings) > 0 {
			timeout = min(timeout, unwatchedPark) // a write into a ring raises no event
		}
	}
	if d := t.lane; d.notify != nil {
		t.armed = t.armed || d.solicits()
		timeout = min(timeout, d.notify.Arm(d.event, timeout))
	}
	return timeout
}

// armBeside arms a lane in which the thread does not sleep. It returns how long the thread may
// sleep, or 0 if there is work already.
func (e *Held) armBeside(d *lane, timeout time.Duration) time.Duration {
	t := e.thread
	switch {
	case d.alone: // nothing wakes the rank for a message to itself
		if e.pollLane(d) > 0 || e.piecesMoved() {
			return 0
		}
	case d == &e.home:
		if t.helping {
			t.armed = true
			if d.notify.Arm(d.event, inactiveWait) <= 0 {
				return 0
			}
		}
	case d.armed == nil:
		return min(timeout, unwatchedPark)
	default:
		limit := d.armed.Arm(rdma.NotifyAny, parkIdle)
		if limit <= 0 {
			return 0
		}
		e.startWaiting(d, limit)
	}
	return timeout
}

// solicits reports whether only solicited events wake the progress thread.
func (d *lane) solicits() bool { return d.notify != nil && d.event == rdma.NotifySolicited }

// setBeside marks the following polls of home as those of the progress thread.
func (e *Held) setBeside(on bool) {
	if e.home.solicits() {
		e.home.notify.SetBeside(on)
	}
}

// napLonger pauses the progress thread, for longer each time in a row.
func (t *progressThread) napLonger() {
	t.naps++
	t.nap(min(shortNap<<min(t.naps/4, 6), longNap))
}

// nap pauses the progress thread. It does not use sched_yield: a thread that yields
// lets all others finish their time slices, which takes milliseconds.
func (t *progressThread) nap(d time.Duration) {
	if t.engine.held.cfg.InProcess {
		runtime.Gosched()
		time.Sleep(d)
		return
	}
	napThread(d)
}

// ProgressStats returns the counters of the progress thread, zero without one.
func (r *Engine) ProgressStats() (s ProgressStats) {
	e := r.lock()
	defer e.unlock()
	if e.thread != nil {
		s = e.thread.stats
	}
	return s
}
