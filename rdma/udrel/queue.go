package udrel

import (
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// Completion queues and receive queues. Each completion queue has one of the device
// below. Poll makes progress for the whole device. Lent memory is a packet buffer or a
// reassembly buffer, and the next Poll returns it.

// loan is memory that a completion refers to.
type loan struct {
	pair *pair
	join []byte
	from *receiveQueue
	id   uint32
}

type entry struct {
	completion rdma.Completion
	loan       loan
}

// queue is a completion queue.
type queue struct {
	dev    *Device
	below  rdma.CQ
	ready  []entry
	first  int // index of the first entry of ready not yet returned
	lent   []loan
	parked int // current waiters
	closed bool
}

// armedQueue is a queue with WaitArmed, because the one below has it.
type armedQueue struct {
	*queue
	armed rdma.NotifyCQ
}

// NewCQ creates a completion queue. It grows as needed.
func (d *Device) NewCQ(depth int) (rdma.CQ, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, rdma.ErrClosed
	}
	below, err := d.below.NewCQ(depth)
	if err != nil {
		return nil, fmt.Errorf("udrel: a completion queue of %s: %w", d.below.Attr().Name, err)
	}
	c := &queue{dev: d, below: below, ready: make([]entry, 0, 64)}
	d.queues = append(d.queues, c)
	if armed := rdma.Notifier(below, rdma.NotifyAny); armed != nil {
		return armedQueue{c, armed}, nil
	}
	return c, nil
}

// queueOf returns the queue behind what NewCQ returned.
func queueOf(c rdma.CQ) (*queue, bool) {
	if a, ok := c.(armedQueue); ok {
		return a.queue, true
	}
	q, ok := c.(*queue)
	return q, ok
}

func (c *queue) push(done rdma.Completion, l loan) {
	if c.first > 0 && len(c.ready) == cap(c.ready) {
		n := copy(c.ready, c.ready[c.first:])
		clear(c.ready[n:])
		c.ready, c.first = c.ready[:n], 0
	}
	c.ready = append(c.ready, entry{done, l})
	if c.parked > 0 || c.dev.inBackground {
		c.below.Wake() // a waiter may sleep here while another goroutine makes progress
	}
}

// Poll makes progress and returns completions.
func (c *queue) Poll(out []rdma.Completion) (n int) {
	d := c.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.closed || d.closed {
		return 0
	}
	d.calls++
	for i := range c.lent {
		d.giveBack(&c.lent[i])
		c.lent[i] = loan{}
	}
	c.lent = c.lent[:0]
	d.progress(c)
	for n < len(out) && c.first < len(c.ready) {
		e := &c.ready[c.first]
		out[n] = e.completion
		if e.loan.from != nil {
			c.lent = append(c.lent, e.loan)
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
	if l.pair == nil {
		d.joins = append(d.joins, l.join)
	} else if !l.pair.closed {
		l.pair.pool.Return(uint64(l.id))
	}
}

// Close closes the queue and returns what it lent.
func (c *queue) Close() error {
	d := c.dev
	d.mu.Lock()
	if c.closed {
		d.mu.Unlock()
		return nil
	}
	c.closed = true
	d.queues = slices.DeleteFunc(d.queues, func(other *queue) bool { return other == c })
	for i := range c.lent {
		d.giveBack(&c.lent[i])
	}
	for i := range c.ready[c.first:] {
		if l := &c.ready[c.first+i].loan; l.from != nil {
			d.giveBack(l)
		}
	}
	c.lent, c.ready, c.first = nil, nil, 0
	d.mu.Unlock()
	return c.below.Close()
}

const (
	receiveDepth = 1024 // default maximum of posted buffers
	lendDepth    = 256  // default maximum of lent messages
)

// receiveQueue is a receive queue, shared or of one queue pair.
type receiveQueue struct {
	dev      *Device
	shared   bool
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

// NewSRQ creates a shared receive queue.
func (d *Device) NewSRQ(c rdma.SRQConfig) (rdma.SRQ, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, rdma.ErrClosed
	}
	r := newReceiveQueue(d, c)
	r.shared = true
	return r, nil
}

func newReceiveQueue(d *Device, c rdma.SRQConfig) *receiveQueue {
	r := &receiveQueue{dev: d, lends: c.Lend, depth: c.Depth, lowWater: c.LowWater, warned: true}
	if r.lends {
		if r.depth <= 0 {
			r.depth = lendDepth
		}
		r.depth = min(r.depth, max(d.cfg.Most/2, 1))
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
	d := r.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case r.closed || d.closed:
		return 0, rdma.ErrClosed
	case r.lends && len(wrs) > 0:
		return 0, rdma.ErrUnsupported
	}
	for ; n < len(wrs) && r.n < r.depth; n++ {
		r.posted[(r.first+r.n)%r.depth] = wrs[n]
		r.n++
	}
	if r.n >= r.lowWater {
		r.warned = false
	}
	d.idlePolls = 0 // a message may wait for a buffer
	d.wakeAll()
	if n < len(wrs) {
		return n, rdma.ErrAgain
	}
	return n, nil
}

// mayLend reports whether another message may be lent.
func (r *receiveQueue) mayLend() bool { return !r.closed && r.lent < r.depth }

// take returns the next buffer: a posted one, or memory for reassembly.
func (r *receiveQueue) take(c *queue) (rdma.RecvWR, bool) {
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
		c.push(rdma.Completion{Op: rdma.OpLowWater}, loan{})
	}
	return recv, true
}

// takeJoin returns memory for a message of several packets.
func (d *Device) takeJoin() []byte {
	if n := len(d.joins); n > 0 {
		b := d.joins[n-1]
		d.joins = d.joins[:n-1]
		return b
	}
	return make([]byte, maxSend)
}

// Close closes the queue. Later messages find no buffer.
func (r *receiveQueue) Close() error {
	r.dev.mu.Lock()
	defer r.dev.mu.Unlock()
	r.closed = true
	return nil
}
