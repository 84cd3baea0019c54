package mpi_test

// Memory outside of the heap (MPI-4.1 section 9.2).

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestAllocatedMemoryCarriesMessages(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		next, prev := neighbors(c)
		for _, size := range []int{1, 8, 5000, 65537, 1 << 20, 3<<20 - 300_000} {
			out, err := mpi.Alloc[byte](c, size)
			noError(t, err, "Alloc for sending")
			in, err := mpi.Alloc[byte](c, size)
			noError(t, err, "Alloc for receiving")
			if len(in) != size || cap(in) != size {
				t.Fatalf("length %d and capacity %d, want %d", len(in), cap(in), size)
			}
			for i, b := range in {
				if b != 0 {
					t.Fatalf("byte %d of %d is %d, want 0", i, size, b)
				}
			}
			copy(out, pattern(size, 9))
			runtime.GC()
			_, err = mpi.Sendrecv(c, out, next, 1, in, prev, 1)
			noError(t, err, "Sendrecv")
			wantPattern(t, in, 9, fmt.Sprintf("%d bytes in memory of Alloc", size))
			noError(t, mpi.Free(c, out), "Free")
			noError(t, mpi.Free(c, in), "Free")
		}
	})
}

func TestAllocatedMemoryIsOutsideOfTheHeap(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere it is ordinary memory")
	}
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		const size = 256 << 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		mem, err := mpi.Alloc[float64](c, size/8)
		noError(t, err, "Alloc")
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > size/16 {
			t.Errorf("the heap gave %d bytes while Alloc gave %d", grown, size)
		}
		mem[len(mem)-1] = 1
		noError(t, mpi.Free(c, mem), "Free")
	})
}

func TestMemoryIsFreedOnceAndWhole(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		mem, err := mpi.Alloc[int64](c, 1000)
		noError(t, err, "Alloc")
		for what, part := range map[string][]int64{"a part": mem[1:], "a slice of the heap": make([]int64, 1000)} {
			err := mpi.Free(c, part)
			wantClass(t, err, mpi.ErrBuffer, "Free of "+what)
			if !strings.Contains(err.Error(), "as Alloc gave it") {
				t.Errorf("Free of %s says %q, and not what to do", what, err)
			}
		}
		mem[999] = 5
		noError(t, mpi.Free(c, mem[:0]), "Free of the slice, cut to nothing")
		wantClass(t, mpi.Free(c, mem), mpi.ErrBuffer, "second Free")
		noError(t, mpi.Free[int64](c, nil), "Free of nil")
	})
}

func TestAllocationFailure(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		_, err := mpi.Alloc[*int](c, 1)
		wantClass(t, err, mpi.ErrType, "Alloc of pointers")
		_, err = mpi.Alloc[int](c, -1)
		wantClass(t, err, mpi.ErrCount, "Alloc of -1 elements")
		_, err = mpi.Alloc[[1 << 20]int](c, 1<<62)
		wantClass(t, err, mpi.ErrTooLarge, "Alloc of 2^85 bytes")
		if runtime.GOOS == "linux" {
			// Even a system that overcommits has no address space for a third one.
			for range 3 {
				var mem []byte
				if mem, err = mpi.Alloc[byte](c, 1<<46); err != nil {
					break
				}
				defer mpi.Free(c, mem)
			}
			wantClass(t, err, mpi.ErrNoMem, "Alloc of 64 TB, several times")
		}
		for _, n := range []int{0, 5} {
			none, err := mpi.Alloc[struct{}](c, n)
			noError(t, err, "Alloc of elements without size")
			if len(none) != n {
				t.Errorf("%d elements without size, want %d", len(none), n)
			}
			noError(t, mpi.Free(c, none), "Free of elements without size")
		}
		empty, err := mpi.Alloc[int](c, 0)
		noError(t, err, "Alloc of nothing")
		noError(t, mpi.Free(c, empty), "Free of nothing")
	})
}

func TestResultsCanBeReadAfterFinalize(t *testing.T) {
	worlds, err := mpi.Local(1, nil)
	noError(t, err, "Local")
	c := worlds[0].Comm()
	mem, err := mpi.Alloc[int](c, 100_000)
	noError(t, err, "Alloc")
	mem[99_999] = 7
	done := make(chan error, 1)
	go func() { done <- worlds[0].Finalize() }()
	select {
	case err := <-done:
		noError(t, err, "Finalize")
	case <-time.After(20 * time.Second):
		t.Fatal("Finalize did not return in 20 s")
	}
	if mem[99_999] != 7 {
		t.Errorf("the last element is %d after Finalize, want 7", mem[99_999])
	}
	noError(t, mpi.Free(c, mem), "Free after Finalize")
	wantClass(t, mpi.Free(c, mem), mpi.ErrBuffer, "second Free after Finalize")
}

func TestMemoryOfOneWorldIsNotFreedByAnother(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		worlds, err := mpi.Local(1, nil)
		noError(t, err, "Local")
		mem, err := mpi.Alloc[int](c, 1000)
		noError(t, err, "Alloc")
		wantClass(t, mpi.Free(worlds[0].Comm(), mem), mpi.ErrBuffer, "Free on another world")
		noError(t, mpi.Forget(c, make([]int, 5)), "Forget")
		noError(t, mpi.Free(c, mem), "Free")
		noError(t, worlds[0].Finalize(), "Finalize")
	})
}
