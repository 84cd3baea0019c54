package mpi_test

// Many unmatched sends to one peer. MPI lets a program start any number of sends before the
// receiver receives the first one, in any order (MPI-4.1 section 3.5): they must not fill a
// queue of the library so that a later message is blocked. See decision 036.

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

var (
	outstandingCount = flag.Int("outstanding.count", 0, "start so many sends of each size, for example 10000; 0: a sample")
	outstandingSize  = flag.Int("outstanding.size", 0, "of this size only, to see the memory of a fresh process")
)

// A short message arrives although hundreds of large ones before it wait for receives that
// are posted after its own.
func TestShortMessageBehindManyLargeOnes(t *testing.T) {
	for _, v := range []struct{ count, size int }{{300, 200 << 10}, {700, 16 << 10}} {
		t.Run(fmt.Sprintf("%d of %d KB", v.count, v.size>>10), func(t *testing.T) {
			mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
				const short = 1 << 20 // its tag
				if c.Rank() == 0 {
					buf, reqs := pattern(v.size, 3), make([]mpi.Request, v.count)
					for i := range reqs {
						reqs[i] = mpi.Isend(c, buf, 1, i)
					}
					noError(t, mpi.Send(c, []byte("short"), 1, short), "Send behind large messages")
					err := mpi.WaitAll(reqs...)
					noError(t, err, "WaitAll of the large messages")
					return
				}
				buf := make([]byte, v.size)
				_, err := mpi.Recv(c, buf, 0, short)
				noError(t, err, "Recv of the short message before the large ones")
				for i := range v.count {
					_, err := mpi.Recv(c, buf, 0, v.count-1-i)
					noError(t, err, "Recv of a large message")
					if i%100 == 0 {
						wantPattern(t, buf, 3, "large message")
					}
				}
			})
		})
	}
}

// outstanding is the sample: more than the 256 slots of the shared-memory queue, the 8,192
// regions that unmatched sends may register there, and the credit of 8 MB. make outstanding
// starts 10,000 of each size.
var outstanding = []struct{ size, count int }{{8, 2000}, {16 << 10, 9000}, {200 << 10, 400}, {1 << 20, 280}}

// A rank starts thousands of sends to one peer, which receives them in reverse order. All
// arrive, and neither side needs memory for more than the operations and the credit.
func TestManyOutstandingSends(t *testing.T) {
	unchecked(t)
	type way struct {
		name string
		cfg  *mpi.Config
	}
	ways := []way{{"as configured", nil}}
	for _, ch := range []string{"rd", "rc", "hybrid", "ud"} {
		if !mpitest.Launched() {
			ways = append(ways, way{ch, &mpi.Config{Network: "iwarp", NoSharedMemory: true, Channel: ch}})
		}
	}
	for _, w := range ways {
		for _, v := range outstanding {
			if *outstandingCount > 0 {
				v.count = *outstandingCount
			} else if w.cfg != nil || race.Enabled {
				v.count = min(v.count/2, 750)
			}
			if *outstandingSize != 0 && *outstandingSize != v.size {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d of %d bytes", w.name, v.count, v.size), func(t *testing.T) {
				mpitest.RunConfig(t, 2, w.cfg, func(t *testing.T, c *mpi.Comm) { manyOutstanding(t, c, v.count, v.size) })
			})
		}
	}
}

// manyOutstanding sends from four buffers, so that swapped messages are detected, and
// receives into one.
func manyOutstanding(t *testing.T, c *mpi.Comm, count, size int) {
	const kinds = 4
	var bufs [kinds][]byte
	for k := range bufs {
		bufs[k] = pattern(size, 10+k)
	}
	in := make([]byte, size)
	barrier(t, c)
	before := markMemory()
	barrier(t, c)
	start := time.Now()
	var heap int64
	if c.Rank() == 0 {
		reqs := make([]mpi.Request, count)
		for i := range reqs {
			reqs[i] = mpi.Isend(c, bufs[i%kinds], 1, i)
		}
		heap = before.heapGrowth()
		err := mpi.WaitAll(reqs...)
		noError(t, err, "WaitAll")
	} else {
		for i := count - 1; i >= 0; i-- {
			st, err := mpi.Recv(c, in, 0, i)
			noError(t, err, fmt.Sprintf("Recv of message %d", i))
			if st.Bytes != size || !bytes.Equal(in, bufs[i%kinds]) {
				t.Fatalf("message %d of %d bytes came with %d, or with the bytes of another", i, size, st.Bytes)
			}
			if i == count-1 { // all before it have been announced
				heap = before.heapGrowth()
			}
		}
	}
	took := time.Since(start)
	heap = max(heap, before.heapGrowth())
	resident := residentPeak() - before.resident
	t.Logf("rank %d: %d sends of %d bytes in %v; the heap grew by %d KB, resident memory by %d KB at the most",
		c.Rank(), count, size, took.Round(time.Millisecond), heap>>10, resident>>10)
	// Each operation has a record at the sender and an unexpected message at the receiver,
	// whose data is bounded by the credit of 8 MB. Devices keep pools of up to some tens of
	// MB. Garbage is included, and in one process both ranks are counted together.
	if most := int64(64<<20 + 4096*count); !race.Enabled && (heap > most || resident > most) {
		t.Errorf("rank %d: memory grew by %d KB of heap, %d KB resident, for %d sends of %d bytes; it should be %d KB at the most",
			c.Rank(), heap>>10, resident>>10, count, size, most>>10)
	}
	barrier(t, c)
}

// memoryMark is the memory of a process at a point in time.
type memoryMark struct{ heap, resident int64 }

// markMemory returns free memory to the system and resets the peak of resident memory.
func markMemory() memoryMark {
	debug.FreeOSMemory()
	os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // proc(5): resets VmHWM; without it the peak is that of the process
	return memoryMark{heapSize(), residentPeak()}
}

func (m memoryMark) heapGrowth() int64 { return heapSize() - m.heap }

// heapSize returns the size of the heap, including garbage.
func heapSize() int64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// residentPeak returns VmHWM in bytes, or 0 without /proc.
func residentPeak() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}
