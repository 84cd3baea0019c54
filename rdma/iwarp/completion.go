//go:build linux

package iwarp

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// Completion queues. Poll drives the sockets of the queue pairs that complete here, then
// returns the completions. sleep.go implements waiting.

type completionQueue struct {
	dev    *device
	pairs  []*queuePair
	ring   []completion // ring buffer of count entries from head
	head   int
	count  int
	lent   []lentBuffer // by the last Poll
	moved  bool         // by the progress thread, since the last Poll
	closed bool
	sleep  sleep

	polling bool // this queue's Poll is driving the sockets
}

// completion is a completion that was not polled yet.
type completion struct {
	rdma.Completion
	loan lentBuffer
}

// fewSockets is the number of sockets up to which checking each one is less expensive than
// asking the kernel which of them are ready.
const fewSockets = 4

func (d *device) NewCQ(depth int) (rdma.CQ, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, rdma.ErrClosed
	}
	c := &completionQueue{dev: d, ring: make([]completion, 64)}
	var err error
	if c.sleep.epoll, c.sleep.wake, err = newSleep(); err != nil {
		return nil, fmt.Errorf("iwarp: create the epoll instance of a completion queue: %w", err)
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
	c.dev.progressThread.notePoll()
	if c.count < len(out) || c.count == 0 {
		c.polling = true
		c.progress()
		c.polling = false
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

// progress drives the sockets.
func (c *completionQueue) progress() {
	if len(c.pairs) <= fewSockets {
		for _, q := range c.pairs {
			q.progress()
		}
		return
	}
	var ready [16]unix.EpollEvent
	n, _ := unix.EpollWait(c.sleep.epoll, ready[:], 0) // the next Wait reports an error
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

// push adds a completion. A goroutine that sleeps here while another drives the socket is
// woken: a queue pair may have two completion queues.
func (c *completionQueue) push(one completion) {
	if c.closed {
		one.loan.end()
		return
	}
	if c.sleep.sleepers > 0 && c.count == 0 && !c.polling {
		c.Wake()
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
	c.sleep.end()
	c.dev.cqs = slices.DeleteFunc(c.dev.cqs, func(other *completionQueue) bool { return other == c })
}
