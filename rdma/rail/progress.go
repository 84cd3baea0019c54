package rail

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/pacing"
)

// Background progress: a goroutine services the rails while the application computes.
// It places pieces of Writes, responds to Reads, and moves the pieces of a failed rail
// to another one. The devices below cannot do that by themselves, because to them a
// piece is a message.
//
// The goroutine sleeps on the files of all rails. While the application polls or waits,
// it makes progress itself, with less latency than waking a goroutine. So the goroutine
// only checks now and then whether the application keeps calling (pacing.Pace), as in
// package dgram. Messages for the application are copied, because it may still read
// what its last Poll lent.

const (
	// callCheckInterval is the time between two reads of the call counter.
	callCheckInterval = 20 * time.Microsecond
)

type progressThread struct {
	disabled  bool // Config.NoThread, or a rail cannot be driven in the background
	started   bool
	ended     chan struct{} // closed when the goroutine has returned
	waitState waitState     // how it sleeps on the rails
	thread    pacing.Thread
	pace      pacing.Pace
	waits     bool // the application waited while it seemed to be away
	// The goroutine reads these without the lock. A polling application holds the lock
	// most of the time, and a contended unlock is expensive.
	calls   atomic.Uint32 // calls by the application so far
	stopped atomic.Bool
}

// canDrive reports whether a goroutine can sleep on a rail, and poll it concurrently
// with the application.
func canDrive(r *Rail) (bool, error) {
	cq, err := r.Device.NewCQ(0)
	if err != nil {
		return false, fmt.Errorf("rail: make a completion queue on %s: %w", r.Name, err)
	}
	_, sleeps := cq.(rdma.FileCQ)
	_, beside := cq.(rdma.BesideCQ)
	return sleeps && beside, cq.Close()
}

// startProgress starts the goroutine, with the first queue pair. The device's lock is
// held.
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

// called records a call by the application. If the goroutine sleeps, called wakes it,
// because the call may start a timer. That costs one system call after a pause, and
// nothing while the application keeps calling.
func (d *Device) called() {
	a := &d.progressThread
	a.calls.Store(a.calls.Load() + 1)
	if a.waitState.asleep {
		a.waitState.asleep = false
		a.waitState.endSleep()
		a.waitState.signal(pollWaiter)
	}
}

// progressLoop is the goroutine. It returns when the device is closed.
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
		case seen != before: // the application keeps calling
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

// progressOnce sleeps until there is work and does it. It returns false if the
// application is back or the device is closed.
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
		_ = r.wait(pollWaiter, limit) // fails only by a signal
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

// back reports whether background progress must end: the application is back or the
// device is closed.
func (d *Device) back(seen uint32) bool { return d.closed || d.progressThread.calls.Load() != seen }

// untilDue returns the time until a flow must be serviced.
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

// stop ends the goroutine of a closed device and waits for it. The lock is not held.
func (a *progressThread) stop() error {
	if !a.started {
		return nil
	}
	a.stopped.Store(true)
	a.waitState.signal(pollWaiter)
	<-a.ended
	return a.waitState.close()
}
