package shm

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// counted returns the counters of a device by name.
func counted(d *Device) map[rdma.Counter]uint64 {
	got := map[rdma.Counter]uint64{}
	d.Count(func(name rdma.Counter, value uint64) { got[name] += value })
	return got
}

// A busy peer gets a ring, and the receiver's memory grows by its size.
func TestCountOfRings(t *testing.T) {
	ranks := heapRanks(t, 3, Config{})
	before := counted(ranks[1].dev)
	if before[rdma.MemoryRings] != 0 || before[rdma.PeersRinged] != 0 || before[rdma.PeersKnown] != 3 || before[rdma.MemoryReceive] == 0 {
		t.Errorf("before any message: %v", before)
	}
	for i := range 2 * ringAfter {
		if err := ranks[0].send(1, pattern(i, 100)); err != nil {
			t.Fatal(err)
		}
		if _, err := ranks[1].next(); err != nil {
			t.Fatal(err)
		}
	}
	after := counted(ranks[1].dev)
	g := ranks[1].dev.seg.geo
	ring := uint64(lineBytes + int(g.ringCells)*lineBytes + int(g.ringBytes))
	if after[rdma.PeersRinged] != 1 || after[rdma.MemoryRings] != ring {
		t.Errorf("one peer has a ring of %d bytes: %v", ring, after)
	}
	if grown := after[rdma.MemoryReceive] - before[rdma.MemoryReceive]; grown > 2*smallBlockBytes {
		t.Errorf("the shared queue grew by %d bytes, want at most two blocks: its owner polled after each message", grown)
	}
}

// Untouched parts of a mapped segment use no memory.
func TestCountOfTouchedPages(t *testing.T) {
	d, err := Open(Config{Peers: 4, Rings: 3})
	if err != nil {
		t.Skipf("no segment: %v", err)
	}
	defer d.Close()
	got := counted(d)
	if got[rdma.MemoryRings] != 0 {
		t.Errorf("%d bytes of rings are touched, but there are none", got[rdma.MemoryRings])
	}
	if got[rdma.MemoryReceive] == 0 || got[rdma.MemoryReceive] >= uint64(d.seg.geo.parts().slots) {
		t.Errorf("%d bytes of the shared queue are touched: its head should be, and not all of it", got[rdma.MemoryReceive])
	}
	d.seg.ring(1).bytes[0] = 1
	if n := counted(d)[rdma.MemoryRings]; n == 0 || n > 64<<10 {
		t.Errorf("after one byte was written, %d bytes of rings are touched", n)
	}
}
