//go:build ofi && cgo && linux

package ofi

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// completionQueue is a CQ. How it waits is in wait.go.
type completionQueue struct {
	dev    *device
	q      cqueue
	waker  waker
	step   stepper
	closed bool
}

func (d *device) NewCQ(depth int) (rdma.CQ, error) {
	if d.closed {
		return nil, rdma.ErrClosed
	}
	if depth <= 0 {
		depth = d.sizes.depth + d.sizes.receives
	}
	c := &completionQueue{dev: d}
	if err := c.waker.open(); err != nil {
		return nil, fmt.Errorf("ofi: create a completion queue: %w", err)
	}
	var err error
	if c.q, err = d.dom.newCQ(depth); err != nil {
		c.waker.close()
		return nil, fmt.Errorf("ofi: provider %s on %s: create a completion queue of %d entries: %w", d.what.provider, d.what.domain, depth, err)
	}
	d.cqs = append(d.cqs, c)
	return c, nil
}

// ownCQ returns the queue behind the interface, or nil if it belongs to another device.
func (d *device) ownCQ(cq rdma.CQ) *completionQueue {
	c, ok := cq.(*completionQueue)
	if !ok || c.dev != d || c.closed {
		return nil
	}
	return c
}

func (c *completionQueue) Poll(out []rdma.Completion) int {
	if c.closed {
		return 0
	}
	n := c.q.poll(min(len(out), batch))
	for i := range out[:n] {
		slot, lent := c.q.completion(i, &out[i])
		if lent || slot == noSlot {
			continue
		}
		if o := &out[i]; o.Op == rdma.OpRecv {
			s := c.dev.posted[c.q.tag(i)]
			o.Data = s.held[slot].Slice(0, int(o.Len))
			s.held[slot] = rdma.Mem{}
		} else {
			c.dev.held[slot] = rdma.Mem{}
		}
	}
	if n > 0 {
		c.step.reset()
	}
	return n
}

func (c *completionQueue) Close() error {
	if c.closed {
		return nil
	}
	for _, q := range c.dev.qps {
		if q.send == c || q.recv == c {
			return fmt.Errorf("ofi: close a completion queue: the queue pair %s still uses it", q.addr)
		}
	}
	c.closed = true
	c.dev.cqs = remove(c.dev.cqs, c)
	c.waker.close()
	return c.q.close(c.dev.lib)
}
