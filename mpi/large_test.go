package mpi_test

// Messages, puts, gets and a broadcast of 5 GB: lengths beyond 32 bits. They need 10 GB of
// memory and minutes, so they are run manually, one device at a time:
//
//	go test ./mpi -run TestFiveGigabytes -large.full -large.over rd,rc,hybrid,ud,shm -v -timeout 60m

import (
	"encoding/binary"
	"flag"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

var (
	largeFull  = flag.Bool("large.full", false, "move 5 GB messages (needs 10 GB of memory; minutes)")
	largeOver  = flag.String("large.over", "rd,rc,hybrid,ud,shm", "over these channels, or networks such as ofi:net")
	largeBytes = flag.Int("large.bytes", 5_000_000_003, "of so many bytes")
)

func TestFiveGigabytes(t *testing.T) {
	if !*largeFull {
		t.Skip("needs 10 GB of memory; -large.full runs it")
	}
	for _, over := range strings.Split(*largeOver, ",") {
		t.Run(over, func(t *testing.T) {
			debug.FreeOSMemory() // of the one before
			cfg := &mpi.Config{Network: "iwarp", NoSharedMemory: true, Channel: over}
			switch {
			case over == "shm":
				cfg = &mpi.Config{}
			case strings.HasPrefix(over, "ofi"):
				cfg = &mpi.Config{Network: over, NoSharedMemory: true}
			}
			mpitest.RunConfig(t, 2, cfg, func(t *testing.T, c *mpi.Comm) { exchangeLarge(t, c, *largeBytes) })
		})
	}
}

func exchangeLarge(t *testing.T, c *mpi.Comm, n int) {
	b := make([]byte, n)
	start := time.Now()
	step := func(what string, seed uint64, at int, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if took := time.Since(start); c.Rank() == at {
			checkLarge(t, what, b, seed)
			t.Logf("%s of %d bytes: %.1f s", what, n, took.Seconds())
		}
		if err := c.Barrier(); err != nil {
			t.Fatal(err)
		}
		start = time.Now()
	}
	fillAt := func(rank int, seed uint64) {
		if c.Rank() == rank {
			fillLarge(b, seed)
		}
		step("fill", seed, -1, c.Barrier())
	}
	fillAt(0, 1)
	if c.Rank() == 0 {
		step("message", 1, 1, mpi.Send(c, b, 1, 0))
	} else {
		_, err := mpi.Recv(c, b, 0, 0)
		step("message", 1, 1, err)
	}
	fillAt(0, 2)
	step("broadcast", 2, 1, mpi.Bcast(c, b, 0))
	w, err := mpi.CreateWin(c, b)
	step("window", 0, -1, err)
	fillAt(0, 3)
	step("fence", 0, -1, w.Fence())
	if c.Rank() == 0 {
		err = w.Put(b, 1, 0)
	}
	if end := w.Fence(); err == nil {
		err = end
	}
	step("put", 3, 1, err)
	fillAt(0, 4)
	step("fence", 0, -1, w.Fence())
	if c.Rank() == 1 {
		err = w.Get(b, 0, 0)
	}
	if end := w.Fence(); err == nil {
		err = end
	}
	step("get", 4, 1, err)
	step("free", 0, -1, w.Free())
}

// fillLarge writes words that depend on their offset, and checkLarge checks every byte.
func fillLarge(b []byte, seed uint64) {
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], (uint64(i)+seed)*0x9E3779B97F4A7C15)
	}
	for i := len(b) &^ 7; i < len(b); i++ {
		b[i] = byte(i) + byte(seed)
	}
}

func checkLarge(t *testing.T, what string, b []byte, seed uint64) {
	t.Helper()
	var want [8]byte
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(want[:], (uint64(i)+seed)*0x9E3779B97F4A7C15)
		if !slices.Equal(b[i:i+8], want[:]) {
			t.Fatalf("%s: the word at byte %d is %x, want %x", what, i, b[i:i+8], want)
		}
	}
	for i := len(b) &^ 7; i < len(b); i++ {
		if b[i] != byte(i)+byte(seed) {
			t.Fatalf("%s: byte %d is %d", what, i, b[i])
		}
	}
}
