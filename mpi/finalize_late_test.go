package mpi

import (
	"sync"
	"testing"
	"time"
)

// TestLateInFinalize has a rank that needs long in Finalize before it comes to the collective
// call of Finalize, as one that writes a trace does. The others ask it meanwhile whether it
// will make their call: it will.
func TestLateInFinalize(t *testing.T) {
	const ranks, late = 3, 600 * time.Millisecond
	worlds, err := Local(ranks, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i, w := range worlds {
		wg.Go(func() {
			if err := w.Comm().Barrier(); err != nil {
				t.Errorf("rank %d: %v", i, err)
			}
			if i == ranks-1 {
				w.e.Finalizing()
				for start := time.Now(); time.Since(start) < late; time.Sleep(time.Millisecond) {
					w.e.Progress()
				}
			}
			if err := w.Finalize(); err != nil {
				t.Errorf("rank %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}
