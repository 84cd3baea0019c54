//go:build !muster_portable

package iwarp

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

func countsOf(d rdma.Device) map[rdma.Counter]uint64 {
	got := map[rdma.Counter]uint64{}
	d.Caps().Count(func(name rdma.Counter, value uint64) { got[name] += value })
	return got
}

// alone returns the memory of a device's connections without the buffers that they share:
// as many as were ever needed at once, however many connections there are.
func alone(d rdma.Device, counts map[rdma.Counter]uint64) int64 {
	i := d.(*device)
	i.mu.Lock()
	defer i.mu.Unlock()
	return int64(counts[rdma.MemoryConnections]) - int64(len(i.buffers)+i.lentOut)*ioBuffer
}

// The memory of a connection is counted, without the memory that all share.
func TestCountOfConnections(t *testing.T) {
	few, many := newManyPeers(t, 4), newManyPeers(t, 12)
	a, b := countsOf(few.hub.dev), countsOf(many.hub.dev)
	if a[rdma.ConnectionsRC] != 4 || b[rdma.ConnectionsRC] != 12 || b[rdma.Sockets] != 13 {
		t.Errorf("4 and 12 connections: %v and %v", a, b)
	}
	if n, counted := a[rdma.SegmentsRetransmitted]; n != 0 || !counted {
		t.Errorf("the loopback interface loses nothing, but %d segments were retransmitted", n)
	}
	each := (alone(many.hub.dev, b) - alone(few.hub.dev, a)) / 8
	if each < 1<<8 || each > 1<<20 {
		t.Errorf("a connection takes %d bytes: want more than a header, and less than a megabyte", each)
	}
	if a[rdma.MemoryKernel] == 0 || b[rdma.MemoryKernel] <= a[rdma.MemoryKernel] {
		t.Errorf("the kernel holds %d and %d bytes", a[rdma.MemoryKernel], b[rdma.MemoryKernel])
	}
	many.hub.dev.Close()
	if after := countsOf(many.hub.dev); after[rdma.ConnectionsRC] != 0 || after[rdma.MemoryConnections] != 0 {
		t.Errorf("after Close: %v", after)
	}
}
