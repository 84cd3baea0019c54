package soft

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Background progress: a goroutine services the device while the application computes. The
// device acts as its own adapter: peers write to its memory and read from it, and lost data
// is sent again, whether or not the application polls.
//
// The goroutine sleeps on the source and on the device's timers. While the application
// polls or waits, it makes progress itself, with less latency than waking a goroutine. So
// the goroutine only checks now and then whether the application keeps calling, and goes to
// the source only when it does not. While the application waits, the goroutine sleeps too.
//
// It is for those who use a device alone. An owner that knows when the program computes
// makes progress itself, for all its devices (rdma.Attr.Served).

const (
	// callCheck is the time between two reads of the call counter.
	callCheck = 20 * time.Microsecond
	// callPause is the time for which a calling application is left alone.
	callPause = 4 * time.Millisecond
)

// Thread is the progress thread of a device.
type Thread struct {
	Disabled bool // it is never started
	// Timers means that a call of the application may start a timer, of which the sleeping
	// goroutine must be told. That costs one system call after a pause, and nothing while
	// the application keeps calling.
	Timers bool

	started bool
	ended   chan struct{} // closed when the goroutine has returned
	waker   waker
	asleep  bool // the goroutine sleeps and will not notice new calls
	// The goroutine reads these without the lock. A polling application holds the lock
	// most of the time, and a contended unlock is expensive.
	calls   atomic.Uint32 // by the application so far
	stopped atomic.Bool
}

// StartThread starts the progress thread, unless it was started before or is disabled.
func (d *Device) StartThread() error {
	t := &d.Thread
	if t.started || t.Disabled {
		return nil
	}
	if err := t.waker.open(); err != nil {
		return fmt.Errorf("%s: open the wake-up descriptor of the progress thread: %w", d.name, err)
	}
	t.started, t.ended = true, make(chan struct{})
	go d.runThread()
	return nil
}

// Started reports whether the progress thread was started.
func (t *Thread) Started() bool { return t.started }

func (t *Thread) countCall() {
	t.calls.Store(t.calls.Load() + 1)
	if t.asleep {
		t.asleep = false
		t.waker.signal()
	}
}

// runThread is the goroutine. It returns when the device is closed.
func (d *Device) runThread() {
	t := &d.Thread
	defer close(t.ended)
	defer t.waker.close()
	for {
		before := t.calls.Load()
		time.Sleep(callCheck)
		seen := t.calls.Load()
		if t.stopped.Load() {
			return
		}
		if seen == before {
			for d.serve(seen) {
			}
		}
		time.Sleep(callPause) // the application calls
	}
}

// serve sleeps until there is work and does it. It returns false if the application is
// back or the device is closed.
func (d *Device) serve(seen uint32) (away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.back(seen) {
		return false
	}
	if d.waiting > 0 {
		d.rest(nil, Forever)
	} else if limit := d.hooks.Sleep(Forever); limit > 0 {
		d.rest(&d.source, limit)
		d.hooks.Awake()
	}
	if d.back(seen) || d.waiting > 0 {
		return false
	}
	if pause := d.hooks.Progress(); pause > 0 {
		d.mu.Unlock()
		time.Sleep(pause)
		d.mu.Lock()
	}
	return true
}

// rest lets the goroutine sleep, without the lock.
func (d *Device) rest(s *source, limit time.Duration) {
	t := &d.Thread
	t.asleep = s == nil || t.Timers
	d.mu.Unlock()
	_ = t.waker.sleep(s, limit) // fails only by a signal
	d.mu.Lock()
	t.asleep = false
}

// back reports whether background progress must end.
func (d *Device) back(seen uint32) bool { return d.Closed || d.Thread.calls.Load() != seen }

// MarkMoved makes the next wait for each completion queue return at once: the progress
// thread did something that a Poll may report, or that makes room for a post.
func (d *Device) MarkMoved() {
	for _, w := range d.queues {
		w.moved = true
	}
}

// stop ends the goroutine of a closed device and waits for it. The lock is not held.
func (t *Thread) stop() {
	t.stopped.Store(true)
	if t.started {
		t.waker.signal()
		<-t.ended
	}
}
