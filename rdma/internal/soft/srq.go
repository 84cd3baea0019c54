package soft

import (
	"fmt"
	"reflect"

	"github.com/muster-mpi/muster/rdma"
)

// SRQ is a receive queue, shared or of one queue pair: a ring of posted buffers, or a
// number of buffers that the device lends.
type SRQ struct {
	Lends bool
	Lent  int // messages lent and not given back
	depth int

	dev      *Device
	shared   bool
	lowWater int
	warned   bool          // OpLowWater was reported since the queue was full enough
	posted   []rdma.RecvWR // a ring
	first    int
	n        int
	closed   bool
}

const (
	receiveDepth = 1024 // default maximum of posted buffers
	lendDepth    = 256  // default maximum of lent messages
)

// OpenSRQ opens a receive queue. It lends at most mostLent messages.
func (d *Device) OpenSRQ(r *SRQ, c rdma.SRQConfig, mostLent int) error {
	if d.Closed {
		return rdma.ErrClosed
	}
	*r = SRQ{dev: d, Lends: c.Lend, depth: c.Depth, lowWater: c.LowWater, warned: true, shared: true}
	switch {
	case r.Lends && (r.depth <= 0 || r.depth > mostLent):
		r.depth = min(lendDepth, mostLent)
	case r.depth <= 0:
		r.depth = receiveDepth
	}
	if !r.Lends {
		r.posted = make([]rdma.RecvWR, r.depth)
	}
	return nil
}

// OpenOwn opens the receive queue of a queue pair that has no shared one.
func (d *Device) OpenOwn(r *SRQ) error {
	err := d.OpenSRQ(r, rdma.SRQConfig{}, 0)
	r.shared = false
	return err
}

// PostRecv posts buffers.
func (r *SRQ) PostRecv(wrs []rdma.RecvWR) (n int, err error) {
	d := r.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case r.closed || d.Closed:
		return 0, rdma.ErrClosed
	case r.Lends && len(wrs) > 0:
		return 0, fmt.Errorf("%s: this receive queue lends its own buffers; make it without Lend to post some: %w", d.name, rdma.ErrUnsupported)
	}
	for ; n < len(wrs) && r.n < r.depth; n++ {
		if err = d.CheckLocal("receive buffer", wrs[n].Body, wrs[n].LKey); err != nil {
			break
		}
		at := r.first + r.n
		if at >= r.depth {
			at -= r.depth
		}
		r.posted[at] = wrs[n]
		r.n++
	}
	r.warned = r.warned && r.n < r.lowWater
	if n > 0 { // a message may wait for a buffer
		if d.hooks.Posted != nil {
			d.hooks.Posted()
		}
		if d.waiting > 0 {
			d.WakeAll()
		}
	}
	if err == nil && n < len(wrs) {
		err = rdma.ErrAgain
	}
	return n, err
}

// PostOwn is PostRecv of a queue pair.
func (r *SRQ) PostOwn(wrs []rdma.RecvWR) (n int, err error) {
	if r.shared {
		return 0, fmt.Errorf("%s: the queue pair has a shared receive queue; post there: %w", r.dev.name, rdma.ErrUnsupported)
	}
	return r.PostRecv(wrs)
}

// MayLend reports whether another message may be lent.
func (r *SRQ) MayLend() bool { return !r.closed && r.Lent < r.depth }

// Supplies reports whether a message may find a buffer.
func (r *SRQ) Supplies() bool { return !r.closed && (r.Lends || r.n > 0) }

// Receive takes the next posted buffer of a receive queue. It reports to this completion
// queue that few are left.
func (c *CQ[L]) Receive(r *SRQ) (recv rdma.RecvWR, ok bool) {
	if r.closed || r.n == 0 {
		return recv, false
	}
	recv = r.posted[r.first]
	r.posted[r.first] = rdma.RecvWR{}
	if r.first++; r.first == r.depth {
		r.first = 0
	}
	r.n--
	if r.n < r.lowWater && !r.warned {
		r.warned = true
		r.dev.LowWaters++
		c.Push(rdma.Completion{Op: rdma.OpLowWater})
	}
	return recv, true
}

// Memory returns the memory of the posted entries.
func (r *SRQ) Memory() uint64 { return uint64(len(r.posted)) * sizeOf[rdma.RecvWR]() }

func sizeOf[T any]() uint64 { return uint64(reflect.TypeFor[T]().Size()) }

// Close closes the queue. Later messages find no buffer.
func (r *SRQ) Close() error {
	r.dev.mu.Lock()
	defer r.dev.mu.Unlock()
	r.closed = true
	return nil
}
