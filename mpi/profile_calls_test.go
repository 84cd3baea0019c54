package mpi_test

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/prof"
)

// ping is a function that makes calls of its own: its lines are call sites.
func ping(c *mpi.Comm, buf []byte) error {
	if c.Rank() == 0 {
		return mpi.Send(c, buf, 1, 1)
	}
	_, err := mpi.Recv(c, buf, 0, 1)
	return err
}

// sitesNamed returns the call sites of a routine.
func sitesNamed(p *prof.Counters, routine string) (all []prof.CallSite) {
	for _, s := range p.Sites {
		if s.Routine == routine {
			all = append(all, s)
		}
	}
	return all
}

func TestProfileCallSites(t *testing.T) {
	var mu sync.Mutex
	counters := make([]prof.Counters, 2)
	_, file, line, _ := runtime.Caller(0)
	cfg := &mpi.Config{Profile: filepath.Join(t.TempDir(), "p.json")}
	profiled(t, 2, cfg, nil, func(c *mpi.Comm) error {
		buf := make([]byte, 300)
		for range 10 {
			if err := ping(c, buf[:100]); err != nil {
				return err
			}
		}
		for i := range 2 { // line+11 and line+15
			if err := c.Barrier(); err != nil {
				return err
			}
			if i == 1 {
				if err := c.Barrier(); err != nil {
					return err
				}
			}
		}
		peer := 1 - c.Rank()
		if c.Rank() == 1 {
			time.Sleep(20 * time.Millisecond) // a late sender
		}
		rs := []mpi.Request{mpi.Irecv(c, buf, peer, 2), mpi.Isend(c, buf[:7], peer, 2)}
		if err := mpi.WaitAll(rs...); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		counters[c.Rank()] = c.World().Profile()
		return nil
	})
	name := filepath.Base(filepath.Dir(file)) + "/" + filepath.Base(file)
	send := sitesNamed(&counters[0], "Send")
	if len(send) != 1 || send[0].Calls.Sum != 10 || send[0].Bytes.Sum != 1000 || send[0].Time.Sum == 0 || !strings.HasPrefix(send[0].Site, name) ||
		!strings.HasSuffix(send[0].Function, ".ping") {
		t.Errorf("rank 0 sent ten messages of 100 bytes in ping; the profile has %+v", send)
	}
	if recv := sitesNamed(&counters[1], "Recv"); len(recv) != 1 || recv[0].Calls.Sum != 10 || recv[0].Bytes.Sum != 1000 || recv[0].Shortest != 100 {
		t.Errorf("rank 1 received ten messages of 100 bytes in ping; the profile has %+v", recv)
	}
	got := map[string]uint64{}
	for _, b := range sitesNamed(&counters[0], "Barrier") {
		got[b.Site] = b.Calls.Sum
	}
	if want := map[string]uint64{at(name, line+10): 2, at(name, line+14): 1}; len(got) != 2 || got[at(name, line+10)] != 2 || got[at(name, line+14)] != 1 {
		t.Errorf("the barriers are %v, want %v", got, want)
	}
	if irecv := sitesNamed(&counters[0], "Irecv"); len(irecv) != 1 || irecv[0].Bytes.Sum != 7 {
		t.Errorf("Irecv got a message of 7 bytes; the profile has %+v", irecv)
	}
	if w := counters[0].Waits; len(w) != 1 || w[0].For != 1 || w[0].Nanos < 15_000_000 {
		t.Errorf("rank 0 waited 20 ms for rank 1; the profile has %+v", w)
	}
	if n := counters[0].Of(prof.BuffersReused); counters[0].Of(prof.BuffersSent) != 11 || n != 10 || counters[0].Of(prof.BuffersMostUses) != 11 {
		t.Errorf("of 11 messages from one buffer, %d reuse it, want 10", n)
	}
	if in := counters[0].Of(prof.TimeInCalls); in < 15_000_000 {
		t.Errorf("rank 0 was in calls for %d ns, and waited for 20 ms", in)
	}
}

func at(file string, line int) string { return file + ":" + strconv.Itoa(line) }

// TestProfileCallsDoNotAllocate checks the cost of the profile.
func TestProfileCallsDoNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	profiled(t, 2, &mpi.Config{Profile: filepath.Join(t.TempDir(), "p.json")}, nil, func(c *mpi.Comm) error {
		buf := make([]byte, 8)
		peer := 1 - c.Rank()
		exchange := func() {
			if _, err := mpi.Sendrecv(c, buf, peer, 0, buf, peer, 0); err != nil {
				t.Error(err)
			}
		}
		exchange()
		if c.Rank() == 1 {
			for range 101 {
				exchange()
			}
		} else if n := testing.AllocsPerRun(100, exchange); n >= 1 {
			t.Errorf("a profiled call allocates %v times", n)
		}
		// Ranks are goroutines: what the other one allocates is counted, too, so it must not
		// write its report yet.
		return c.Barrier()
	})
}

// TestProfileByThreads has several goroutines in calls at the same time.
func TestProfileByThreads(t *testing.T) {
	const threads, calls = 4, 50
	profiled(t, 2, &mpi.Config{Profile: filepath.Join(t.TempDir(), "p.json")}, nil, func(c *mpi.Comm) error {
		var wg sync.WaitGroup
		for tag := range threads {
			wg.Go(func() {
				buf := make([]byte, 8)
				for range calls {
					if _, err := mpi.Sendrecv(c, buf, 1-c.Rank(), tag, make([]byte, 8), 1-c.Rank(), tag); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		p := c.World().Profile()
		if s := sitesNamed(&p, "Sendrecv"); len(s) != 1 || s[0].Calls.Sum != threads*calls {
			t.Errorf("%d goroutines made %d calls each; the profile has %+v", threads, calls, s)
		}
		return nil
	})
}
