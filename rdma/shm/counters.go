package shm

// Memory counters, for rdma.Caps. Nothing is counted on the path of a message.
// In process mode only the touched pages of the segment count, since the system allocates
// no others; in heap mode the parts count as allocated. A peer's segment is the peer's
// memory.

import (
	"reflect"

	"github.com/muster-mpi/muster/rdma"
)

// traffic counts the messages of this rank.
type traffic struct {
	sent      uint64
	received  uint64
	moved     uint64 // grows whenever Poll has copied something without a completion
	lowWaters uint64 // times that few receive buffers were left
}

// Caps returns what the device can do in addition to rdma.Device.
func (d *Device) Caps() rdma.Caps {
	return rdma.Caps{Notify: rdma.NotifySolicited, Alive: d.Alive, Moved: func() uint64 { return d.traffic.moved }, Count: d.Count, Direct: d}
}

// Count reports the memory of the device.
func (d *Device) Count(add func(name rdma.Counter, value uint64)) {
	add(rdma.LowWater, d.traffic.lowWaters)
	if d.closed {
		return
	}
	s := d.seg
	if s.heap {
		add(rdma.MemoryReceive, sizeOf[segmentHeader]()+uint64(len(s.cells))*lineBytes)
		d.countHeap(add)
	} else {
		p := s.geo.parts()
		add(rdma.MemoryReceive, residentBytes(s.mem[:p.slots]))
		add(rdma.MemoryTables, residentBytes(s.mem[p.slots:p.rings]))
		add(rdma.MemoryRings, residentBytes(s.mem[p.rings:p.end]))
	}
	known := uint64(d.peers.Len())
	add(rdma.MemoryPeers, known*sizeOf[peer]()+uint64(d.peers.Words())*sizeOf[*peer]())
	add(rdma.PeersKnown, known)
	add(rdma.PeersRinged, uint64(len(d.inbox.rings)))
}

// countHeap counts the parts that heap mode allocates on first use.
func (d *Device) countHeap(add func(name rdma.Counter, value uint64)) {
	s := d.seg
	for i := range s.blocks {
		if s.blocks[i].Load() != nil {
			n := uint64(smallBlockBytes)
			if i >= int(s.geo.smallBlocks) {
				n = largeBlockBytes
			}
			add(rdma.MemoryReceive, n)
		}
	}
	for i := range s.ringChunks {
		if r := s.ringChunks[i].Load(); r != nil {
			n := lineBytes + len(r.cells)*lineBytes
			if r.lazy.Load() != nil {
				n += int(s.geo.ringBytes)
			}
			add(rdma.MemoryRings, uint64(n))
		}
	}
	for i := range s.slotChunks {
		if c := s.slotChunks[i].Load(); c != nil {
			add(rdma.MemoryTables, sizeOf[[slotsPerChunk]slot]())
		}
	}
}

func sizeOf[T any]() uint64 { return uint64(reflect.TypeFor[T]().Size()) }
