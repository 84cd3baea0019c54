package mpitest

// Ranks as processes, started by a launcher. The process joins the job once, at the
// first test that needs it. Every process runs the same tests in the same order, so
// Run is a collective call: n ranks, spread evenly over the job and so over its hosts,
// get a communicator of their own, and all ranks end with a barrier.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/mpi"
)

// job is this process's membership in the job.
type job struct {
	world *mpi.World
	// broken is the reason why no more tests can run: a rank ended a test early, so the
	// processes are out of step.
	broken string
}

// join is the only state of this package: a process can join its job only once.
var join = sync.OnceValues(func() (*job, error) {
	cfg, err := mpi.ConfigFromEnv(os.Environ())
	if err != nil {
		return nil, err
	}
	w, err := mpi.Init(context.Background(), withCheckMode(cfg))
	if err != nil {
		return nil, err
	}
	return &job{world: w}, nil
})

// Launched reports whether a launcher started this process as a rank of a job.
func Launched() bool {
	for _, name := range []string{"PMI_FD", "PMI_PORT", "PMIX_RANK", "MUSTER_ROOT"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// jobSize returns the number of ranks of the job, 0 if it cannot be joined.
func jobSize() int {
	j, err := join()
	if err != nil {
		return 0
	}
	return j.world.Comm().Size()
}

func runInJob[T testing.TB](t T, n int, timeout time.Duration, fn func(t T, world *mpi.Comm)) {
	t.Helper()
	if !strings.Contains(allStacks(), module+"mpitest.Main(") {
		t.Fatalf("this test binary has no TestMain that leaves the job; add: func TestMain(m *testing.M) { mpitest.Main(m) }")
	}
	j, err := join()
	if err != nil {
		t.Fatalf("join the job: %v", err)
	}
	if j.broken != "" {
		t.Skip(j.broken)
	}
	all := j.world.Comm()
	if n > all.Size() {
		t.Skipf("needs %d ranks; the job has %d", n, all.Size())
	}
	// Only this function reports to t: the goroutine may end long after the timeout.
	type end struct {
		whole bool
		err   error
	}
	ended := make(chan end, 1)
	go func() {
		var e end
		defer func() {
			if p := recover(); p != nil {
				e.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
			ended <- e
		}()
		e.err = takePart(t, all, n, fn)
		e.whole = e.err == nil
	}()
	why := "its test function ended early"
	select {
	case e := <-ended:
		if e.whole {
			return
		}
		if e.err != nil {
			why = e.err.Error()
		}
	case <-time.After(timeout):
		why = fmt.Sprintf("it has not ended within %v\n%s", timeout, strings.Join(libraryStacks(), "\n\n"))
	}
	j.broken = "the ranks are out of step since " + t.Name()
	t.Fatalf("rank %d leaves the job: %s", all.Rank(), why)
}

// takePart runs fn if this process is one of the n ranks, and enters the final barrier.
func takePart[T testing.TB](t T, all *mpi.Comm, n int, fn func(t T, world *mpi.Comm)) error {
	colour := mpi.Undefined
	for k := range n {
		if k*all.Size()/n == all.Rank() {
			colour = 0
		}
	}
	part, err := all.Split(colour, all.Rank())
	if err != nil {
		return err
	}
	if part != nil {
		part.SetName("world")
		fn(t, part)
		if err := part.Free(); err != nil {
			return err
		}
	}
	return all.Barrier()
}

// Main runs the tests of a package from its TestMain and leaves the job if there is one.
// It fails if the library leaked goroutines, files or mappings, or if waiting ranks use
// CPU time.
func Main(m *testing.M) {
	before := countResources()
	code := m.Run()
	if Launched() {
		code = max(code, leave())
	}
	if code == 0 {
		if err := before.check(5 * time.Second); err != nil {
			fmt.Fprintln(os.Stderr, "mpitest:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// leave leaves the job. A rank that is out of step does not: the launcher must treat it
// as failed, or the others would wait for it.
func leave() int {
	j, err := join()
	if err != nil || j.broken != "" {
		return 1
	}
	err = waitQuietly(j.world.Comm())
	if err = errors.Join(err, j.world.Finalize()); err != nil {
		fmt.Fprintln(os.Stderr, "mpitest:", err)
		return 1
	}
	return 0
}

// waitQuietly lets all ranks wait for rank 0, after whatever the tests did to the
// devices, and returns an error if that uses much CPU time: a descriptor that stays
// readable would make a waiting rank poll continuously, in every wait. A pause of a
// virtual machine is charged to the rank that was running, but it does not recur, so
// one quiet wait out of three is enough.
func waitQuietly(all *mpi.Comm) error {
	const pause, most, attempts = time.Second, 100 * time.Millisecond, 3
	var used []int64
	for range attempts {
		mine, err := costOfWait(all, pause)
		if err != nil {
			return err
		}
		used = make([]int64, all.Size())
		if err := mpi.Allgather(all, []int64{int64(mine)}, used); err != nil {
			return err
		}
		if slices.Max(used) <= int64(most) {
			return nil
		}
	}
	if mine := time.Duration(used[all.Rank()]); mine > most {
		return fmt.Errorf("rank %d used the processor for %v while it waited %v for rank 0; waiting may cost %v", all.Rank(), mine, pause, most)
	}
	return nil
}

// costOfWait returns the CPU time that waiting for rank 0, which sleeps, costs the calling
// rank. On rank 0 it is 0.
func costOfWait(all *mpi.Comm, pause time.Duration) (time.Duration, error) {
	if err := all.Barrier(); err != nil {
		return 0, err
	}
	if all.Rank() == 0 {
		time.Sleep(pause)
		return 0, all.Barrier()
	}
	before, _ := cputime.Used()
	err := all.Barrier()
	after, _ := cputime.Used()
	return after - before, err
}
