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
	// attendLook is between two looks at whether it polls.
	attendLook = 20 * time.Microsecond
)

type attendant struct {
	banned  bool // Config.NoThread, or rails that it cannot attend to
	started bool
	ended   chan struct{} // closed when the goroutine is gone
	rest    rest          // how it sleeps on the rails
	thread  pacing.Thread
	pace    pacing.Pace
	waits   bool // the program waited while it was thought to be away
	// The goroutine looks at these without the lock: who polls has it most of the time,
	// and one who waits for a lock makes giving it back dear.
	calls     atomic.Uint32 // of the program so far
	dismissed atomic.Bool
}

// attendable reports whether a goroutine can sleep on a rail, and poll beside the program.
func attendable(r *Rail) (bool, error) {
	cq, err := r.Device.NewCQ(0)
	if err != nil {
		return false, fmt.Errorf("rail: make a completion queue on %s: %w", r.Name, err)
	}
	_, sleeps := cq.(rdma.FileCQ)
	_, beside := cq.(rdma.BesideCQ)
	return sleeps && beside, cq.Close()
}

// attend starts the goroutine, with the first queue pair. The device's lock is held.
func (d *Device) attend() error {
	a := &d.attendant
	if a.started || a.banned {
		return nil
	}
	if err := a.rest.open(whoPolls + 1); err != nil {
		return err
	}
	a.started, a.ended = true, make(chan struct{})
	go d.attendRails()
	return nil
}

// called notes that the program is present. The attendant, if it sleeps, must think again:
// what the program does now may begin a timer. That costs a system call after a pause and
// nothing while the program keeps calling.
func (d *Device) called() {
	a := &d.attendant
	a.calls.Store(a.calls.Load() + 1)
	if a.rest.asleep {
		a.rest.asleep = false
		a.rest.unsettle()
		a.rest.ring(whoPolls)
	}
}

// attendRails is the goroutine. It ends when the device is closed.
func (d *Device) attendRails() {
	a := &d.attendant
	defer close(a.ended)
	for {
		before := a.calls.Load()
		a.thread.Pause(attendLook)
		seen := a.calls.Load()
		switch {
		case a.dismissed.Load():
			return
		case seen != before: // it keeps calling
			a.thread.Pause(a.pace.Pause())
		default:
			a.waits = false
			a.pace.Away(time.Now())
			a.thread.Enter()
			for d.attendOnce(seen) {
			}
			a.thread.Leave()
			if a.pace.Back(time.Now(), a.waits) {
				a.thread.Pause(a.pace.Pause())
			}
		}
	}
}

// attendOnce sleeps until there is something to do and does it. It is false if the
// program has come back, or the device is closed.
func (d *Device) attendOnce(seen uint32) (away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.back(seen) {
		return false
	}
	r := &d.attendant.rest
	limit := d.untilDue()
	switch {
	case d.parked > 0:
		r.asleep, d.attendant.waits = true, true
		d.mu.Unlock()
		r.waitForBell(whoPolls)
		d.mu.Lock()
		r.asleep = false
	case limit > 0:
		if limit = r.settle(limit); limit <= 0 {
			break
		}
		r.asleep = true
		d.mu.Unlock()
		_ = r.wait(whoPolls, limit) // it fails only by a signal
		d.mu.Lock()
		r.asleep = false
	}
	r.unsettle()
	r.hush(whoPolls)
	if d.back(seen) || d.parked > 0 {
		return false
	}
	d.now = d.clock()
	for _, c := range d.queues {
		c.awake() // it was armed, and nobody came to wait
	}
	for _, q := range d.pairs {
		if !q.closed {
			q.progress(batchSize, askBeside)
		}
	}
	for _, c := range d.queues {
		c.keepLoose()
	}
	return true
}

// back reports whether there is no need to attend: the program is back, or the device closed.
func (d *Device) back(seen uint32) bool { return d.closed || d.attendant.calls.Load() != seen }

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
func (a *attendant) dismiss() error {
	if !a.started {
		return nil
	}
	a.dismissed.Store(true)
	a.rest.ring(whoPolls)
	<-a.ended
	return a.rest.close()
}
