package rail

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/pacing"
)

// Who attends to the rails while the program computes: pieces of Writes are placed, Reads
// answered, and what was under way on a rail that died goes over another, whether
// somebody polls or not. The devices below cannot do that by themselves, because to them
// a piece is a message.
//
// A goroutine sleeps on the files of all rails. While the program polls or waits, it does
// all that itself, faster than any goroutine could be woken, so this one stays out of
// its way, as package dgram's does: it looks now and then whether the program keeps
// calling (pacing.Pace), and only when it does not does it go to the rails. What comes for the program
// is copied, for who polled last may still look at what his Poll lent him.

const (
	// callCheckInterval is between two looks at whether it polls.
	callCheckInterval = 20 * time.Microsecond
)

type progressThread struct {
	disabled  bool // Config.NoThread, or rails that it cannot attend to
	started   bool
	ended     chan struct{} // closed when the goroutine is gone
	waitState waitState     // how it sleeps on the rails
	thread    pacing.Thread
	pace      pacing.Pace
	waits     bool // the program waited while it was thought to be away
	// The goroutine looks at these without the lock: who polls has it most of the time,
	// and one who waits for a lock makes giving it back dear.
	calls   atomic.Uint32 // of the program so far
	stopped atomic.Bool
}

// attendable reports whether a goroutine can sleep on a rail, and poll beside the program.
func canDrive(r *Rail) (bool, error) {
	cq, err := r.Device.NewCQ(0)
	if err != nil {
		return false, fmt.Errorf("rail: make a completion queue on %s: %w", r.Name, err)
	}
	_, sleeps := cq.(rdma.FileCQ)
	_, beside := cq.(rdma.BesideCQ)
	return sleeps && beside, cq.Close()
}

// attend starts the goroutine, with the first queue pair. The device's lock is held.
func (d *Device) startProgress() error {
	a := &d.progressThread
	if a.started || a.disabled {
		return nil
	}
	if err := a.waitState.open(pollWaiter + 1); err != nil {
		return err
	}
	a.started, a.ended = true, make(chan struct{})
	go d.progressLoop()
	return nil
}

// called notes that the program is present. The progress thread, if it sleeps, must think again:
// what the program does now may begin a timer. That costs a system call after a pause and
// nothing while the program keeps calling.
func (d *Device) called() {
	a := &d.progressThread
	a.calls.Store(a.calls.Load() + 1)
	if a.waitState.asleep {
		a.waitState.asleep = false
		a.waitState.endSleep()
		a.waitState.signal(pollWaiter)
	}
}

// progressLoop is the goroutine. It ends when the device is closed.
func (d *Device) progressLoop() {
	a := &d.progressThread
	defer close(a.ended)
	for {
		before := a.calls.Load()
		a.thread.Pause(callCheckInterval)
		seen := a.calls.Load()
		switch {
		case a.stopped.Load():
			return
		case seen != before: // it keeps calling
			a.thread.Pause(a.pace.Pause())
		default:
			a.waits = false
			a.pace.Away(time.Now())
			a.thread.Enter()
			for d.progressOnce(seen) {
			}
			a.thread.Leave()
			if a.pace.Back(time.Now(), a.waits) {
				a.thread.Pause(a.pace.Pause())
			}
		}
	}
}

// progressOnce sleeps until there is something to do and does it. It is false if the
// program has come back, or the device is closed.
func (d *Device) progressOnce(seen uint32) (away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.back(seen) {
		return false
	}
	r := &d.progressThread.waitState
	limit := d.untilDue()
	switch {
	case d.parked > 0:
		r.asleep, d.progressThread.waits = true, true
		d.mu.Unlock()
		r.waitWakeup(pollWaiter)
		d.mu.Lock()
		r.asleep = false
	case limit > 0:
		if limit = r.prepareSleep(limit); limit <= 0 {
			break
		}
		r.asleep = true
		d.mu.Unlock()
		_ = r.wait(pollWaiter, limit) // it fails only by a signal
		d.mu.Lock()
		r.asleep = false
	}
	r.endSleep()
	r.drain(pollWaiter)
	if d.back(seen) || d.parked > 0 {
		return false
	}
	d.now = d.clock()
	for _, c := range d.queues {
		c.awake() // it was armed, and nobody came to wait
	}
	for _, q := range d.pairs {
		if !q.closed {
			q.progress(batchSize, pollBeside)
		}
	}
	for _, c := range d.queues {
		c.copyBorrowed()
	}
	return true
}

// back reports whether there is no need to attend: the program is back, or the device closed.
func (d *Device) back(seen uint32) bool { return d.closed || d.progressThread.calls.Load() != seen }

// untilDue is the time until a flow must be looked after.
func (d *Device) untilDue() time.Duration {
	at := never
	for _, q := range d.pairs {
		for _, f := range q.busy {
			at = min(at, f.lookAt)
		}
	}
	if at == never {
		return never
	}
	return at - d.clock()
}

// dismiss ends the goroutine of a device that is closed and waits for it. The lock is not
// held.
func (a *progressThread) stop() error {
	if !a.started {
		return nil
	}
	a.stopped.Store(true)
	a.waitState.signal(pollWaiter)
	<-a.ended
	return a.waitState.close()
}
