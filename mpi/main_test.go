package mpi_test

// Common parts of the tests of this package. They run on goroutines (go test) and on
// processes (go test -c, then muster run or mpiexec.hydra): see package mpitest.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// programVar makes a test binary run a program instead of the tests, for tests
// that start jobs.
const programVar = "MPI_TEST_PROGRAM"

func TestMain(m *testing.M) {
	// Ranks that are goroutines run in check mode, like those of every user of mpitest;
	// make test repeats the tests with MUSTER_CHECK=off, for the fast paths that check
	// mode avoids. Processes are for the protocols, and run without it unless it is set.
	if os.Getenv("MUSTER_CHECK") == "" && mpitest.Launched() {
		os.Setenv("MUSTER_CHECK", "off")
	}
	program := os.Getenv(programVar)
	if call, ok := strings.CutPrefix(program, windowProgram); ok {
		mpi.Main(func(world *mpi.Comm) error { return workOnWindow(world, call) })
		return
	}
	if what, ok := strings.CutPrefix(program, killProgram); ok {
		mpi.Main(func(world *mpi.Comm) error { return killMatrix(world, what) })
		return
	}
	if what, ok := strings.CutPrefix(program, killFilesProgram); ok {
		mpi.Main(func(world *mpi.Comm) error { return killInFiles(world, what) })
		return
	}
	if what, ok := strings.CutPrefix(program, awayProgram); ok {
		mpi.Main(func(world *mpi.Comm) error { return stayAway(world, what) })
		return
	}
	if then, ok := strings.CutPrefix(program, againstProgram); ok {
		mpi.Main(func(world *mpi.Comm) error { return barrierAgainstBcast(world, then) })
		return
	}
	if what, ok := strings.CutPrefix(program, mistakeProgram); ok {
		mpi.Main(func(world *mpi.Comm) error { return makeMistake(world, what) })
		return
	}
	if what, ok := strings.CutPrefix(program, spawnProgram); ok {
		mpi.Main(func(world *mpi.Comm) error { return spawnOf(world, what) })
		return
	}
	switch program {
	case "die":
		mpi.Main(dieProgram)
	case "die in segment":
		mpi.Main(dieInSegment)
	case "different collectives":
		mpi.Main(differentProgram)
	case "reduce twice":
		mpi.Main(reduceProgram)
	case "init twice":
		mpi.Main(initTwice)
	case "die computing":
		mpi.Main(dieComputingProgram)
	case "large":
		mpi.Main(largeProgram)
	case recoverProgram:
		mpi.Main(recoverOrDie)
	case asleepProgram:
		mpi.Main(agreeAsleep)
	case leaveProgram:
		mpi.Main(leaveAfterFailure)
	case "orphan":
		mpi.Main(orphanProgram)
	case "wiretap":
		mpi.Main(wiretapProgram)
	default:
		mpitest.Main(m)
	}
}

// unchecked turns check mode off for a test of what it changes by design: memory,
// allocations, and when data reaches its destination.
func unchecked(t *testing.T) {
	t.Helper()
	if !mpitest.Launched() {
		t.Setenv("MUSTER_CHECK", "off")
	} else if os.Getenv("MUSTER_CHECK") == "on" {
		t.Skip("measures what check mode changes, and this job is in check mode")
	}
}

// dieProgram: rank 1 dies while the others wait for a message.
func dieProgram(world *mpi.Comm) error {
	if err := world.Barrier(); err != nil {
		return err
	}
	if world.Rank() == 1 {
		time.Sleep(100 * time.Millisecond) // until the others wait in Recv
		os.Exit(3)
	}
	_, err := mpi.Recv(world, make([]int, 1), mpi.AnySource, 0)
	fmt.Printf("rank %d reports: %v\n", world.Rank(), err)
	return err
}

// dieComputingProgram: rank 1 dies while rank 0 computes, with large operations open.
func dieComputingProgram(world *mpi.Comm) error {
	if world.Rank() == 1 {
		time.Sleep(100 * time.Millisecond) // until rank 0 computes
		os.Exit(3)
	}
	r := mpi.Irecv(world, make([]byte, 1<<20), 1, 1)
	s := mpi.Isend(world, make([]byte, 1<<20), 1, 2)
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
	}
	_, err := r.Wait()
	_, serr := s.Wait()
	fmt.Printf("rank 0 reports: %v\nrank 0 reports: %v\n", err, serr)
	return errors.Join(err, serr)
}

func reduceProgram(world *mpi.Comm) error {
	for range 2 {
		if err := mpi.Allreduce(world, nil, make([]int, 1000), mpi.Sum); err != nil {
			return err
		}
	}
	return nil
}

func initTwice(world *mpi.Comm) error {
	_, err := mpi.Init(context.Background(), nil)
	fmt.Println(err)
	return world.Barrier()
}

// awayProgram is the prefix of programs in which rank 0 waits for rank 1, rank 1 for rank 2,
// and rank 2 makes no MPI calls; the rest of the name is what it does instead.
const awayProgram = "away "

func stayAway(world *mpi.Comm, what string) error {
	if err := world.Barrier(); err != nil {
		return err
	}
	if world.Rank() < 2 {
		_, err := mpi.Recv(world, make([]int, 1), world.Rank()+1, 0)
		return err
	}
	end := time.Now().Add(time.Minute)
	switch what {
	case "loop":
		for time.Now().Before(end) {
		}
	case "stop":
		if err := stopSelf(); err != nil { // soon
			return err
		}
	}
	time.Sleep(time.Until(end)) // the state that the launcher must report
	return nil
}

// orphanProgram: rank 0 waits for a message, rank 1 computes, rank 2 sleeps.
func orphanProgram(world *mpi.Comm) error {
	file := func(name string) string {
		return filepath.Join(os.Getenv("ORPHAN_DIR"), fmt.Sprintf("%s.%d", name, world.Rank()))
	}
	if err := os.WriteFile(file("pid"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	switch end := time.Now().Add(time.Minute); world.Rank() {
	case 0:
		_, err := mpi.Recv(world, make([]int, 1), 1, 0)
		return os.WriteFile(file("error"), []byte(fmt.Sprint(err)), 0o600)
	case 1:
		for time.Now().Before(end) {
		}
	default:
		time.Sleep(time.Until(end)) // ended by the test
	}
	return nil
}

// oneToFive are the numbers of ranks that calls are tested with.
var oneToFive = []int{1, 2, 3, 4, 5}

// thresholds are sizes on both sides of the library's thresholds: header, ring cell,
// segment, eager limit.
var thresholds = []int{0, 1, 24, 25, 48, 49, 64, 65, 4096, 8192, 8193, 65536, 65537, 1 << 20}

// tape holds the bytes of messages.
var tape = sync.OnceValue(func() []byte {
	b := make([]byte, 3<<20)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
})

func cut(n, seed int) []byte { return tape()[seed*101 : seed*101+n] }

// pattern returns n bytes that depend on a seed and on their offset.
func pattern(n, seed int) []byte { return bytes.Clone(cut(n, seed)) }

// wantPattern reports the first byte that differs from the pattern.
func wantPattern(t *testing.T, b []byte, seed int, what string) {
	t.Helper()
	want := cut(len(b), seed)
	if bytes.Equal(b, want) {
		return
	}
	for i := range b {
		if b[i] != want[i] {
			t.Fatalf("%s: byte %d of %d is %d, want %d", what, i, len(b), b[i], want[i])
		}
	}
}

const guardByte = 0xEE

// guarded returns a buffer between two fences of guard bytes.
func guarded(n int) (whole, middle []byte) {
	whole = bytes.Repeat([]byte{guardByte}, n+128)
	return whole, whole[64 : 64+n : 64+n]
}

// wantGuards checks the fences, and the bytes of the middle from used on.
func wantGuards(t *testing.T, whole []byte, used int, what string) {
	t.Helper()
	for _, fence := range []struct{ lo, hi int }{{0, 64}, {64 + used, len(whole)}} {
		for i := fence.lo; i < fence.hi; i++ {
			if whole[i] != guardByte {
				t.Fatalf("%s: byte %d, outside of the %d bytes received, was written", what, i-64, used)
			}
		}
	}
}

// noError ends the rank if err is not nil.
func noError(t *testing.T, err error, what string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// wantClass checks that a call failed with an error of a class of this package.
func wantClass(t *testing.T, err error, class mpi.Class, what string) *mpi.Error {
	t.Helper()
	if !errors.Is(err, class) {
		t.Fatalf("%s: error is %v, want class %q", what, err, class.Error())
	}
	var e *mpi.Error
	if !errors.As(err, &e) {
		t.Fatalf("%s: error %v (%T) has no *mpi.Error inside", what, err, err)
	}
	return e
}

func barrier(t *testing.T, c *mpi.Comm) {
	t.Helper()
	noError(t, c.Barrier(), "Barrier")
}
