package engine

// Progress while the application computes. A rank's deputy is a thread that blocking
// in the library when the application leaves it with a large operation under way,
// sleeps in the device, and wakes for what must be answered: a request to send, a
// place to write to, a copy that only this rank can go on with. It drives in the
// sense of wait.go, so there is never a question of who polls:
//
//	Isend, Irecv of a large message  → leave: the deputy drives
//	a call that waits                → takeOver: the caller drives, the deputy sleeps on
//	the end of that wait             → resumeThread, if something large is still under way
//
// Nothing else profits: short messages lie in the receiver's memory before it asks.
// So without large operations the deputy is not on duty, nobody has to wake it, and
// calls take the same road as without one: they find no driver.
//
// The deputy borrows the lock (lock.go), so that the application's goroutine blocking
// its owner. A large copy goes piece by piece, and between two pieces the deputy
// makes room for whoever wants the lock.

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/rdma"
)

type progressThread struct {
	waiter p2p.Waiter // stands for it where the driver is named
	large  []Op       // large operations that were left behind, and some that have ended
	stats  ProgressStats

	active   atomic.Bool // the same as e.threadDrives, for a look without the lock
	notified atomic.Bool // the application has left it something to go on with
	stop     atomic.Bool
	wake     chan struct{} // where it waits off duty, if it cannot do so in the device
	done     chan struct{} // closed at its end
	failures int           // attempts in a row that got nowhere
	// windows is how many of the rank's windows others may send requests to, at any
	// time (onesided.go).
	windows int
}

// ProgressStats counts what a deputy did.
type ProgressStats struct {
	Duties uint64 // times the application left it something
	Wakes  uint64 // times it came to look
	Served uint64 // completions and messages that it took
}

// startThread starts the deputy.
func (e *Engine) startThread() {
	d := &progressThread{wake: make(chan struct{}, 1), done: make(chan struct{})}
	e.thread = d
	go e.runThread()
}

// stopThread ends it, if that has not been done, and waits until it has left the
// device.
func (e *Engine) stopThread() {
	d := e.thread
	if d == nil {
		return
	}
	e.lock()
	e.takeOver()
	d.stop.Store(true)
	e.unlock()
	e.wakeThread()
	<-d.done
}

// threadDrives reports whether the deputy drives.
func (e *Engine) threadDrives() bool { return e.thread != nil && e.driver == &e.thread.waiter }

// undriven reports whether no caller drives.
func (e *Engine) undriven() bool { return e.driver == nil || e.threadDrives() }

// leave is the end of a call that has started an operation. It unlocks, and calls the
// deputy after that: it would find the lock taken, and wait for the end of the
// caller's turn on the core.
func (e *Engine) unlockStarted(x *p2p.Xfer) {
	call := e.thread != nil && e.trackLarge(x)
	e.unlock()
	if call {
		e.thread.notified.Store(true)
		e.wakeThread()
	}
}

// trackLarge puts the deputy on duty for a large operation, and reports whether it must
// be called.
func (e *Engine) trackLarge(x *p2p.Xfer) bool {
	if !e.cfg.Async || x.Done() || len(x.Buf) <= irecvPolls || x.Link != nil && !x.Link.Rendezvous(len(x.Buf)) {
		return false
	}
	d := e.thread
	if len(d.large) == cap(d.large) {
		d.large = slices.DeleteFunc(d.large, Op.ended)
		if len(d.large) > cap(d.large)/2 {
			d.large = slices.Grow(d.large, 2*len(d.large))
		}
	}
	d.large = append(d.large, Op{x, x.Handle()})
	return e.activateThread()
}

// over reports whether an operation has ended, and perhaps serves as another by now.
func (o Op) ended() bool { return o.stale() || o.x.Done() }

// pending reports whether something large is under way, or a window open. The newest is looked at first:
// it is the likeliest.
func (d *progressThread) pending() bool {
	if d.windows > 0 {
		return true
	}
	for n := len(d.large); n > 0; n-- {
		if !d.large[n-1].ended() {
			d.large = d.large[:n]
			return true
		}
	}
	d.large = d.large[:0]
	return false
}

// resumeThread is the end of a wait: the deputy takes over if something is left.
func (e *Engine) resumeThread() {
	if e.thread != nil && e.activateThread() {
		e.wakeThread()
	}
}

// activateThread lets the deputy drive if nobody else does and something is left. The
// device wakes it; it must be called only for what is there already, and then it
// tells.
func (e *Engine) activateThread() (call bool) {
	d := e.thread
	if !e.undriven() || e.sleepers != nil || d.stop.Load() {
		return false
	}
	if !d.pending() {
		e.takeOver()
		return false
	}
	if !e.threadDrives() {
		e.driver = &d.waiter
		d.active.Store(true)
		d.stats.Duties++
	}
	s, ok := e.home.cq.(rdma.SolicitedCQ)
	return !ok || len(e.lanes) > 1 || len(e.blocked) > 0 || !s.ArmSolicited()
}

// lockAndResumeThread is resumeThread for a caller without the lock.
func (e *Engine) lockAndResumeThread() {
	if e.thread != nil {
		e.lock()
		e.resumeThread()
		e.unlock()
	}
}

// takeOver lets the caller drive.
func (e *Engine) takeOver() {
	if e.threadDrives() {
		e.deactivateThread()
	}
}

func (e *Engine) deactivateThread() {
	e.driver = nil
	e.thread.active.Store(false)
	if s, ok := e.home.cq.(rdma.SolicitedCQ); ok {
		s.Disarm()
	}
}

// wakeThread wakes the deputy, wherever it sleeps.
func (e *Engine) wakeThread() {
	e.home.cq.Wake()
	select {
	case e.thread.wake <- struct{}{}:
	default:
	}
}

// runThread is the deputy. It keeps a thread of its own, because that is what wakes up
// within microseconds while another thread of the process computes.
func (e *Engine) runThread() {
	d := e.thread
	defer close(d.done)
	if !e.cfg.InProcess {
		runtime.LockOSThread() // for good: the thread ends with us
		shortSlice()
	}
	for !d.stop.Load() {
		switch {
		case d.notified.Swap(false):
			e.nap(notifiedNap)
		case !d.active.Load():
			d.failures = 0
			e.waitInactive()
		case e.mu.borrow():
			e.setBeside(true)
			timeout := e.driveThread()
			e.setBeside(false)
			e.mu.giveBack()
			e.waitActive(timeout)
		default:
			e.waitActive(0) // the application is in the library, in a short call or to takeOver us
		}
	}
}

// setBeside tells the device who calls.
func (e *Engine) setBeside(on bool) {
	if s, ok := e.home.cq.(rdma.SolicitedCQ); ok {
		s.Beside(on)
	}
}

// inactiveWait is how long a deputy sleeps that has nothing to look after: until called.
const inactiveWait = time.Hour

func (e *Engine) waitInactive() {
	d := e.thread
	if s, ok := e.home.cq.(rdma.SolicitedCQ); ok {
		_ = s.WaitSolicited(inactiveWait)
		return
	}
	<-d.wake
}

// waitActive sleeps in the device, or, with a timeout of 0, gives way to others.
func (e *Engine) waitActive(timeout time.Duration) {
	d := e.thread
	if timeout > 0 {
		d.failures = 0
		switch cq := e.home.cq.(type) {
		case rdma.SolicitedCQ:
			_ = cq.WaitSolicited(timeout)
		case rdma.ArmedCQ:
			_ = cq.WaitArmed(timeout)
		default:
			time.Sleep(min(timeout, unwatchedPark))
		}
		return
	}
	d.failures++
	e.nap(min(shortNap<<min(d.failures/8, 4), longNap))
}

// nap pauses the deputy. It does not yield: a thread that does lets all others have
// their whole turn, which takes milliseconds.
func (e *Engine) nap(d time.Duration) {
	if e.cfg.InProcess {
		runtime.Gosched()
		time.Sleep(d)
		return
	}
	napThread(d)
}

const (
	// idleRounds is how many polls in a row without result are made before the
	// clock is asked whether anything moves: a piece of a copy is no completion.
	idleRounds = 32
	// roundFloor is what a poll takes that moves a piece, at least.
	roundFloor = time.Microsecond
	// notifiedNap is how long the application may make further calls before the deputy
	// goes on with what it has left: there are often several, the next one may be a
	// wait, and both may have to share a core.
	notifiedNap = 30 * time.Microsecond
	// shortNap and longNap are the pause of a deputy that finds the lock taken or can
	// neither go on nor sleep, first and after a while.
	shortNap = 5 * time.Microsecond
	longNap  = 50 * time.Microsecond
)

// attend polls until there is nothing to do, and gives for how long the deputy may
// sleep then; 0 if somebody wants the lock or nothing moves. The lock is borrowed.
func (e *Engine) driveThread() time.Duration {
	d := e.thread
	d.stats.Wakes++
	start, armed := time.Now(), false
	for idle := 1; e.threadDrives(); idle++ {
		n := e.poll()
		d.stats.Served += uint64(n)
		if n > 0 {
			idle, d.failures = 0, 0
			start = time.Now()
		}
		if !d.pending() {
			e.deactivateThread()
			break
		}
		// The poll after the last one gives peers back the room of what it showed, so
		// there is one more before the deputy sleeps.
		timeout := time.Duration(0)
		if n == 0 {
			timeout = e.armThread()
		}
		if timeout > 0 && armed {
			e.checkDeaths()
			return timeout
		}
		armed = timeout > 0
		if e.mu.wanted.Load() != 0 {
			return 0
		}
		if idle == idleRounds {
			if time.Since(start) < idleRounds*roundFloor {
				return 0
			}
			idle, d.failures = 0, 0
			start = time.Now()
		}
	}
	return 0
}

// armThread gets the devices ready to wake the deputy and gives how long it may sleep;
// 0 if there is something to do at once.
func (e *Engine) armThread() time.Duration {
	armed := true
	switch cq := e.home.cq.(type) {
	case rdma.SolicitedCQ:
		armed = cq.ArmSolicited()
	case rdma.ArmedCQ:
		armed = cq.Arm()
	}
	if !armed {
		return 0
	}
	timeout := parkIdle
	if len(e.blocked) > 0 {
		timeout = parkBlocked
	}
	if len(e.lanes) > 1 {
		timeout = e.armLanes(timeout)
	}
	return timeout
}

// ProgressStats is what the deputy has done; nothing without one.
func (e *Engine) ProgressStats() (s ProgressStats) {
	e.lock()
	defer e.unlock()
	if e.thread != nil {
		s = e.thread.stats
	}
	return s
}
