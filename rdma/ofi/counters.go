//go:build ofi && cgo && linux

package ofi

// Memory counters, for rdma.Caps: the device's own buffers. libfabric does not
// report the memory of its providers.

import (
	"reflect"

	"github.com/muster-mpi/muster/rdma"
)

// Caps returns what the device can do in addition to rdma.Device. A completion queue shows
// whether the provider has something to wait on.
func (d *device) Caps() rdma.Caps {
	c := rdma.Caps{Count: d.Count}
	if len(d.cqs) > 0 && d.cqs[0].q.fd >= 0 {
		c.Notify = rdma.NotifyAny
	}
	return c
}

// Count reports the memory of the device.
func (d *device) Count(add func(name rdma.Counter, value uint64)) {
	if d.closed {
		return
	}
	buffer := uint64(d.sizes.buffer)
	for _, s := range d.srqs {
		if s.lend {
			add(rdma.MemoryReceive, uint64(s.depth)*buffer)
		}
	}
	if len(d.qps) > 0 {
		add(rdma.MemorySend, uint64(d.sizes.sends)*buffer)
	}
	add(rdma.MemoryTables, uint64(cap(d.regions))*sizeOf[registration]()+uint64(cap(d.held))*sizeOf[rdma.Mem]())
	names := uint64(0)
	for _, name := range d.names {
		names += uint64(len(name)) + sizeOf[string]() + sizeOf[rdma.PeerID]()
	}
	add(rdma.MemoryPeers, names)
	add(rdma.PeersKnown, uint64(len(d.names)))
	if d.cfg.Transport == rdma.RC {
		add(rdma.ConnectionsRC, uint64(len(d.qps)))
	}
}

func sizeOf[T any]() uint64 { return uint64(reflect.TypeFor[T]().Size()) }
