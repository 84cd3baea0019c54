package soft

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
	base "github.com/muster-mpi/muster/rdma/internal/soft"
)

// Completion queues and receive queues. Poll makes progress for the whole device,
// whichever of its completion queues is polled. A completion goes to the queue it
// belongs to. Package rdma/internal/soft implements waiting and the progress thread: both
// sleep until a datagram arrives or the next timer of the device is due, because lost
// datagrams must be retransmitted even if nothing arrives.

// loan is memory that a completion refers to. The next Poll returns it.
type loan struct {
	slot *slot
	join []byte
	from *receiveQueue
}

// queue is a completion queue.
type queue struct {
	base.CQ[loan]
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
	c.dev.polls.shows = c.dev.polls.polling
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
		d.polls.returned = true
	}
	d.polls.polling = !c.IsBeside()
	d.progress()
	d.polls.polling = false
	return c.Take(out)
}

func (d *Device) giveBack(l loan) {
	l.from.Lent--
	if l.slot != nil {
		d.incoming.store.giveBack(l.slot)
	} else {
		d.incoming.joinBuffers.giveBack((*joinBuffer)(l.join))
	}
}

const (
	// sendRetryDelay is how long to wait when the kernel accepts no more datagrams.
	sendRetryDelay = 100 * time.Microsecond
	// bufferWait is how long the progress thread waits for free receive slots when the
	// application holds all of them.
	bufferWait = time.Millisecond
)

// sleep returns how long the device may sleep if nothing arrives.
func (d *Device) sleep(limit time.Duration) time.Duration {
	if d.polls.returned && d.deliverable() {
		d.polls.idle = 0 // so that the next Poll delivers it
		return 0
	}
	longest, at := pollDelay(limit), d.wake()
	if d.outgoing.outbox.n > 0 {
		at = min(at, d.clock.sinceOpen()+sendRetryDelay)
	}
	if at != never {
		limit = min(limit, at-d.clock.sinceOpen())
	}
	if d.net.below != nil {
		limit = d.sleepBelow(limit, longest)
	}
	return limit
}

// awake ends a sleep, perhaps because of a timer.
func (d *Device) awake() {
	d.polls.idle = 0
	if d.net.below != nil && d.net.below.file != nil {
		d.net.below.file.Disarm()
	}
}

// progressBeside is progress for the progress thread.
func (d *Device) progressBeside() time.Duration {
	d.polls.idle = 0
	if before := d.outgoing.outbox.n; d.progress() || d.outgoing.outbox.n < before {
		d.soft.MarkMoved() // there may be room for a post
	}
	if len(d.incoming.batch) == 0 && d.net.below == nil {
		return bufferWait
	}
	return 0
}

// receiveQueue is a receive queue, shared or of one queue pair.
type receiveQueue struct{ base.SRQ }

// NewSRQ creates a shared receive queue.
func (d *Device) NewSRQ(c rdma.SRQConfig) (rdma.SRQ, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := new(receiveQueue)
	most := maxSlots
	if d.net.below != nil {
		most = d.net.below.most
	}
	return r, d.soft.OpenSRQ(&r.SRQ, c, most/2)
}

// take returns the next buffer: a posted one, or memory for reassembly.
func (r *receiveQueue) take(cq *queue) (rdma.RecvWR, bool) {
	if !r.Lends {
		return cq.Receive(&r.SRQ)
	}
	if !r.MayLend() {
		return rdma.RecvWR{}, false
	}
	r.Lent++
	return rdma.RecvWR{Body: rdma.MemOf(cq.dev.incoming.joinBuffers.take()[:])}, true
}

// Register registers memory under an unguessable steering tag.
func (d *Device) Register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	return d.soft.Register(mem, acc)
}

// Deregister ends a registration.
func (d *Device) Deregister(mr rdma.MR) error { return d.soft.Deregister(mr) }
