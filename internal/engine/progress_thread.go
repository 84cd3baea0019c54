package engine

// Background progress: one thread a rank makes the progress of devices and engine while the
// application computes.
//
//	a call ends         leave: an alarm is set, for soon if a long transfer, a schedule or a
//	                    window is under way or a device holds messages back, else for later
//	the alarm is due    the application is away: the thread polls in its place, and sleeps in
//	                    the lane of the network between two polls
//	the next call       the application polls itself, and the thread sleeps until the next
//	                    alarm: calls that poll or find their message put it off, so that the
//	                    thread does not wake up. A program that only starts short sends does
//	                    neither.
//
// Software devices need somebody who acks, retransmits and answers while the application
// computes (rdma.Attr.Served). Shared memory needs no thread: it is left out unless
// Config.Async asks for it or a window is open, because its progress is copying, which takes
// the application's core. It wakes the thread for solicited events alone, so there
// leave arms the device instead of the alarm.
//
// The thread borrows the lock (lock.go), so the application's goroutine stays the lock's
// owner. It never polls while a caller drives (wait.go).

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
)

// progressThread is the state of a rank's progress thread.
type progressThread struct {
	engine *Engine
	lane   *lane // in which it sleeps: the network's, or home
	alarm  alarm
	stats  ProgressStats
	stop   atomic.Bool
	done   chan struct{} // closed when the thread exits

	deadline atomic.Int64 // when the alarm is due, by Engine.clock; 0: it is off
	polled   bool         // the application has polled since the alarm was set
	soon     bool         // the alarm is for awaySoon, and a call that waits turns it off
	returns  int          // how often in a row that has happened since something was started
	armed    bool         // leave has armed the lane
	notified atomic.Bool  // the application has started an operation a moment ago

	large   []Op // pending large operations, and some that have completed
	windows int  // open windows; peers may send requests to them at any time (onesided.go)

	serving atomic.Bool // it polls for the application; written with the lock held
	seen    uint64      // Engine.calls at its last round
	naps    int         // rounds in a row without the lock, or without progress
	helping bool        // a goroutine waits in home (helpHome)
}

// ProgressStats counts what a progress thread did.
type ProgressStats struct {
	Duties uint64 // times the thread began to poll for the application
	Wakes  uint64 // times the thread polled
	Served uint64 // completions and messages the thread handled
}

const (
	// awaySoon is the time after a call until the thread polls for an application that has
	// left something under way. Programs often start several operations in a row, or wait at
	// once; transfers of the kernel go on meanwhile.
	awaySoon = 50 * time.Microsecond
	// awayUrgent is the same while a device needs polls (rdma.Caps.Urgent): a burst of messages
	// that it sends together takes as long.
	awayUrgent = 200 * time.Microsecond
	// awayWindow is the same while only a window is open, or the application has come back in
	// time more than soonReturns times: it leaves a receive posted and calls.
	awayWindow  = 500 * time.Microsecond
	soonReturns = 4
	// awayLater is the same if nothing is under way: acks may be due, and peers may send or
	// connect. A peer probes meanwhile, which costs a few datagrams; with less time, the
	// threads of ranks that wait for their core would wake up.
	awayLater = 10 * time.Millisecond
	// arrivalPause is the time until the next poll for an application with nothing under way
	// if this one has found messages: nobody waits for them, and a wake-up for each costs as
	// much as receiving it. Acks of datagrams are late by as much, which a window outlasts.
	arrivalPause = time.Millisecond
)

// longEager is the length from which the thread makes progress for an eager message too.
const longEager = 32 << 10

// startThread starts the progress thread, if it has not been started.
func (e *Held) startThread() {
	if e.thread != nil {
		return
	}
	t := &progressThread{engine: e.engine, lane: &e.home, done: make(chan struct{})}
	for _, d := range e.lanes {
		if d.attr.Served {
			t.lane = d
		}
	}
	if !t.lane.solicits() {
		t.alarm.open(e.cfg.InProcess)
		if t.lane.notify != nil && t.alarm.rung == nil {
			t.lane.file = t.lane.notify.File()
		}
	}
	e.thread, e.leaves = t, true
	go t.run()
}

// StopThread stops the progress thread, if any, and waits until it has left the
// device.
func (r *Engine) StopThread() {
	t := r.held.thread
	if t == nil {
		return
	}
	e := r.lock()
	stopped := t.stop.Swap(true)
	e.unlock()
	if !stopped {
		t.wake()
		<-t.done
		if home := r.held.lanes[0]; t.helping {
			home.cq.Wake()
			home.goroutines.Wait()
		}
		if !t.lane.solicits() {
			t.alarm.close()
		}
	}
}

// wake ends a sleep of the thread.
func (t *progressThread) wake() {
	if t.lane.solicits() {
		t.lane.cq.Wake()
	} else {
		t.alarm.signal()
	}
}

// unlockStarted ends a call that has started an operation.
func (e *Held) unlockStarted(x *p2p.Xfer) {
	if len(e.links.connecting) > 0 {
		e.openAll()
	}
	if e.thread != nil {
		e.trackLarge(x)
	}
	e.unlock()
}

// trackLarge records a large operation that the progress thread can make progress for.
func (e *Held) trackLarge(x *p2p.Xfer) {
	t := e.thread
	if n := len(x.Buf); x.Done() || n <= irecvPolls || n < longEager && x.Link != nil && !x.Link.Rendezvous(n) {
		return
	}
	if !e.cfg.Async && (!t.lane.attr.Served || x.Link != nil && x.Link.Dev != t.lane.number) {
		return
	}
	if len(t.large) == cap(t.large) {
		t.large = slices.DeleteFunc(t.large, Op.ended)
		if len(t.large) > cap(t.large)/2 {
			t.large = slices.Grow(t.large, 2*len(t.large))
		}
	}
	t.large = append(t.large, Op{x, x.Handle()})
	t.notified.Store(true)
	e.noteStart()
}

// noteStart records that something was started that the progress thread should take care of.
func (e *Held) noteStart() {
	if e.thread != nil {
		e.thread.returns = 0
		e.leaves = true
	}
}

// ended reports whether an operation has completed. Its Xfer may be in use for another
// operation by now.
func (o Op) ended() bool { return o.stale() || o.x.Done() }

// awayTime returns how long after a call the thread acts for the application, 0 if it need not.
func (e *Held) awayTime() time.Duration {
	t := e.thread
	for n := len(t.large); n > 0; n-- { // the newest is the most likely to be pending
		if !t.large[n-1].ended() {
			t.large = t.large[:n]
			return awaySoon
		}
	}
	t.large = t.large[:0]
	switch {
	case len(e.colls.active) > 0 && (e.cfg.Async || t.lane.attr.Served):
		return awaySoon
	case t.lane.caps.Urgent != nil && t.lane.caps.Urgent():
		return awayUrgent
	case t.windows > 0:
		return awayWindow
	case t.lane.attr.Served:
		return awayLater
	}
	return 0
}

// leave ends a call after which the progress thread may have to act. It releases the lock.
func (e *Held) leave() {
	t := e.thread
	e.calls++
	if e.waits.any() {
		e.mu.unlock()
		return // the last of them leaves
	}
	e.leaves = false
	wake := false
	if !t.stop.Load() {
		wake = e.setAlarm()
	}
	e.mu.unlock()
	if wake {
		t.wake() // after the lock is free: the thread would have to wait for it
	}
}

// setAlarm sets the alarm for an application that leaves, and reports whether the thread
// must be woken at once.
func (e *Held) setAlarm() (wake bool) {
	t := e.thread
	after := e.awayTime()
	if h := &e.home; after > 0 && after < awayLater && h.solicits() && (t.lane == h || t.helping) {
		t.armed = true
		wake = h.notify.Arm(h.event, inactiveWait) <= 0 || t.lane == h && len(e.lanes) > 1 || len(e.links.blocked) > 0
	}
	if t.lane.solicits() {
		return wake
	}
	if after == 0 {
		return false
	}
	if after == awaySoon && t.returns > soonReturns {
		after = awayWindow
	}
	now := e.clock()
	if d := time.Duration(t.deadline.Load()); d == 0 || d > now+after || d < now+after/2 && t.polled {
		e.startAlarm(now, after)
	}
	return wake
}

// startAlarm makes the alarm due some time after now.
func (e *Held) startAlarm(now, after time.Duration) {
	t := e.thread
	t.deadline.Store(int64(now + after))
	t.soon, t.polled = after == awaySoon, false
	t.alarm.set(after)
}

// enter begins a wait: the caller makes progress itself.
func (e *Held) enter() {
	t := e.thread
	if t.polled = true; t.soon {
		t.returns++
		e.alarmOff()
	}
	if t.serving.Load() && !t.lane.solicits() {
		e.endServing()
		e.leaves = true
	}
	if t.armed {
		t.armed = false
		e.leaves = true
		e.home.notify.Disarm()
	}
}

// putOff puts the alarm off at the end of a call that has found its message: the thread has
// polled for an application that receives, and will poll itself if there is no message.
func (e *Held) putOff() {
	if t := e.thread; t != nil && !t.polled {
		t.polled = true
		e.leaves = true
	}
}

// alarmOff turns the alarm off until the end of the call.
func (e *Held) alarmOff() {
	if t := e.thread; t != nil && t.deadline.Load() != 0 {
		t.deadline.Store(0)
		t.soon = false
		t.alarm.set(0)
		e.leaves = true
	}
}

// poke makes a goroutine that sleeps poll: something has happened that no device reports.
func (e *Held) poke() {
	if e.waits.parked {
		e.home.cq.Wake()
	}
	if t := e.thread; t != nil && t.serving.Load() && !t.stop.Load() {
		t.wake()
	}
}

// run is the body of the progress thread. It keeps an OS thread of its own with a
// short time slice, because such a thread wakes up within microseconds while another thread
// of the process computes.
func (t *progressThread) run() {
	s := &t.engine.held.setup
	defer close(t.done)
	if !s.cfg.InProcess {
		runtime.LockOSThread() // never unlocked: the thread exits with the goroutine
		nameThread()
		shortSlice()
	}
	for !t.stop.Load() {
		if t.lane.solicits() {
			_ = t.lane.notify.WaitArmed(inactiveWait)
			if t.notified.Swap(false) {
				t.nap(notifiedNap)
			}
			t.serve()
			continue
		}
		switch d := t.deadline.Load(); {
		case t.lane.waiting.Load():
			t.waitForHome(s.lanes[0])
		case d != 0 && int64(s.clock()) >= d:
			t.serve()
		default:
			t.alarm.sleep()
		}
	}
}

// inactiveWait bounds a sleep that another goroutine ends.
const inactiveWait = time.Hour

// waitForHome sleeps in the lane of the network while a driver is parked in home, and wakes it.
// It clears waiting before that, so that a driver that read the old value does not stay
// asleep.
func (t *progressThread) waitForHome(home *lane) {
	d := t.lane
	t.alarm.sleepIn(d, time.Duration(d.limit.Load()))
	d.waiting.Store(false)
	d.notify.Disarm()
	home.cq.Wake()
}

// helpHome makes shared memory wake a thread that sleeps in the network.
func (e *Held) helpHome() {
	t := e.thread
	if t.helping || t.lane == &e.home || !e.home.solicits() {
		return
	}
	t.helping = true
	if !e.cfg.InProcess {
		// It keeps its P for some milliseconds of a sleep, and the thread that of its own:
		// without one more, the rank would wait for either in each of its own sleeps.
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
	e.home.goroutines.Go(func() {
		for !t.stop.Load() {
			_ = e.home.notify.WaitArmed(inactiveWait)
			if !t.stop.Load() {
				t.deadline.Store(1)
				t.alarm.signal()
			}
		}
	})
}
