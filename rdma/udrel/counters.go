package udrel

import (
	"reflect"

	"github.com/muster-mpi/muster/rdma"
)

// Counters and memory use, including those of the device below.

// traffic counts packets. Package reliable counts retransmissions.
type traffic struct {
	acks      uint64 // sent without a segment
	duplicate uint64
	malformed uint64
	noRoom    uint64 // early packets without a buffer
}

// Counters that other devices do not have.
const (
	// PacketsAcks counts packets that carried only an ack.
	PacketsAcks rdma.Counter = "packets.acks"
	// PacketsNoRoom counts early packets that were dropped.
	PacketsNoRoom rdma.Counter = "packets.no-room"
	// BuffersNow and BuffersPeak are the number of receive buffers, now and at most.
	BuffersNow  rdma.Counter = "receive.buffers"
	BuffersPeak rdma.Counter = "receive.buffers-most"
)

// Count reports counters and memory use of the device and the one below.
func (d *Device) Count(add func(name rdma.Counter, value uint64)) {
	if below, ok := d.below.(rdma.CountingDevice); ok {
		below.Count(func(name rdma.Counter, value uint64) {
			if name != rdma.DatagramsRetransmitted && name != rdma.DatagramsDuplicate {
				add(name, value)
			}
		})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	add(rdma.DatagramsRetransmitted, d.windows.Retransmitted)
	add(rdma.DatagramsProbes, d.windows.Probes)
	add(rdma.DatagramsTimeouts, d.windows.Timeouts)
	add(rdma.DatagramsDuplicate, d.traffic.duplicate)
	add(PacketsAcks, d.traffic.acks)
	add(PacketsNoRoom, d.traffic.noRoom)
	add(rdma.LowWater, d.soft.LowWaters)
	if d.soft.Closed {
		return
	}
	receive := uint64(len(d.joins.list))*maxSend + uint64(len(d.reorderBuffers.list))*sizeOf[reorderBuffer]()
	send := uint64(d.windows.Memory())
	for _, m := range d.messages.all {
		send += sizeOf[message]() + uint64(cap(m.Info.kept))
	}
	var peers uint64
	for _, q := range d.pairs {
		if q == nil {
			continue
		}
		s := q.pool.Stats()
		receive += s.Bytes
		add(BuffersNow, uint64(s.Now))
		add(BuffersPeak, uint64(s.Peak))
		peers += uint64(cap(q.peers)) * sizeOf[*peer]()
		for _, p := range q.peers {
			if p != nil {
				peers += sizeOf[peer]()
			}
		}
	}
	add(rdma.MemoryReceive, receive)
	add(rdma.MemorySend, send)
	add(rdma.MemoryPeers, peers)
}

func sizeOf[T any]() uint64 { return uint64(reflect.TypeFor[T]().Size()) }
