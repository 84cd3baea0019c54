package iwarp

// Memory counters, for rdma.Caps. The user that makes connections counts how
// many were made and closed; the device reports those that are open.

import (
	"reflect"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// Caps returns what the device can do in addition to rdma.Device.
func (d *device) Caps() rdma.Caps {
	return rdma.Caps{Notify: soft.Notify | rdma.NotifyBeside, Count: d.Count,
		Urgent: func() bool { return d.holding.Load() > 0 }}
}

// Count reports the memory and connections of the device.
func (d *device) Count(add func(name rdma.Counter, value uint64)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	add(rdma.LowWater, d.LowWaters)
	if d.Closed {
		return
	}
	open, summed, state, kernel, again := uint64(0), uint64(0), uint64(0), uint64(0), uint64(0)
	queues := map[*receiveQueue]bool{}
	for _, q := range d.queues {
		state += q.memory()
		queues[q.recvs] = true
		if q.state == connected {
			if open++; q.terms.crc {
				summed++
			}
			kernel += q.fd.memory()
			again += q.fd.retransmissions()
		}
	}
	add(rdma.ConnectionsRC, open)
	add(rdma.ConnectionsCRC, summed)
	add(rdma.Sockets, open+1) // including the listener
	add(rdma.SegmentsRetransmitted, again)
	add(rdma.MessagesCombined, d.combined)
	add(rdma.MemoryKernel, kernel)
	state += uint64(len(d.buffers)+d.lentOut) * ioBuffer
	add(rdma.MemoryConnections, state)
	received := d.QueueMemory()
	for r := range queues {
		received += r.memory()
	}
	add(rdma.MemoryReceive, received)
}

// memory returns the memory of a queue pair, with its current buffers.
func (q *queuePair) memory() uint64 {
	n := sizeOf[queuePair]() + uint64(cap(q.works.list))*sizeOf[work]() + uint64(cap(q.in.buf)) + uint64(cap(q.out.copied)) +
		uint64(cap(q.out.pieces))*sizeOf[piece]()
	if q.stream != nil {
		n += sizeOf[ddp.Stream]()
	}
	return n
}

// memory returns the memory of the lent buffers of a receive queue, and of its entries.
func (r *receiveQueue) memory() uint64 {
	return r.Memory() + r.small.memory() + r.large.memory()
}

func (p *lendingPool) memory() uint64 { return uint64(len(p.buffers)) * uint64(p.size) }

func sizeOf[T any]() uint64 { return uint64(reflect.TypeFor[T]().Size()) }
