package udrel

import (
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// Completion queues and receive queues. Poll makes progress for the whole device,
// whichever of its completion queues is polled: there is one completion queue of the
// device below. Lent memory is a packet buffer or a reassembly buffer, and the next Poll
// returns it.

// loan is memory that a completion refers to.
type loan struct {
	pair *pair
	join *joinBuffer
	from *receiveQueue
	id   uint32
}

// queue is a completion queue.
type queue struct {
	soft.CQ[loan]
	dev *Device
}

// NewCQ creates a completion queue. It grows as needed.
func (d *Device) NewCQ(int) (rdma.CQ, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := &queue{dev: d}
	if err := c.Open(&d.soft, d.giveBack); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *queue) push(done rdma.Completion, l loan) {
	c.dev.shows = c.dev.polled
	if l.from != nil {
		c.Lend(done, l)
	} else {
		c.Push(done)
	}
}

// Poll makes progress and returns completions.
func (c *queue) Poll(out []rdma.Completion) int {
	d := c.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	lent, ok := c.Begin()
	if !ok {
		return 0
	}
	for _, l := range lent {
		d.giveBack(l)
	}
	d.polled = true
	d.progress()
	d.polled = false
	return c.Take(out)
}

func (d *Device) giveBack(l loan) {
	l.from.Lent--
	if l.pair == nil {
		d.joins.put(l.join)
	} else if !l.pair.closed {
		l.pair.pool.Return(uint64(l.id))
	}
}

// receiveQueue is a receive queue, shared or of one queue pair.
type receiveQueue struct{ soft.SRQ }

// NewSRQ creates a shared receive queue.
func (d *Device) NewSRQ(c rdma.SRQConfig) (rdma.SRQ, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := new(receiveQueue)
	return r, d.soft.OpenSRQ(&r.SRQ, c, max(d.cfg.Most/2, 1))
}

// take begins the reassembly of a message, in a posted buffer or in one that is lent.
func (r *receiveQueue) take(c *queue) (j joining, ok bool) {
	if !r.Lends {
		j.recv, ok = c.Receive(&r.SRQ)
		return j, ok
	}
	if ok = r.MayLend(); ok {
		r.Lent++
		j.lent = c.dev.joins.take()
		j.recv.Body = rdma.MemOf(j.lent[:])
	}
	return j, ok
}

// Register makes memory accessible to peers.
func (d *Device) Register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	return d.soft.Register(mem, acc)
}

// Deregister ends a registration. Responses that still read from it become refusals.
func (d *Device) Deregister(mr rdma.MR) error { return d.soft.Deregister(mr) }
