package dgram

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Waiting. Two goroutines may wait at a time: the one that polls, in Wait or asleep on
// File, and one in WaitArmed while the first computes. Both sleep until a datagram
// arrives or the next timer of the device is due, because lost datagrams must be
// retransmitted even if nothing arrives. Meanwhile the progress thread (progress.go)
// sleeps.

var (
	_ rdma.ArmedCQ = (*queue)(nil)
	_ rdma.FileCQ  = (*queue)(nil)
)

type waiter int

const (
	pollWaiter waiter = iota
	armedWaiter
	numWaiters
)

const (
	// sendRetryDelay is how long to wait when the kernel accepts no more datagrams.
	sendRetryDelay = 100 * time.Microsecond
	// armedWaitMax is the longest sleep in WaitArmed: new timers do not wake it, or
	// every send would.
	armedWaitMax = 50 * time.Millisecond
	// noEventsDelay is the longest sleep on a File that does not report datagrams.
	noEventsDelay = time.Millisecond
)

// waitState is how a completion queue is waited for.
type waitState struct {
	wakeups        [numWaiters]wakeup
	parked         int           // current waiters
	asleep         bool          // between Sleep and Awake
	noSocketEvents bool          // the kernel does not let File report datagrams
	armedUntil     time.Duration // when a timer of the device was due at the time of Arm
}

// Wait blocks until a datagram arrives or a timer of the device is due.
func (c *queue) Wait(timeout time.Duration) error {
	d := c.dev
	d.mu.Lock()
	if c.closed {
		d.mu.Unlock()
		return rdma.ErrClosed
	}
	timeout = c.untilDue(timeout)
	if timeout <= 0 {
		d.mu.Unlock()
		return nil
	}
	c.park()
	d.mu.Unlock()
	err := c.wakeups[pollWaiter].wait(d.socket, timeout)
	d.mu.Lock()
	c.unpark()
	d.mu.Unlock()
	if err != nil {
		return fmt.Errorf("dgram: wait for datagrams on %v: %w", d.socket.local, err)
	}
	return nil
}

// untilDue returns the time until Poll has work in any case, at most limit.
func (c *queue) untilDue(limit time.Duration) time.Duration {
	at := c.due()
	if at == never {
		return limit
	}
	return min(limit, at-c.dev.clock())
}

// due returns when Poll has work if nothing arrives: now, if completions are ready.
func (c *queue) due() time.Duration {
	if c.first < len(c.ready) {
		return 0
	}
	return c.dev.due()
}

// due returns when the device has work if nothing arrives.
func (d *Device) due() time.Duration {
	if d.outbox.n > 0 {
		return min(d.wake(), d.clock()+sendRetryDelay)
	}
	return d.wake()
}

func (c *queue) park() {
	c.parked++
	c.dev.parked++
}

func (c *queue) unpark() {
	if c.closed {
		return // shut has subtracted its share
	}
	c.parked--
	c.dev.parked--
	c.dev.idlePolls = 0 // a timer may have ended the sleep
	c.dev.called()
}

// File returns a descriptor that is readable when a datagram has arrived or Wake was
// called.
func (c *queue) File() int {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	if c.closed {
		return -1
	}
	fd, watches := c.wakeups[pollWaiter].file(c.dev.socket)
	c.noSocketEvents = !watches
	return fd
}

// Sleep prepares a sleep on File and returns how long it may last.
func (c *queue) Sleep(limit time.Duration) time.Duration {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	if c.closed {
		return 0
	}
	if c.noSocketEvents {
		limit = min(limit, noEventsDelay)
	}
	if limit = max(c.untilDue(limit), 0); limit > 0 && !c.asleep {
		c.asleep = true
		c.park()
	}
	return limit
}

// Awake ends the sleep.
func (c *queue) Awake() {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	if c.closed {
		return
	}
	if c.asleep {
		c.asleep = false
		c.unpark()
	}
	c.wakeups[pollWaiter].drain()
}

// Arm prepares WaitArmed.
func (c *queue) Arm() bool {
	d := c.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.closed {
		return false
	}
	c.armedUntil = c.due()
	return c.armedUntil > d.clock() && d.socket.quiet()
}

// WaitArmed is Wait after Arm. Another goroutine may poll meanwhile.
func (c *queue) WaitArmed(timeout time.Duration) error {
	d := c.dev
	d.mu.Lock()
	if c.closed {
		d.mu.Unlock()
		return rdma.ErrClosed
	}
	if c.first < len(c.ready) { // the progress thread was faster
		d.mu.Unlock()
		return nil
	}
	c.park()
	d.mu.Unlock()
	err := c.wakeups[armedWaiter].wait(d.socket, min(timeout, armedWaitMax, c.armedUntil-d.clock()))
	d.mu.Lock()
	c.unpark()
	d.mu.Unlock()
	if err != nil {
		return fmt.Errorf("dgram: wait for datagrams on %v while another goroutine polls: %w", d.socket.local, err)
	}
	return nil
}

// Wake ends a Wait. It takes only the locks of the wakeups.
func (c *queue) Wake() { c.signal() }

func (r *waitState) signal() {
	for who := range r.wakeups {
		r.wakeups[who].signal()
	}
}

// wakeAll ends every wait.
func (d *Device) wakeAll() {
	for _, c := range d.queues {
		if c.parked > 0 {
			c.signal()
		}
	}
}

func (r *waitState) closeWakeups() {
	for who := range r.wakeups {
		r.wakeups[who].close()
	}
}
