package shm

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// receiveQueue determines where messages go: nowhere before a queue was created, to the
// user in place, or into posted buffers.
type receiveQueue struct {
	lend     bool
	posted   []rdma.RecvWR // length is a power of two, used as a ring
	put, get uint32
	depth    int
	lowWater int
	low      bool // OpLowWater is due
}

func newReceiveQueue(cfg rdma.SRQConfig) receiveQueue {
	q := receiveQueue{lend: cfg.Lend, depth: cfg.Depth, lowWater: cfg.LowWater}
	if q.depth <= 0 {
		q.depth = defaultDepth
	}
	if !q.lend {
		n := 1
		for n < q.depth {
			n *= 2
		}
		q.posted = make([]rdma.RecvWR, n)
	}
	return q
}

func (q *receiveQueue) count() int { return int(q.put - q.get) }

// open reports whether a message could be delivered now.
func (q *receiveQueue) open() bool { return q.lend || q.put != q.get }

func (d *Device) postRecv(wrs []rdma.RecvWR) (int, error) {
	q := &d.recv
	if d.closed {
		return 0, rdma.ErrClosed
	}
	if q.lend {
		return 0, fmt.Errorf("shm: a lending receive queue has its own buffers: %w", rdma.ErrUnsupported)
	}
	for i := range wrs {
		if q.count() >= q.depth {
			return i, rdma.ErrAgain
		}
		q.posted[q.put&uint32(len(q.posted)-1)] = wrs[i]
		q.put++
	}
	return len(wrs), nil
}

// deliver creates the completion of a message: a view of it, or a copy in the next posted
// buffer.
func (q *receiveQueue) deliver(c *rdma.Completion, source int, data []byte) {
	*c = rdma.Completion{Op: rdma.OpRecv, Peer: rdma.PeerID(source), Len: uint64(len(data))}
	if q.lend {
		c.Data = rdma.MemOf(data)
		return
	}
	wr := &q.posted[q.get&uint32(len(q.posted)-1)]
	c.ID = wr.ID
	if len(data) > wr.Body.Len() {
		c.Status = rdma.StatusTooLong
	} else {
		copy(wr.Body.Bytes(), data)
		c.Data = wr.Body.Slice(0, len(data))
	}
	*wr = rdma.RecvWR{}
	q.get++
	if q.count() == q.lowWater-1 {
		q.low = true
	}
}
