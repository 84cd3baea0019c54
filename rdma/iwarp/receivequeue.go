package iwarp

import (
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// Receive queues, shared or of one queue pair: buffers that the user posted, or buffers of
// the device that are lent.

type receiveQueue struct {
	soft.SRQ
	dev          *device
	small, large lendingPool
}

// lendingPool holds buffers of one size. They are allocated on first use.
type lendingPool struct {
	size    int
	most    int
	buffers [][]byte
	free    []uint32
}

// lentBuffer is a lent buffer, or the zero value.
type lentBuffer struct {
	queue *receiveQueue
	id    uint64
	whole *[ioBuffer]byte // with hereBit: the buffer that the message was read into
}

const (
	smallBuffer   = 4 << 10
	mostSmall     = 256 // this many messages may wait to be polled, fewer in each larger pool
	mostLarge     = 32
	largeBit      = 1 << 32 // in the ID of a buffer: it is a large one
	hereBit       = 1 << 33 // in the ID of a buffer: it is not from the pool
	lendHereAbove = 2 << 10 // below, copying a message costs less than the occupied buffer
	mostLentOut   = 32      // buffers of the device that are lent at a time
)

func (d *device) NewSRQ(cfg rdma.SRQConfig) (rdma.SRQ, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.newSRQLocked(cfg)
}

func (d *device) newSRQLocked(cfg rdma.SRQConfig) (rdma.SRQ, error) {
	r := d.newReceiveQueue()
	if cfg.Lend && cfg.Depth > 0 { // its buffers are allocated now, and a message of any length takes one
		r.small.most, r.large.most, r.large.size = 0, cfg.Depth, d.cfg.MaxSend
		for i := range cfg.Depth {
			r.large.buffers = append(r.large.buffers, make([]byte, d.cfg.MaxSend))
			r.large.free = append(r.large.free, uint32(i))
		}
	}
	return r, d.OpenSRQ(&r.SRQ, cfg, mostSmall)
}

func (d *device) newReceiveQueue() *receiveQueue {
	return &receiveQueue{dev: d, small: lendingPool{size: smallBuffer, most: mostSmall}, large: lendingPool{size: maxSend, most: mostLarge}}
}

// take returns a buffer for a message of at least size bytes; whole means exactly size
// bytes.
func (q *queuePair) take(size int, whole bool) (rdma.RecvWR, bool) {
	switch r := q.recvs; {
	case !r.Lends:
		return q.recvCQ.Receive(&r.SRQ)
	case whole && size <= smallBuffer && r.small.most > 0:
		return r.small.take(0)
	default:
		return r.large.take(largeBit)
	}
}

func (p *lendingPool) take(bit uint64) (rdma.RecvWR, bool) {
	if len(p.free) == 0 {
		if len(p.buffers) == p.most {
			return rdma.RecvWR{}, false
		}
		p.free = append(p.free, uint32(len(p.buffers)))
		p.buffers = append(p.buffers, make([]byte, p.size))
	}
	i := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return rdma.RecvWR{ID: uint64(i) | bit, Body: rdma.MemOf(p.buffers[i])}, true
}

// end returns a lent buffer.
func (l lentBuffer) end() {
	switch {
	case l.whole != nil:
		l.queue.dev.lentOut--
		l.queue.dev.giveBuffer(l.whole[:])
		return
	case l.queue == nil || l.id == hereBit: // it was not lent yet
		return
	}
	pool := &l.queue.small
	if l.id&largeBit != 0 {
		pool = &l.queue.large
	}
	pool.free = append(pool.free, uint32(l.id))
}
