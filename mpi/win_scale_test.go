package mpi

import (
	"runtime"
	"testing"

	"github.com/muster-mpi/muster/internal/rma"
)

// TestWindowOfAMillionRanks checks what a rank keeps for a window of a million ranks before it
// uses one of them: hardly more than for one of 64. It makes the parts that create makes,
// without the ranks.
func TestWindowOfAMillionRanks(t *testing.T) {
	worlds, err := Local(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer worlds[0].Finalize()
	windowBytes(t, worlds[0], 64) // fills the pools of the engine
	few, many := windowBytes(t, worlds[0], 64), windowBytes(t, worlds[0], 1_000_000)
	t.Logf("a window of 64 ranks takes %d bytes, one of a million %d; the buffer for requests is %d of them", few, many, rma.RequestMax)
	if many-few > 1024 {
		t.Errorf("a window of a million ranks takes %d bytes more than one of 64, want at most 1024", many-few)
	}
}

// windowBytes returns the memory of a window of so many ranks, of which 64 are on this host.
func windowBytes(t *testing.T, world *World, ranks int) int {
	t.Helper()
	const windows = 50
	kept := make([]*Win[int64], windows)
	c := world.Comm()
	before := heapInUse()
	for i := range kept {
		w := &Win[int64]{}
		w.c, w.epochs, w.elements = c, rma.NewEpochs(ranks), elementsOf[int64]()
		w.lengths, w.mem = lengths{each: 1}, make([]int64, 1)
		w.direct = make([][]int64, 64)
		pt := c.pt
		pt.Ctx += uint32(1000 + i)
		far, _, err := c.e.OpenWindow(pt, nil, ranks, rma.NewTarget(rawBytes(w.mem), w.elements), rawBytes(w.mem))
		if err != nil {
			t.Fatal(err)
		}
		w.far = far
		kept[i] = w
	}
	bytes := (heapInUse() - before) / windows
	for _, w := range kept {
		if err := w.far.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return bytes
}

func heapInUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
