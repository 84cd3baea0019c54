package dgram

import (
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// Completion queues and receive queues. Poll makes progress for the whole device,
// whichever of its completion queues is polled. A completion goes to the queue it
// belongs to.

// loan is memory that a completion refers to. The next Poll returns it.
type loan struct {
	slot *slot
	join []byte
	from *receiveQueue
}

type entry struct {
	completion rdma.Completion
	loan       loan
}

// queue is a completion queue.
type queue struct {
	dev       *Device
	ready     []entry
	first     int // index of the first entry of ready not yet returned
	lent      []loan
	beside    []loan // lent by the last PollBeside
	closed    bool
	waitState // wait.go
}

// NewCQ creates a completion queue. It grows as needed.
func (d *Device) NewCQ(depth int) (rdma.CQ, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, rdma.ErrClosed
	}
	c := &queue{dev: d, ready: make([]entry, 0, min(max(depth, 16), 256))}
	for who := range c.wakeups {
		if err := c.wakeups[who].open(); err != nil {
			c.closeWakeups()
			return nil, fmt.Errorf("dgram: open the wake-up descriptors of a completion queue: %w", err)
		}
	}
	d.queues = append(d.queues, c)
	return c, nil
}

func (c *queue) push(done rdma.Completion, l loan) {
	if c.first > 0 && len(c.ready) == cap(c.ready) {
		n := copy(c.ready, c.ready[c.first:])
		clear(c.ready[n:])
		c.ready, c.first = c.ready[:n], 0
	}
	c.ready = append(c.ready, entry{done, l})
	c.dev.shows = c.dev.polled
	if c.parked > 0 {
		c.signal() // a waiter sleeps here while another goroutine makes progress
	}
}

// Poll makes progress and returns completions.
func (c *queue) Poll(out []rdma.Completion) int {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	if c.closed {
		return 0
	}
	c.dev.called()
	c.end(&c.lent)
	c.end(&c.beside)
	c.dev.polled = true
	c.dev.progress()
	c.dev.polled = false
	return c.give(out, &c.lent)
}

// PollBeside is Poll, but keeps what the last Poll lent.
func (c *queue) PollBeside(out []rdma.Completion) int {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	if c.closed {
		return 0
	}
	c.dev.called()
	c.end(&c.beside)
	c.dev.progress()
	return c.give(out, &c.beside)
}

// end returns what was lent.
func (c *queue) end(lent *[]loan) {
	for i := range *lent {
		c.dev.giveBack(&(*lent)[i])
		(*lent)[i] = loan{}
	}
	*lent = (*lent)[:0]
}

// give moves completions to out and records what they lend.
func (c *queue) give(out []rdma.Completion, lent *[]loan) (n int) {
	for n < len(out) && c.first < len(c.ready) {
		e := &c.ready[c.first]
		out[n] = e.completion
		if e.loan.from != nil {
			*lent = append(*lent, e.loan)
		}
		*e = entry{}
		c.first++
		n++
	}
	if c.first == len(c.ready) {
		c.ready, c.first = c.ready[:0], 0
	}
	return n
}

func (d *Device) giveBack(l *loan) {
	l.from.lent--
	if l.slot != nil {
		d.store.giveBack(l.slot)
	} else {
		d.joinBuffers = append(d.joinBuffers, l.join)
	}
}

// Close closes the queue and returns what it lent.
func (c *queue) Close() error {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	c.shut()
	return nil
}

func (c *queue) shut() {
	if c.closed {
		return
	}
	c.closed = true
	c.closeWakeups()
	c.dev.parked -= c.parked
	c.dev.queues = slices.DeleteFunc(c.dev.queues, func(other *queue) bool { return other == c })
	c.end(&c.lent)
	c.end(&c.beside)
	for i := range c.ready[c.first:] {
		if l := &c.ready[c.first+i].loan; l.from != nil {
			c.dev.giveBack(l)
		}
	}
	c.lent, c.beside, c.ready, c.first = nil, nil, nil, 0
}

const (
	receiveDepth = 1024 // default maximum of posted buffers
	lendDepth    = 256  // default maximum of lent messages
)

// receiveQueue is a receive queue, shared or of one queue pair.
type receiveQueue struct {
	dev      *Device
	lends    bool
	depth    int
	lent     int // messages lent and not returned
	lowWater int
	warned   bool
	posted   []rdma.RecvWR // a ring
	first    int
	n        int
	closed   bool
}

var _ rdma.SRQ = (*receiveQueue)(nil)

// NewSRQ creates a shared receive queue.
func (d *Device) NewSRQ(c rdma.SRQConfig) (rdma.SRQ, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, rdma.ErrClosed
	}
	return newReceiveQueue(d, c), nil
}

func newReceiveQueue(d *Device, c rdma.SRQConfig) *receiveQueue {
	r := &receiveQueue{dev: d, lends: c.Lend, depth: c.Depth, lowWater: c.LowWater, warned: true}
	if r.lends {
		if r.depth <= 0 || r.depth > maxSlots/2 {
			r.depth = lendDepth
		}
		return r
	}
	if r.depth <= 0 {
		r.depth = receiveDepth
	}
	r.posted = make([]rdma.RecvWR, r.depth)
	return r
}

// PostRecv posts buffers.
func (r *receiveQueue) PostRecv(wrs []rdma.RecvWR) (n int, err error) {
	r.dev.mu.Lock()
	defer r.dev.mu.Unlock()
	switch {
	case r.closed || r.dev.closed:
		return 0, rdma.ErrClosed
	case r.lends && len(wrs) > 0:
		return 0, rdma.ErrUnsupported
	}
	for ; n < len(wrs) && r.n < r.depth; n++ {
		if err := r.dev.checkLocal("receive buffer", wrs[n].Body, wrs[n].LKey); err != nil {
			return n, err
		}
		r.posted[(r.first+r.n)%r.depth] = wrs[n]
		r.n++
	}
	r.dev.serviceAt = 0 // a message may wait for a buffer
	if r.n >= r.lowWater {
		r.warned = false
	}
	if r.dev.parked > 0 {
		r.dev.wakeAll() // the same
	}
	if n < len(wrs) {
		return n, rdma.ErrAgain
	}
	return n, nil
}

// mayLend reports whether another message may be lent.
func (r *receiveQueue) mayLend() bool { return !r.closed && r.lent < r.depth }

// take returns the next buffer: a posted one, or memory for reassembly.
func (r *receiveQueue) take(cq *queue) (rdma.RecvWR, bool) {
	if r.lends {
		if !r.mayLend() {
			return rdma.RecvWR{}, false
		}
		r.lent++
		return rdma.RecvWR{Body: rdma.MemOf(r.dev.takeJoin())}, true
	}
	if r.closed || r.n == 0 {
		return rdma.RecvWR{}, false
	}
	recv := r.posted[r.first]
	r.posted[r.first] = rdma.RecvWR{}
	r.first = (r.first + 1) % r.depth
	r.n--
	if r.n < r.lowWater && !r.warned {
		r.warned = true
		r.dev.traffic.lowWater++
		cq.push(rdma.Completion{Op: rdma.OpLowWater}, loan{})
	}
	return recv, true
}

// Close closes the queue. Later messages find no buffer.
func (r *receiveQueue) Close() error {
	r.dev.mu.Lock()
	defer r.dev.mu.Unlock()
	r.closed = true
	return nil
}
