package shm

import (
	"context"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// The objects of the provider interface. A device has one of each kind: the segment has
// one queue, and a rank needs no more.

type completionQueue struct{ dev *Device }

type queuePair struct {
	dev    *Device
	closed bool
}

type sharedReceiveQueue struct {
	dev    *Device
	closed bool
}

// NewCQ creates the completion queue.
func (d *Device) NewCQ(depth int) (rdma.CQ, error) {
	if d.closed {
		return nil, rdma.ErrClosed
	}
	if d.has.cq {
		return nil, fmt.Errorf("shm: a device has one completion queue: %w", rdma.ErrUnsupported)
	}
	d.has.cq = true
	return &completionQueue{d}, nil
}

// NewSRQ creates the shared receive queue.
func (d *Device) NewSRQ(cfg rdma.SRQConfig) (rdma.SRQ, error) {
	if d.closed {
		return nil, rdma.ErrClosed
	}
	if d.has.srq {
		return nil, fmt.Errorf("shm: a device has one shared receive queue: %w", rdma.ErrUnsupported)
	}
	d.has.srq = true
	d.recv = newReceiveQueue(cfg)
	return &sharedReceiveQueue{dev: d}, nil
}

// NewQP creates the queue pair, which is of type RD.
func (d *Device) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	if d.closed {
		return nil, rdma.ErrClosed
	}
	if cfg.Type != rdma.RD {
		return nil, fmt.Errorf("shm: queue pairs are of type RD only: %w", rdma.ErrUnsupported)
	}
	if d.has.qp {
		return nil, fmt.Errorf("shm: a device has one queue pair: %w", rdma.ErrUnsupported)
	}
	for _, cq := range []rdma.CQ{cfg.SendCQ, cfg.RecvCQ} {
		if c, ok := cq.(*completionQueue); !ok || c.dev != d {
			return nil, fmt.Errorf("shm: SendCQ and RecvCQ must both be the completion queue of this device")
		}
	}
	if cfg.SRQ != nil {
		if s, ok := cfg.SRQ.(*sharedReceiveQueue); !ok || s.dev != d {
			return nil, fmt.Errorf("shm: the SRQ belongs to another device")
		}
	} else if !d.has.srq {
		d.recv = newReceiveQueue(rdma.SRQConfig{})
	}
	depth := cfg.Depth
	if depth <= 0 {
		depth = defaultDepth
	}
	d.done = newCompletionFIFO(depth)
	d.has.qp = true
	return &queuePair{dev: d}, nil
}

func (q *queuePair) Addr() rdma.Addr { return q.dev.addr }

// Pending returns 0: PostSend publishes what it accepts.
func (q *queuePair) Pending() int { return 0 }

// Connect returns ErrUnsupported: this device has no RC queue pairs.
func (q *queuePair) Connect(context.Context, rdma.Addr) error {
	return fmt.Errorf("shm: an RD queue pair is not connected, Resolve the peer: %w", rdma.ErrUnsupported)
}

func (q *queuePair) PostRecv(wrs []rdma.RecvWR) (int, error) {
	if q.closed {
		return 0, rdma.ErrClosed
	}
	if q.dev.has.srq {
		return 0, fmt.Errorf("shm: post receives to the shared receive queue: %w", rdma.ErrUnsupported)
	}
	return q.dev.postRecv(wrs)
}

// Close flushes the incomplete requests.
func (q *queuePair) Close() error {
	if q.closed || q.dev.closed {
		return nil
	}
	q.closed = true
	q.dev.copies.flush(q.dev)
	q.dev.has.qp = false
	return nil
}

func (s *sharedReceiveQueue) PostRecv(wrs []rdma.RecvWR) (int, error) {
	if s.closed {
		return 0, rdma.ErrClosed
	}
	return s.dev.postRecv(wrs)
}

func (s *sharedReceiveQueue) Close() error {
	if !s.closed {
		s.closed = true
		s.dev.recv = receiveQueue{}
		s.dev.has.srq = false
	}
	return nil
}

func (c *completionQueue) Wait(timeout time.Duration) error { return c.dev.wait(timeout) }

func (c *completionQueue) Wake() { c.dev.wakeup.wake(c.dev) }

func (c *completionQueue) Close() error {
	c.dev.has.cq = false
	return nil
}
