package mpi_test

// Asynchronous progress: large messages are transferred while both ranks are outside of the
// library.

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
)

// inBackground is mpitest.Run with asynchronous progress. A job must have been started with
// asynchronous progress.
func inBackground(t *testing.T, n int, cfg mpi.Config, fn func(t *testing.T, c *mpi.Comm)) {
	t.Helper()
	unchecked(t)
	if !mpitest.Launched() {
		cfg.Progress = "async"
		mpitest.RunConfig(t, n, &cfg, fn)
		return
	}
	if os.Getenv("MUSTER_PROGRESS") != "async" || cfg != (mpi.Config{}) {
		t.Skip("wants MUSTER_PROGRESS=async, and the configuration of a job comes from its environment")
	}
	mpitest.Run(t, n, fn)
}

// sawAll waits, without calling the library, until every page of a buffer has changed.
func sawAll(buf []byte, old byte) bool {
	return mpi.Eventually(10*time.Second, func() bool {
		if last := len(buf) - 1; peek(buf, last) == old {
			return false
		}
		for i := 0; i < len(buf); i += 4096 {
			if peek(buf, i) == old {
				return false
			}
		}
		return true
	})
}

// peek reads a byte that the library may be writing, which is the purpose of the test.
//
//go:noinline
//go:norace
func peek(buf []byte, i int) byte { return buf[i] }

// Neither rank is in the library between the start of its operation and the moment
// when all bytes have been seen.
func TestLargeMessagesMoveWhileRanksCompute(t *testing.T) {
	for _, proto := range append(p2p.Rendezvous(), "") {
		for _, noVM := range []bool{false, true} {
			cfg := mpi.Config{Advanced: mpi.Advanced{Rendezvous: proto, NoProcessVM: noVM}}
			t.Run(fmt.Sprintf("rendezvous=%s,messages=%v", proto, noVM), func(t *testing.T) {
				seen := make(chan struct{}, 1) // not a call of the library
				inBackground(t, 2, cfg, func(t *testing.T, c *mpi.Comm) {
					meet(t, c)
					for i := range 12 {
						moveUnwatched(t, c, i, []int{large, 1 << 20}[i/6], i%2 == 0, seen)
					}
				})
			})
		}
	}
}

func moveUnwatched(t *testing.T, c *mpi.Comm, i, size int, senderFirst bool, seen chan struct{}) {
	t.Helper()
	word, peer := []byte{0}, 1-c.Rank()
	sends := c.Rank() == 1
	start := func() (r mpi.Request, in []byte) {
		if sends {
			return mpi.Isend(c, []byte(strings.Repeat(string(rune('a'+i)), size)), peer, 5), nil
		}
		in = make([]byte, size)
		return mpi.Irecv(c, in, peer, 5), in
	}
	var r mpi.Request
	var in []byte
	if senderFirst == sends {
		r, in = start()
		noError(t, mpi.Send(c, word, peer, 6), "the word that this rank has started")
	} else {
		_, err := mpi.Recv(c, word, peer, 6)
		noError(t, err, "the word that the other has started")
		r, in = start()
	}
	switch {
	case !sends:
		if !sawAll(in, 0) {
			t.Errorf("transfer %d of %d bytes, sender first %v: the data did not come while nobody called", i, size, senderFirst)
		}
		if !mpitest.Launched() {
			seen <- struct{}{}
		}
	case mpitest.Launched():
		time.Sleep(100 * time.Millisecond) // a process cannot see what another has seen
	default:
		<-seen
	}
	noError(t, waitErr(r), "Wait")
	if !sends {
		for k, b := range in {
			if b != byte('a'+i) {
				t.Fatalf("transfer %d: byte %d is %q", i, k, b)
			}
		}
	}
}

// Short messages, blocking calls and large messages that are waited for at once must not
// activate the progress thread.
func TestShortMessagesNeedNoBackground(t *testing.T) {
	inBackground(t, 2, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		meet(t, c)
		before, on := inspect.Progress(c)
		if !on {
			t.Error("BackgroundProgress says that it is off")
		}
		peer := 1 - c.Rank()
		for i, size := range []int{0, 8, 1000, 4000} {
			r := mpi.Irecv(c, make([]byte, size), peer, i)
			noError(t, waitErr(mpi.Isend(c, make([]byte, size), peer, i)), "Isend")
			noError(t, waitErr(r), "Irecv")
		}
		for i := range 4 {
			if i%2 == c.Rank() {
				noError(t, mpi.Send(c, make([]byte, large), peer, 7), "Send")
			} else {
				noError(t, second(mpi.Recv(c, make([]byte, large), peer, 7)), "Recv")
			}
		}
		barrier(t, c)
		if after, _ := inspect.Progress(c); after != before {
			t.Errorf("rank %d: the thread was used: %+v, before %+v", c.Rank(), after, before)
		}
	})
}

// A rank that leaves a large receive open and does nothing uses no CPU.
func TestIdleBackgroundUsesLittleCPU(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a third of a second")
	}
	inBackground(t, 2, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		meet(t, c)
		r := mpi.Irecv(c, make([]byte, large), 1-c.Rank(), 1)
		usesLittleCPU(t, c, "being idle for 300 ms, with a receive on each rank,", 100*time.Millisecond, func() time.Duration {
			barrier(t, c)
			before, _ := cputime.Used()
			time.Sleep(300 * time.Millisecond) // the interval that is measured
			after, _ := cputime.Used()
			return after - before
		})
		noError(t, mpi.Send(c, make([]byte, large), 1-c.Rank(), 1), "Send")
		noError(t, waitErr(r), "Wait")
	})
}

// Everything that a rank may do while large operations are under way: short
// messages, barriers, probes, Test, several goroutines.
func TestCallsBesideTheBackground(t *testing.T) {
	inBackground(t, 2, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		meet(t, c)
		peer := 1 - c.Rank()
		for round := range 20 {
			in := make([]byte, large)
			r := mpi.Irecv(c, in, peer, 10)
			noError(t, second(mpi.Sendrecv(c, []int{round}, peer, 11, []int{0}, peer, 11)), "Sendrecv")
			barrier(t, c)
			s := mpi.Isend(c, pattern(large, round), peer, 10)
			var wg sync.WaitGroup
			for g := range 3 {
				wg.Go(func() {
					noTestError(t, second(mpi.Sendrecv(c, pattern(70_000, g), peer, 20+g, make([]byte, 70_000), peer, 20+g)), "Sendrecv beside")
				})
			}
			noError(t, mpi.Send(c, []int{1}, peer, 12), "Send")
			noError(t, second(c.Probe(peer, 12)), "Probe")
			noError(t, second(mpi.Recv(c, []int{0}, peer, 12)), "Recv")
			wg.Wait()
			for done := false; !done; {
				var err error
				_, done, err = r.Test()
				noError(t, err, "Test")
			}
			wantPattern(t, in, round, "what came in the background")
			noError(t, waitErr(s), "Wait")
		}
	})
}

// noTestError is noError for goroutines that are not ranks.
func noTestError(t *testing.T, err error, what string) {
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func TestTrafficInBackground(t *testing.T) {
	inBackground(t, 3, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		traffic(t, c, 3, 25, []int{10, 5000, 70_000, large, 1 << 20})
	})
}

// A receive from a failed rank completes with an error, although the progress thread drives
// it.
func TestBackgroundOfADeadPeer(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("TestProcessDiesInBackground does it with processes")
	}
	worlds, err := mpi.Local(2, &mpi.Config{Progress: "async"})
	noError(t, err, "Local")
	r := mpi.Irecv(worlds[0].Comm(), make([]byte, large), 1, 1)
	s := mpi.Isend(worlds[0].Comm(), make([]byte, large), 1, 2)
	inspect.FailLocal(worlds, 1, "the test says so")
	wantClass(t, waitErr(r), mpi.ErrProcAborted, "a receive from a dead rank")
	wantClass(t, waitErr(s), mpi.ErrProcAborted, "a send to a dead rank")
	inspect.FailLocal(worlds, 0, "the test says so")
	for _, w := range worlds {
		_ = w.Finalize() // it fails, and yet ends the threads
	}
	if n := progressThreads(); n != 0 {
		t.Errorf("%d threads are left after Finalize", n)
	}
}

// Finalize stops the progress thread.
func TestFinalizeEndsTheBackground(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("makes its own job")
	}
	worlds, err := mpi.Local(2, &mpi.Config{Progress: "async"})
	noError(t, err, "Local")
	if !mpi.Eventually(5*time.Second, func() bool { return progressThreads() >= 2 }) {
		t.Fatalf("%d threads for two ranks", progressThreads())
	}
	var wg sync.WaitGroup
	for _, w := range worlds {
		wg.Go(func() { noTestError(t, w.Finalize(), "Finalize") })
	}
	wg.Wait()
	if n := progressThreads(); n != 0 {
		t.Errorf("%d threads are left after Finalize", n)
	}
}

// progressThreadStack matches the end of the stack of a goroutine that the engine
// started as a progress thread.
var progressThreadStack = regexp.MustCompile(`created by [^\n]*\n\t[^\n]*engine/progress_thread\.go:`)

// progressThreads counts the progress threads of all ranks of the process.
func progressThreads() int {
	b := make([]byte, 1<<20)
	return len(progressThreadStack.FindAll(b[:runtime.Stack(b, true)], -1))
}

// The progress thread does not allocate.
func TestBackgroundAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes this slow, and allocates itself")
	}
	inBackground(t, 2, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		peer := 1 - c.Rank()
		for _, size := range []int{8, 8 << 10, 300_000, 1 << 20} {
			in := make([]byte, size)
			n := 300
			if size < 10_000 {
				n = 2000
			}
			mallocs(t, c, "Isend, Irecv and Wait", size, n, func(buf []byte) {
				r := mpi.Irecv(c, in, peer, 1)
				s := mpi.Isend(c, buf, peer, 1)
				runtime.Gosched() // the thread may come in
				noError(t, waitErr(r), "Wait")
				noError(t, waitErr(s), "Wait")
			})
		}
	})
}

func TestProgressSetting(t *testing.T) {
	for _, bad := range []struct{ kv, want string }{
		{"MUSTER_PROGRESS=asynch", "did you mean async?"},
		{"MUSTER_PROGRESS=Polling", "did you mean polling?"},
		{"MUSTER_PROGRESS=thread", "want polling or async"},
		{"MUSTER_PROGRES=async", "did you mean MUSTER_PROGRESS?"},
	} {
		if _, err := mpi.ConfigFromEnv([]string{bad.kv}); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: the error is %v, want one that says %q", bad.kv, err, bad.want)
		}
	}
	for _, good := range []string{"", "polling", "async"} {
		cfg, err := mpi.ConfigFromEnv([]string{"MUSTER_PROGRESS=" + good})
		if err != nil || cfg.Progress != good {
			t.Errorf("%q: %+v, %v", good, cfg, err)
		}
	}
	if _, err := mpi.Local(1, &mpi.Config{Progress: "thread"}); err == nil {
		t.Error("Local takes a Progress that does not exist")
	}
}
