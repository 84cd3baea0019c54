//go:build linux

package iwarp

import (
	"errors"

	"github.com/muster-mpi/muster/rdma"
)

// Receive queues, shared or of one queue pair: buffers that the user posted, or buffers of
// the device that are lent.

type receiveQueue struct {
	dev      *device
	lend     bool
	depth    int
	lowWater int
	warned   bool // OpLowWater was reported since the queue was full enough
	closed   bool
	missed   bool // a request for a buffer was not met

	posted []rdma.RecvWR // ring buffer of count entries from head
	head   int
	count  int

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
	defaultPosted = 256
	mostSmall     = 256 // this many messages may wait to be polled, fewer in each larger pool
	mostLarge     = 32
	largeBit      = 1 << 32 // in the ID of a buffer: it is a large one
	hereBit       = 1 << 33 // in the ID of a buffer: it is not from the pool
	lendHereAbove = 2 << 10 // below, copying a message costs less than the occupied buffer
	mostLentOut   = 32      // buffers of the device that are lent at a time
)

var errLends = errors.New("iwarp: this receive queue lends its own buffers; make it without Lend to post some")

func (d *device) NewSRQ(cfg rdma.SRQConfig) (rdma.SRQ, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, rdma.ErrClosed
	}
	return d.newReceiveQueue(cfg), nil
}

func (d *device) newReceiveQueue(cfg rdma.SRQConfig) *receiveQueue {
	r := &receiveQueue{dev: d, lend: cfg.Lend, depth: cfg.Depth, lowWater: cfg.LowWater}
	if r.depth <= 0 {
		r.depth = defaultPosted
	}
	r.small = lendingPool{size: smallBuffer, most: mostSmall}
	r.large = lendingPool{size: maxSend, most: mostLarge}
	if !r.lend {
		r.posted = make([]rdma.RecvWR, r.depth)
	}
	return r
}

func (r *receiveQueue) PostRecv(wrs []rdma.RecvWR) (int, error) {
	r.dev.mu.Lock()
	defer r.dev.mu.Unlock()
	switch {
	case r.closed || r.dev.closed:
		return 0, rdma.ErrClosed
	case r.lend:
		return 0, errLends
	}
	n := min(len(wrs), r.depth-r.count)
	for i := range wrs[:n] {
		if err := r.dev.checkLocal("receive buffer", wrs[i].Body, wrs[i].LKey); err != nil {
			return i, err
		}
		r.posted[(r.head+r.count)%r.depth] = wrs[i]
		r.count++
	}
	r.warned = r.warned && r.count < r.lowWater
	if r.missed && n > 0 {
		r.missed = false
		r.dev.wakeStarved(r)
	}
	if n < len(wrs) {
		return n, rdma.ErrAgain
	}
	return n, nil
}

// wakeStarved wakes the waiter of a queue pair that can continue now: its socket is not
// watched while it has no buffer.
func (d *device) wakeStarved(r *receiveQueue) {
	for _, q := range d.queues {
		if q.recvs == r && q.in.starved && q.recvCQ.sleep.sleepers > 0 {
			q.recvCQ.Wake()
		}
	}
}

// take returns a buffer for a message of at least size bytes; whole means exactly size
// bytes.
func (r *receiveQueue) take(size int, whole bool) (rdma.RecvWR, bool) {
	switch {
	case r.lend && whole && size <= smallBuffer:
		return r.small.take(0)
	case r.lend:
		return r.large.take(largeBit)
	case r.count == 0:
		r.missed = true
		return rdma.RecvWR{}, false
	}
	wr := r.posted[r.head]
	r.posted[r.head] = rdma.RecvWR{}
	r.head = (r.head + 1) % r.depth
	r.count--
	return wr, true
}

// low reports, once, that the queue runs low.
func (r *receiveQueue) low() bool {
	if r.lend || r.warned || r.count >= r.lowWater {
		return false
	}
	r.warned = true
	return true
}

// supplies reports whether take may succeed at the next Poll.
func (r *receiveQueue) supplies() bool { return r.lend || r.count > 0 }

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

func (r *receiveQueue) Close() error {
	r.dev.mu.Lock()
	defer r.dev.mu.Unlock()
	r.closed = true
	return nil
}
