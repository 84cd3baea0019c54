package ddp

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

func TestHolds(t *testing.T) {
	all := make([]byte, 300)
	table := NewTable(seeded(1), 10)
	mr, err := table.RegisterMemory(0, all[100:200], 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		lo, hi int
		want   bool
	}{
		{100, 200, true}, {100, 101, true}, {199, 200, true}, {150, 150, true}, {200, 200, true},
		{99, 101, false}, {199, 201, false}, {0, 300, false}, {0, 50, false}, {250, 300, false},
	} {
		if got := table.Holds(Tag(mr.LKey), rdma.MemOf(all[x.lo:x.hi])); got != x.want {
			t.Errorf("the region of bytes 100 to 200 holds %d to %d: %v, want %v", x.lo, x.hi, got, x.want)
		}
	}
	if got := table.MemoryOf(Tag(mr.LKey)); got.Len() != 100 || got.Addr() != rdma.MemOf(all[100:]).Addr() {
		t.Errorf("the memory of the region is %d bytes at %#x", got.Len(), got.Addr())
	}
	if err := table.DeregisterMemory(mr); err != nil {
		t.Fatal(err)
	}
	if table.Holds(Tag(mr.LKey), rdma.MemOf(all[100:200])) || table.MemoryOf(Tag(mr.LKey)).Len() != 0 {
		t.Error("a region that was deregistered holds memory")
	}
}
