//go:build !muster_portable

package mpi_test

import (
	"testing"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// Puts and gets transfer correct data, whether the device uses the program's buffer or the
// bytes are copied: short and long ones, many under way at once, and with buffers that are
// changed as soon as MPI allows it.
func TestRegisteredPutsAndGets(t *testing.T) {
	rdmatest.NeedLocking(t)
	for _, v := range []struct{ channel, frequent string }{
		{"rc", "auto"}, {"rc", "always"}, {"rc", "never"}, {"rd", "auto"}, {"rd", "always"}, {"rd", "never"},
	} {
		t.Run(v.channel+" "+v.frequent, func(t *testing.T) {
			mpitest.RunConfig(t, 2, strict(v.channel, v.frequent, ""), func(t *testing.T, c *mpi.Comm) {
				const room = 600_000
				w, err := mpi.AllocateWin[byte](c, room)
				noError(t, err, "AllocateWin")
				noError(t, w.LockAll(), "LockAll")
				peer := 1 - c.Rank()
				moves := uint64(0)
				for _, size := range []int{1, 127, 128, 1000, 1024, 8192, 20_000, 65_536, 65_537, 200_000} {
					moves += putAndGet(t, w, peer, size, 12, min(room/size, 100))
				}
				noError(t, w.UnlockAll(), "UnlockAll")
				_, did, err := inspect.FrequentBuffers(c, peer)
				noError(t, err, "FrequentUse")
				switch {
				case did.Refused > 0:
					t.Errorf("%d buffers could not be registered", did.Refused)
				case v.frequent == "never" && did != (inspect.BufferStats{}):
					t.Errorf("uses are counted that nobody asks for: %+v", did)
				case v.frequent == "always" && did.Direct < moves:
					t.Errorf("%d uses of %d puts and gets were of the buffer itself", did.Direct, moves)
				}
				noError(t, w.Free(), "Free")
			})
		})
	}
}

// putAndGet returns the number of puts and gets that count as uses.
func putAndGet(t *testing.T, w *mpi.Win[byte], peer, size, rounds, many int) (counted uint64) {
	t.Helper()
	out, in := make([]byte, size), make([]byte, size*many)
	for i := range rounds {
		for j := range out {
			out[j] = byte(i + j + size)
		}
		for k := range many {
			noError(t, w.Put(out, peer, k*size), "Put")
		}
		noError(t, w.Flush(peer), "Flush")
		clear(out) // it is ours again
		for k := range many {
			noError(t, w.Get(in[k*size:][:size], peer, k*size), "Get")
		}
		noError(t, w.Flush(peer), "Flush")
		for j := range in {
			if want := byte(i + j%size + size); in[j] != want {
				t.Fatalf("round %d of %d bytes: byte %d is %d, want %d", i, size, j, in[j], want)
			}
		}
		if size >= 128 && size <= 64<<10 {
			counted += 2 * uint64(many)
		}
	}
	return counted
}

// A put from a buffer that is used once is copied; one that is used often is not.
func TestOnlyFrequentPutsRegistered(t *testing.T) {
	if race.Enabled {
		t.Skip("the choice depends on measured costs, which the race detector changes")
	}
	rdmatest.NeedLocking(t)
	for _, channel := range []string{"rc", "rd"} {
		mpitest.RunConfig(t, 2, strict(channel, "auto", ""), func(t *testing.T, c *mpi.Comm) {
			const size = 60_000
			w, err := mpi.AllocateWin[byte](c, size)
			noError(t, err, "AllocateWin")
			noError(t, w.LockAll(), "LockAll")
			if c.Rank() == 0 {
				putOften(t, c, w, size)
			}
			noError(t, w.UnlockAll(), "UnlockAll")
			noError(t, w.Free(), "Free")
		})
	}
}

func putOften(t *testing.T, c *mpi.Comm, w *mpi.Win[byte], size int) {
	rows, _, err := inspect.FrequentBuffers(c, 1)
	noError(t, err, "FrequentUse")
	uses := 0
	for _, r := range rows {
		if r.Lo <= size && size <= r.Hi {
			uses = int(r.OneSided)
		}
		if r.Copy <= r.LookupOneSided && r.OneSided > 0 || r.LookupOneSided < 0 {
			t.Errorf("the row %+v", r)
		}
	}
	if uses == 0 {
		t.Fatalf("a copy of %d bytes costs less than twice a look-up: %+v", size, rows)
	}
	once := make([]byte, 40*size)
	for i := range 20 {
		noError(t, w.Put(once[2*i*size:][:size], 1, 0), "Put")
		noError(t, w.Get(once[(2*i+1)*size:][:size], 1, 0), "Get")
		noError(t, w.Flush(1), "Flush")
	}
	_, before, _ := inspect.FrequentBuffers(c, 1)
	if before.Direct > 0 && uses/4 > 1 || before.Copied+before.Direct < 40 {
		t.Errorf("of 40 puts and gets of buffers of their own %d were made from there, %d copied", before.Direct, before.Copied)
	}
	for range uses + 10 {
		noError(t, w.Put(once[:size], 1, 0), "Put")
		noError(t, w.Flush(1), "Flush")
	}
	if _, did, _ := inspect.FrequentBuffers(c, 1); did.Direct < before.Direct+10 {
		t.Errorf("after %d puts from a buffer, of which %d pay, %d were made from there", uses+11, uses, did.Direct)
	}
}

func TestRegisteredPutsAndGetsAllocateNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates itself")
	}
	rdmatest.NeedLocking(t)
	for _, frequent := range []string{"always", "never"} {
		cfg := strict("rc", frequent, "")
		cfg.Advanced.Yield = 1 << 20 // who parks writes down what it waits for, which allocates
		mpitest.RunConfig(t, 2, cfg, func(t *testing.T, c *mpi.Comm) {
			w, err := mpi.AllocateWin[byte](c, 8192)
			noError(t, err, "AllocateWin")
			noError(t, w.LockAll(), "LockAll")
			if c.Rank() == 0 {
				out, in := make([]byte, 8192), make([]byte, 8192)
				round := func() {
					_ = w.Put(out, 1, 0)
					_ = w.Get(in, 1, 0)
					_ = w.Flush(1)
				}
				for range 100 {
					round()
				}
				if n := testing.AllocsPerRun(500, round); n != 0 {
					t.Errorf("%s: a put, a get and a flush allocate %v times", frequent, n)
				}
			}
			noError(t, w.UnlockAll(), "UnlockAll")
			noError(t, w.Free(), "Free")
		})
	}
}
