package rdmatest

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// faultyCQ turns the completions of the device into those of the user.
type faultyCQ struct {
	f     *Faulty
	inner rdma.CQ
	ready []rdma.Completion // made by the wrapper
}

func (c *faultyCQ) Poll(out []rdma.Completion) int {
	f := c.f
	f.step++
	f.learn()
	if !f.closed {
		f.deliverDue()
	}
	n := 0
	if !f.closed {
		n = copy(out, c.ready)
		c.ready = append(c.ready[:0], c.ready[n:]...)
	}
	got := out[n:]
	for _, done := range got[:c.inner.Poll(got)] {
		if c.translate(&done) {
			out[n] = done
			n++
		}
	}
	f.bury()
	return n
}

// translate turns a completion of the device into the user's, or reports that it is
// none of his business.
func (c *faultyCQ) translate(done *rdma.Completion) bool {
	f := c.f
	switch done.Op {
	case rdma.OpLowWater:
		return true
	case rdma.OpRecv:
		if !f.gone(done.Peer) {
			f.passed(done.Peer)
			return true
		}
		// A lent message is simply not shown. A posted buffer must go back.
		done.Data, done.Len, done.Status = rdma.Mem{}, 0, rdma.StatusPeerGone
		return done.ID != 0
	}
	w := f.works[done.ID]
	if w == nil {
		return false // it belonged to a peer that is gone
	}
	delete(f.works, done.ID)
	w.copies--
	if w.reported || done.Status == rdma.StatusOK && (w.copies > 0 || w.silent) {
		return false
	}
	w.reported = true
	done.ID = w.id
	if w.q.named() && f.gone(w.peer) {
		done.Status = rdma.StatusPeerGone
	}
	return true
}

// Wait does not sleep over messages that wait for their turn, because turns
// come by Poll. If they wait for the device, it sleeps a little.
func (c *faultyCQ) Wait(timeout time.Duration) error {
	if c.f.closed {
		return c.inner.Wait(0)
	}
	if len(c.ready) > 0 {
		return nil
	}
	for _, q := range c.f.qps {
		for _, h := range q.held {
			if h.due > c.f.step {
				return nil
			}
			timeout = min(timeout, time.Millisecond)
		}
	}
	return c.inner.Wait(timeout)
}

func (c *faultyCQ) Wake() { c.inner.Wake() }

func (c *faultyCQ) Close() error { return c.inner.Close() }
