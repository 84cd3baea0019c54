package rail

// What the device and its rails hold and have done, for rdma.CountingDevice.

import (
	"reflect"

	"github.com/muster-mpi/muster/rdma"
)

var _ rdma.CountingDevice = (*Device)(nil)

// Counters beside those that all devices have. CountBytes is followed by the name of a
// rail.
const (
	CountBytes rdma.Counter = "rail-bytes."   // that a rail was given, with what stands before each piece
	CountLeft  rdma.Counter = "rails.left"    // how often a rail was left for a peer
	CountBack  rdma.Counter = "rails.back"    // how often one was used again
	CountAgain rdma.Counter = "rails.again"   // pieces that went again over others
	CountTwice rdma.Counter = "rails.doubles" // pieces that came twice, because of that
)

// Count tells the counters of the device and of its rails.
func (d *Device) Count(add func(name rdma.Counter, value uint64)) {
	for _, r := range d.rails {
		if below, ok := r.Device.(rdma.CountingDevice); ok {
			below.Count(add)
		}
	}
	for i, c := range d.Counts() {
		add(CountBytes+rdma.Counter(d.rails[i].Name), c.Octets)
		add(CountLeft, c.Left)
		add(CountBack, c.Back)
		add(CountAgain, c.Again)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	add(CountTwice, d.drops.Doubles)
	if d.closed {
		return
	}
	buffers := uint64(0)
	for _, list := range [][][]byte{d.small, d.large} {
		for _, b := range list {
			buffers += uint64(cap(b))
		}
	}
	add(rdma.MemoryReceive, buffers)
	peers := uint64(cap(d.peers)) * sizeOf[peer]()
	for _, q := range d.pairs {
		for _, f := range q.flows {
			if f == nil {
				continue
			}
			peers += sizeOf[flow]() + uint64(cap(f.paths))*sizeOf[path]()
			for i := range f.paths {
				if f.paths[i].tickets != nil {
					peers += sizeOf[tickets]()
				}
			}
		}
	}
	add(rdma.MemoryPeers, peers)
}

func sizeOf[T any]() uint64 { return uint64(reflect.TypeFor[T]().Size()) }
