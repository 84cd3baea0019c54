package rail

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// Completion queues and receive queues. Poll drives the queue pairs that use the queue.
// A completion goes to the queue it belongs to. A wait sleeps on all rails of these pairs
// until one has something or a flow must be serviced, and so does the progress thread while
// the application computes: it places pieces of Writes, responds to Reads, and moves the
// pieces of a failed rail to another one. The devices below cannot do that by themselves,
// because to them a piece is a message.

// loan is the memory of a message that a queue returns.
type loan struct {
	buffer   []byte // memory of the device; nil: none
	borrowed bool   // the message is in a rail's buffer, until the next Poll
}

// queue is a completion queue.
type queue struct {
	soft.CQ[loan]
	dev   *Device
	pairs []*pair
	below soft.Below
	all   bool // the next Poll polls all rails
}

// NewCQ creates a completion queue. It grows as needed.
func (d *Device) NewCQ(int) (rdma.CQ, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := &queue{dev: d}
	if err := c.below.Open(); err != nil {
		return nil, fmt.Errorf("rail: sleep on the rails: %w", err)
	}
	if err := c.Open(&d.soft, func(l loan) { d.giveBack(l.buffer) }); err != nil {
		c.below.Close()
		return nil, err
	}
	c.SleepOn(c.below.FD(), func(limit time.Duration) time.Duration { return c.below.Sleep(d.untilDue(c.pairs, limit)) }, func() {
		c.all = true
		c.below.Awake()
	})
	d.queues = append(d.queues, c)
	return c, nil
}

// attach connects a pair to its queues and to the progress thread.
func (q *pair) attach() error {
	if err := q.dev.soft.StartThread(); err != nil {
		return err
	}
	for _, b := range q.sleepers() {
		for i := range q.rails {
			if err := b.Add(q.rails[i].cq); err != nil {
				return fmt.Errorf("rail: sleep on a rail: %w", err)
			}
		}
	}
	q.sendCQ.pairs = append(q.sendCQ.pairs, q)
	if q.sendCQ != q.recvCQ {
		q.recvCQ.pairs = append(q.recvCQ.pairs, q)
	}
	return nil
}

// sleepers returns those that sleep on the rails of a pair.
func (q *pair) sleepers() []*soft.Below {
	list := []*soft.Below{&q.dev.below, &q.sendCQ.below}
	if q.sendCQ != q.recvCQ {
		list = append(list, &q.recvCQ.below)
	}
	return list
}

// detach undoes attach, before the rails' queues are closed.
func (q *pair) detach() {
	for _, b := range q.sleepers() {
		for i := range q.rails {
			b.Remove(q.rails[i].cq)
		}
	}
	for _, c := range []*queue{q.sendCQ, q.recvCQ} {
		c.pairs = slices.DeleteFunc(c.pairs, func(other *pair) bool { return other == q })
	}
}

// Poll drives the rails and returns completions.
func (c *queue) Poll(out []rdma.Completion) (n int) {
	d := c.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	lent, ok := c.Begin()
	if !ok {
		return 0
	}
	for _, l := range lent {
		d.giveBack(l.buffer)
	}
	how := pollSome
	if c.all {
		c.all, how = false, pollAll
	}
	d.now = d.clock()
	n = c.Take(out)
	for _, q := range c.pairs {
		q.progress(len(out)-n, how)
	}
	if n += c.Take(out[n:]); n > 0 {
		c.below.Busy() // more may follow soon
	}
	c.copyBorrowed()
	return n
}

// copyBorrowed copies what was not returned and is in a rail's buffer.
func (c *queue) copyBorrowed() {
	if c.Len() == 0 {
		return
	}
	c.Unpolled(func(done *rdma.Completion, l *loan) {
		if l.borrowed {
			a := arrival{message: done.Data}
			c.dev.keep(&a)
			done.Data, *l = a.message, loan{buffer: a.buffer}
		}
	})
}

// untilDue returns the time until a flow of these pairs must be serviced, at most limit.
func (d *Device) untilDue(pairs []*pair, limit time.Duration) time.Duration {
	at := never
	for _, q := range pairs {
		for _, f := range q.busy {
			at = min(at, f.lookAt)
		}
	}
	if at == never {
		return limit
	}
	return min(limit, at-d.clock())
}

// Close closes the queue and returns what it lent.
func (c *queue) Close() error {
	d := c.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	c.close()
	return nil
}

func (c *queue) close() {
	if i := slices.Index(c.dev.queues, c); i >= 0 {
		c.dev.queues = slices.Delete(c.dev.queues, i, i+1)
		c.End()
		c.below.Close()
	}
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

// sleep prepares the sleep of the progress thread.
func (d *Device) sleep(limit time.Duration) time.Duration {
	return d.below.Sleep(d.untilDue(d.pairs, limit))
}

// progressBeside drives the rails for the progress thread. Messages for the application
// are copied, because it may still read what its last Poll lent.
func (d *Device) progressBeside() time.Duration {
	d.now = d.clock()
	for _, q := range d.pairs {
		if !q.closed {
			q.progress(batchSize, pollBeside)
		}
	}
	for _, c := range d.queues {
		c.copyBorrowed()
	}
	return 0
}

// lendDepth is how many messages may wait to be polled before no more are accepted.
const lendDepth = 256

// receiveQueue is a receive queue, shared or of one queue pair.
type receiveQueue struct{ soft.SRQ }

// NewSRQ creates a shared receive queue.
func (d *Device) NewSRQ(c rdma.SRQConfig) (rdma.SRQ, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := new(receiveQueue)
	return r, d.soft.OpenSRQ(&r.SRQ, c, lendDepth)
}
