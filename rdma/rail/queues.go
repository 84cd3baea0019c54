package rail

import (
	"sync"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Completion queues and receive queues. Poll drives the queue pairs that use the queue.
// A completion goes to the queue it belongs to.

// delivery is a queued completion.
type delivery struct {
	completion rdma.Completion
	buffer     []byte // memory of the device that holds Data
	borrowed   bool   // Data is in a rail's buffer, until the next Poll
}

// queue is a completion queue.
type queue struct {
	dev       *Device
	pairs     []*pair
	ready     []delivery
	first     int      // index of the first entry of ready not yet returned
	lent      [][]byte // memory lent by the last Poll
	closed    bool
	all       bool // the next Poll polls all rails
	filed     bool // a goroutine sleeps on its file
	parked    int  // waiters on it or its file
	waitState waitState
	ending    sync.Once
}

var _ rdma.ArmedCQ = (*queue)(nil)

// NewCQ creates a completion queue. It grows as needed.
func (d *Device) NewCQ(depth int) (rdma.CQ, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, rdma.ErrClosed
	}
	c := &queue{dev: d, ready: make([]delivery, 0, min(max(depth, 64), 256))}
	if err := c.waitState.open(numWaiters); err != nil {
		return nil, err
	}
	d.queues = append(d.queues, c)
	return c, nil
}

// attach connects a pair to its queues, their wait state and the progress thread.
func (q *pair) attach() error {
	if err := q.dev.startProgress(); err != nil {
		return err
	}
	for i := range q.rails {
		if q.dev.progressThread.started {
			if err := q.dev.progressThread.waitState.watch(q.rails[i].cq); err != nil {
				return err
			}
		}
	}
	for _, c := range []*queue{q.sendCQ, q.recvCQ} {
		for i := range q.rails {
			if err := c.waitState.watch(q.rails[i].cq); err != nil {
				return err
			}
		}
		c.pairs = append(c.pairs, q)
		if q.sendCQ == q.recvCQ {
			break
		}
	}
	return nil
}

// detach undoes attach, before the rails' queues are closed.
func (q *pair) detach() {
	for i := range q.rails {
		if q.dev.progressThread.started {
			q.dev.progressThread.waitState.forget(q.rails[i].cq)
		}
	}
	q.sendCQ.forget(q)
	q.recvCQ.forget(q)
}

// forget removes a closed pair.
func (c *queue) forget(q *pair) {
	for i := 0; i < len(c.pairs); i++ {
		if c.pairs[i] == q {
			c.pairs = append(c.pairs[:i], c.pairs[i+1:]...)
			i--
		}
	}
	for i := range q.rails {
		c.waitState.forget(q.rails[i].cq)
	}
}

// push adds a completion.
func (c *queue) push(d delivery) {
	if c.closed {
		c.dev.giveBack(d.buffer)
		return
	}
	if c.first > 0 && len(c.ready) == cap(c.ready) {
		n := copy(c.ready, c.ready[c.first:])
		clear(c.ready[n:])
		c.ready, c.first = c.ready[:n], 0
	}
	c.ready = append(c.ready, d)
}

// waiting returns the number of queued completions.
func (c *queue) waiting() int { return len(c.ready) - c.first }

// Poll drives the rails and returns completions.
func (c *queue) Poll(out []rdma.Completion) (n int) {
	d := c.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.closed || d.closed {
		return 0
	}
	c.awake()
	d.called()
	how := pollSome
	if c.all {
		c.all, how = false, pollAll
	}
	for i := range c.lent {
		d.giveBack(c.lent[i])
		c.lent[i] = nil
	}
	c.lent = c.lent[:0]
	d.now = d.clock()
	n = c.give(out)
	for _, q := range c.pairs {
		q.progress(len(out)-n, how)
	}
	n += c.give(out[n:])
	if n > 0 {
		c.waitState.nap = 0 // more may follow soon
	}
	c.copyBorrowed()
	return n
}

// copyBorrowed copies what was not returned and is in a rail's buffer.
func (c *queue) copyBorrowed() {
	for i := c.first; i < len(c.ready); i++ {
		if e := &c.ready[i]; e.borrowed {
			a := arrival{message: e.completion.Data}
			c.dev.keep(&a)
			e.completion.Data, e.buffer, e.borrowed = a.message, a.buffer, false
		}
	}
}

// give moves completions to out.
func (c *queue) give(out []rdma.Completion) (n int) {
	for n < len(out) && c.first < len(c.ready) {
		e := &c.ready[c.first]
		out[n] = e.completion
		if e.buffer != nil {
			c.lent = append(c.lent, e.buffer)
		}
		*e = delivery{}
		c.first++
		n++
	}
	if c.first == len(c.ready) {
		c.ready, c.first = c.ready[:0], 0
	}
	return n
}

// due returns when Poll has work in any case: now, if completions are ready.
func (c *queue) due() time.Duration {
	if c.waiting() > 0 {
		return 0
	}
	at := never
	for _, q := range c.pairs {
		for _, f := range q.busy {
			at = min(at, f.lookAt)
		}
	}
	return at
}

// Close closes the queue and returns what it lent.
func (c *queue) Close() error {
	d := c.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	return c.end()
}

func (c *queue) end() (err error) {
	c.ending.Do(func() {
		c.closed = true
		c.dev.parked -= c.parked
		for i := c.first; i < len(c.ready); i++ {
			c.dev.giveBack(c.ready[i].buffer)
		}
		c.ready, c.lent, c.first = nil, nil, 0
		err = c.waitState.close()
	})
	return err
}

const (
	receiveDepth = 1024 // default maximum of posted buffers
	lendDepth    = 256  // messages that may wait to be polled before no more are accepted
)

// receiveQueue is a receive queue, shared or of one queue pair.
type receiveQueue struct {
	dev      *Device
	lends    bool
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
	r := &receiveQueue{dev: d, lends: c.Lend, lowWater: c.LowWater, warned: true}
	if !r.lends {
		depth := c.Depth
		if depth <= 0 {
			depth = receiveDepth
		}
		r.posted = make([]rdma.RecvWR, depth)
	}
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
	for ; n < len(wrs) && r.n < len(r.posted); n++ {
		r.posted[(r.first+r.n)%len(r.posted)] = wrs[n]
		r.n++
	}
	if r.n >= r.lowWater {
		r.warned = false
	}
	for _, c := range d.queues {
		c.wakeSleeper() // a message may wait for a buffer
	}
	if n < len(wrs) {
		return n, rdma.ErrAgain
	}
	return n, nil
}

// take returns the next buffer.
func (r *receiveQueue) take(cq *queue) (rdma.RecvWR, bool) {
	if r.closed || r.n == 0 {
		return rdma.RecvWR{}, false
	}
	recv := r.posted[r.first]
	r.posted[r.first] = rdma.RecvWR{}
	r.first = (r.first + 1) % len(r.posted)
	r.n--
	if r.n < r.lowWater && !r.warned {
		r.warned = true
		cq.push(delivery{completion: rdma.Completion{Op: rdma.OpLowWater}})
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
