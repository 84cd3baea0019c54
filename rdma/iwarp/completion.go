//go:build linux

package iwarp

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// Completion queues. Poll moves the sockets of the queue pairs that complete here,
// then hands out what has come. Wait sleeps on those sockets and on an event that
// Wake sets.

var _ rdma.ArmedCQ = (*completionQueue)(nil)

type completionQueue struct {
	dev    *device
	pairs  []*queuePair
	ring   []completion // a ring of count from head
	head   int
	count  int
	lent   []lentBuffer // by the last Poll
	epoll  int
	moved  bool // by the attendant, since the last Poll
	closed bool

	wakeMu  sync.Mutex // Wake may be called at any time
	wake    int
	wakeEnd bool
}

// completion is one that was not polled yet.
type completion struct {
	rdma.Completion
	loan lentBuffer
}

// fewSockets is the number of sockets up to which looking at each is cheaper than
// asking which of them has something.
const fewSockets = 4

func (d *device) NewCQ(depth int) (rdma.CQ, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, rdma.ErrClosed
	}
	c := &completionQueue{dev: d, ring: make([]completion, 64)}
	var err error
	if c.epoll, c.wake, err = newSleep(); err != nil {
		return nil, fmt.Errorf("iwarp: make what a completion queue sleeps on: %w", err)
	}
	d.cqs = append(d.cqs, c)
	return c, nil
}

func (c *completionQueue) Poll(out []rdma.Completion) int {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	if c.closed {
		return 0
	}
	for _, loan := range c.lent {
		loan.end()
	}
	c.lent = c.lent[:0]
	c.moved = false
	c.dev.attendant.polls++
	if c.count < len(out) || c.count == 0 {
		c.progress()
	}
	n := min(len(out), c.count)
	for i := range n {
		one := &c.ring[c.head]
		out[i] = one.Completion
		if one.loan.queue != nil {
			c.lent = append(c.lent, one.loan)
		}
		*one = completion{}
		c.head = (c.head + 1) & (len(c.ring) - 1)
	}
	c.count -= n
	return n
}

// progress moves the sockets.
func (c *completionQueue) progress() {
	if len(c.pairs) <= fewSockets {
		for _, q := range c.pairs {
			q.progress()
		}
		return
	}
	var ready [16]unix.EpollEvent
	n, _ := unix.EpollWait(c.epoll, ready[:], 0) // an error is one of the next Wait
	for i := range ready[:max(n, 0)] {
		if q := c.dev.socketOf(&ready[i]); q != nil {
			q.progress()
		}
	}
	for _, q := range c.pairs {
		if q.runnable() {
			q.progress()
		}
	}
}

// push adds a completion.
func (c *completionQueue) push(one completion) {
	if c.closed {
		one.loan.end()
		return
	}
	if c.count == len(c.ring) {
		larger := make([]completion, 2*len(c.ring))
		for i := range c.count {
			larger[i] = c.ring[(c.head+i)&(len(c.ring)-1)]
		}
		c.ring, c.head = larger, 0
	}
	c.ring[(c.head+c.count)&(len(c.ring)-1)] = one
	c.count++
}

func (c *completionQueue) Wait(timeout time.Duration) error {
	c.dev.mu.Lock()
	closed, busy := c.closed, c.busy()
	c.dev.mu.Unlock()
	switch {
	case closed:
		return rdma.ErrClosed
	case busy || timeout <= 0:
		return nil
	}
	return c.sleep(timeout)
}

// busy tells whether Poll has something to do that no socket will tell of.
func (c *completionQueue) busy() bool {
	return c.count > 0 || c.moved || slices.ContainsFunc(c.pairs, (*queuePair).runnable)
}

// Arm gets ready for WaitArmed. What a socket has by then ends that wait at once.
func (c *completionQueue) Arm() bool {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	return !c.closed && !c.busy()
}

func (c *completionQueue) WaitArmed(timeout time.Duration) error {
	c.dev.mu.Lock()
	closed := c.closed
	c.dev.mu.Unlock()
	if closed {
		return rdma.ErrClosed
	}
	return c.sleep(timeout)
}

// sleep waits for the sockets and for Wake. The attendant stays away meanwhile: the
// sockets are looked after.
func (c *completionQueue) sleep(timeout time.Duration) error {
	a := &c.dev.attendant
	c.dev.mu.Lock()
	if c.busy() { // the attendant was faster
		c.dev.mu.Unlock()
		return nil
	}
	a.waiting++
	c.dev.mu.Unlock()
	var ready [4]unix.EpollEvent
	ms := int(min((timeout+time.Millisecond-1)/time.Millisecond, 1<<30))
	n, err := unix.EpollWait(c.epoll, ready[:], ms)
	c.dev.mu.Lock()
	a.waiting--
	a.polls++
	c.dev.mu.Unlock()
	if err != nil && err != unix.EINTR {
		return fmt.Errorf("iwarp: wait for the sockets of a completion queue: %w", err)
	}
	for _, e := range ready[:max(n, 0)] {
		if int(e.Fd) == c.wake {
			var count [8]byte
			_, _ = unix.Read(c.wake, count[:]) // it only has to be 0 again
		}
	}
	return nil
}

func (c *completionQueue) Wake() {
	c.wakeMu.Lock()
	defer c.wakeMu.Unlock()
	if !c.wakeEnd {
		stir(c.wake)
	}
}

func (c *completionQueue) Close() error {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	c.close()
	return nil
}

func (c *completionQueue) close() {
	if c.closed {
		return
	}
	c.closed = true
	c.count = 0
	c.wakeMu.Lock()
	c.wakeEnd = true
	_, _ = unix.Close(c.wake), unix.Close(c.epoll)
	c.wakeMu.Unlock()
	c.dev.cqs = slices.DeleteFunc(c.dev.cqs, func(other *completionQueue) bool { return other == c })
}
