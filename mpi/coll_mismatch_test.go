package mpi_test

// Programs whose ranks do not make the same collective calls. They must fail with an error
// that says so, and never return a wrong result or hang, and the communicator must reject
// every later call.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// wrongCall is a call that differs between ranks.
type wrongCall struct {
	name string
	call func(c *mpi.Comm, n int) error
	want []string // all of these are in at least one error
}

func ones(n int) []int64 { return slices.Repeat([]int64{1}, n) }

var wrongCalls = []wrongCall{
	{"bcast-allreduce", func(c *mpi.Comm, n int) error {
		if c.Rank() == 0 {
			return mpi.Bcast(c, ones(n), 0)
		}
		return mpi.Allreduce(c, ones(n), make([]int64, n), mpi.Sum)
	}, []string{"Bcast", "Allreduce"}},
	{"bcast-reduce", func(c *mpi.Comm, n int) error {
		if c.Rank() == 0 {
			return mpi.Bcast(c, ones(n), 0)
		}
		return mpi.Reduce(c, ones(n), make([]int64, n), mpi.Sum, 0)
	}, []string{"Bcast", "Reduce"}},
	{"barrier-allreduce", func(c *mpi.Comm, n int) error {
		if c.Rank() == 0 {
			return c.Barrier()
		}
		return mpi.Allreduce(c, ones(n), make([]int64, n), mpi.Sum)
	}, []string{"Barrier", "Allreduce"}},
	{"roots", func(c *mpi.Comm, n int) error { return mpi.Bcast(c, ones(n), c.Rank()%2) }, []string{"Bcast", "root 0", "root 1"}},
	{"counts of Bcast", func(c *mpi.Comm, n int) error {
		if c.Rank() == 0 {
			return mpi.Bcast(c, ones(n), 0)
		}
		return mpi.Bcast(c, ones(n-1), 0)
	}, []string{"Bcast", " bytes"}},
	{"counts of Allreduce", func(c *mpi.Comm, n int) error {
		if c.Rank() != 0 {
			n--
		}
		return mpi.Allreduce(c, ones(n), make([]int64, n), mpi.Sum)
	}, []string{"Allreduce", " bytes"}},
	{"one element against many", func(c *mpi.Comm, n int) error {
		if c.Rank() == 0 {
			n = 1
		}
		return mpi.Allreduce(c, ones(n), make([]int64, n), mpi.Sum)
	}, []string{"Allreduce", " bytes"}},
	{"blocking and nonblocking", func(c *mpi.Comm, n int) error {
		if c.Rank() == 0 {
			return waitErr(mpi.Ibcast(c, ones(n), 0))
		}
		return mpi.Bcast(c, ones(n), 0)
	}, []string{"Bcast", "nonblocking"}},
	{"nonblocking", func(c *mpi.Comm, n int) error {
		if c.Rank() == 0 {
			return waitErr(mpi.Ibcast(c, ones(n), 0))
		}
		return waitErr(mpi.Iallreduce(c, ones(n), make([]int64, n), mpi.Sum))
	}, []string{"Bcast", "Allreduce"}},
	{"persistent", func(c *mpi.Comm, n int) error {
		if c.Rank() == 0 {
			return waitErr(mpi.BcastInit(c, ones(n), 0).Start())
		}
		return waitErr(mpi.AllreduceInit(c, ones(n), make([]int64, n), mpi.Sum).Start())
	}, []string{"Bcast", "Allreduce"}},
	{"a call left out", func(c *mpi.Comm, n int) error {
		if c.Rank() != 0 {
			if err := mpi.Bcast(c, ones(n), 1); err != nil {
				return err
			}
		}
		return mpi.Allreduce(c, ones(n), make([]int64, n), mpi.Sum)
	}, []string{"Bcast", "Allreduce"}},
}

func TestDifferentCollectives(t *testing.T) {
	for _, n := range mismatchSizes() {
		for _, w := range wrongCalls {
			for _, segment := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/segment=%v", w.name, n, segment), func(t *testing.T) {
					mpitest.Sizes(t, []int{2, 3, 4}, func(t *testing.T, c *mpi.Comm) {
						inBrokenComm(t, c, segment, w.want, func(d *mpi.Comm) error { return w.call(d, n) })
					})
				})
			}
		}
	}
}

// mismatchSizes returns one element count for each implementation of collectives.
func mismatchSizes() []int {
	if race.Enabled {
		return []int{8, 1 << 14}
	}
	return []int{8, 4096, 1 << 17}
}

// differentProgram: rank 0 is in a barrier of the world, which is a counter if ranks
// share cores, and the others are in something else.
func differentProgram(world *mpi.Comm) error {
	for range 3 {
		if err := world.Barrier(); err != nil {
			return err
		}
	}
	var err error
	sum := []int64{1}
	if world.Rank() == 0 {
		err = world.Barrier()
	} else {
		err = mpi.Allreduce(world, sum, sum, mpi.Sum)
	}
	fmt.Printf("rank %d reports: %v\n", world.Rank(), err)
	fmt.Printf("rank %d then: %v\n", world.Rank(), world.Barrier())
	return err
}

// againstProgram is the prefix of programs whose even ranks call Barrier and odd ranks Bcast;
// the rest of the name is what the odd ranks do after it.
const againstProgram = "barrier against bcast "

func barrierAgainstBcast(world *mpi.Comm, then string) error {
	for range 3 {
		if err := world.Barrier(); err != nil {
			return err
		}
	}
	if world.Rank()%2 == 0 {
		err := world.Barrier()
		fmt.Printf("Barrier returned: %v\n", err)
		return err
	}
	const calls = 10 // more than a rank records
	for i := range calls {
		// An empty Bcast needs no rank but the root, and never the segment of the node.
		if err := mpi.Bcast(world, []int64{}, 1); err != nil {
			return err
		}
		if i == 0 && then != "repeat" {
			break
		}
	}
	if then == "receive" {
		_, err := mpi.Recv(world, make([]int, 1), (world.Rank()+2)%world.Size(), 0)
		return err
	}
	return nil
}

// inBrokenComm makes calls that break a duplicate of c, and checks what the ranks are
// told then and afterwards.
func inBrokenComm(t *testing.T, c *mpi.Comm, segment bool, want []string, call func(d *mpi.Comm) error) {
	t.Helper()
	d := duplicate(t, c, segment)
	barrier(t, c) // a fault also ends earlier calls that other ranks are still in
	begin := time.Now()
	err := call(d)
	if err == nil { // this rank could not see it; it has to at the next call that needs all ranks
		sum := []int64{1}
		if err = mpi.Allreduce(d, sum, sum, mpi.Sum); err == nil {
			t.Errorf("rank %d: no error, and the next Allreduce gives %d", c.Rank(), sum[0])
		}
	}
	if err != nil {
		wantClassOf(t, err, mpi.ErrOther, mpi.ErrTruncate, mpi.ErrOp)
	}
	for range 2 { // it stays so
		sum := []int64{1}
		if err := mpi.Allreduce(d, sum, sum, mpi.Sum); err == nil {
			t.Errorf("rank %d: a broken communicator adds to %d", c.Rank(), sum[0])
		}
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("rank %d returned an error after %v", c.Rank(), took)
	}
	noError(t, d.Free(), "Free")
	// The communicator that it came from is as good as before.
	text := fmt.Sprint(err)
	all := make([]byte, 1000*c.Size())
	noError(t, mpi.Allgather(c, []byte(fmt.Sprintf("%-1000.1000s", text)), all), "Allgather")
	for _, s := range want {
		if !strings.Contains(string(all), s) {
			t.Errorf("no rank says %q: %s", s, text)
		}
	}
}

// duplicate returns a duplicate of c, with a segment if it can have one.
func duplicate(t *testing.T, c *mpi.Comm, segment bool) *mpi.Comm {
	t.Helper()
	d, err := c.Dup()
	noError(t, err, "Dup")
	if segment && haveSegment(t, d) {
		shareMemory(t, d)
	}
	return d
}

// combiner returns the lowest rank but 0 whose operation a call runs, or else 0: an algorithm
// may leave out some ranks, above all where their number is no power of two.
func combiner(t *testing.T, c *mpi.Comm, segment bool, n int, call reduction) int {
	t.Helper()
	d := duplicate(t, c, segment)
	combines := make([]int64, c.Size())
	op := (&mpi.UserOp[int64]{Name: "good", Combine: func(inout, in []int64) {
		combines[c.Rank()] = 1
		for i := range inout {
			inout[i] += in[i]
		}
	}}).Op
	noError(t, call(d, ones(n), make([]int64, n), op), "a reduction")
	noError(t, d.Free(), "Free")
	noError(t, mpi.Allreduce(c, combines, combines, mpi.Max), "Allreduce")
	return max(0, slices.Index(combines[1:], 1)+1)
}

type reduction = func(c *mpi.Comm, in, out []int64, op func() mpi.Op[int64]) error

func wantClassOf(t *testing.T, err error, classes ...mpi.Class) {
	t.Helper()
	if !slices.ContainsFunc(classes, func(c mpi.Class) bool { return errors.Is(err, c) }) {
		t.Errorf("error of another class: %v", err)
	}
}

// An operation of the user that panics on one rank: the others get an error that names
// it, or the right result if theirs does not depend on that rank.
func TestOperationThatPanicsOnOneRank(t *testing.T) {
	for _, n := range []int{4, 4096, 1 << 15} {
		for _, segment := range []bool{false, true} {
			for _, k := range []struct { // in the same order on all ranks
				name string
				call reduction
			}{
				{"Allreduce", mpi.Allreduce[int64]},
				{"Iallreduce", func(c *mpi.Comm, in, out []int64, op func() mpi.Op[int64]) error {
					return waitErr(mpi.Iallreduce(c, in, out, op))
				}},
				{"AllreduceInit", func(c *mpi.Comm, in, out []int64, op func() mpi.Op[int64]) error {
					return waitErr(mpi.AllreduceInit(c, in, out, op).Start())
				}},
				{"Scan", mpi.Scan[int64]},
				{"ReduceScatterBlock", func(c *mpi.Comm, in, out []int64, op func() mpi.Op[int64]) error {
					return mpi.ReduceScatterBlock(c, slices.Repeat(in, c.Size()), out, op)
				}},
			} {
				name, call := k.name, k.call
				t.Run(fmt.Sprintf("%s/%d/segment=%v", name, n, segment), func(t *testing.T) {
					mpitest.Sizes(t, []int{2, 3, 4}, func(t *testing.T, c *mpi.Comm) {
						culprit := combiner(t, c, segment, n, call)
						op := (&mpi.UserOp[int64]{Name: "bad", Combine: func(inout, in []int64) {
							if c.Rank() == culprit {
								panic("op boom")
							}
							for i := range inout {
								inout[i] += in[i]
							}
						}}).Op
						inBrokenComm(t, c, segment, []string{fmt.Sprint("rank ", culprit), "panicked", "op boom"}, func(d *mpi.Comm) error {
							out := make([]int64, n)
							err := call(d, ones(n), out, op)
							if want := int64(c.Size()); err == nil && name != "Scan" && (out[0] != want || out[n-1] != want) {
								t.Errorf("rank %d: no error, and %d and %d, want %d", c.Rank(), out[0], out[n-1], want)
							}
							if c.Rank() == culprit && !errors.Is(err, mpi.ErrOp) {
								t.Errorf("the rank whose operation panicked got %v", err)
							}
							return err
						})
					})
				})
			}
		}
	}
}

// An operation that calls this package, which MPI-4.1 section 6.9.5 forbids.
func TestOperationThatCallsMPI(t *testing.T) {
	for _, n := range []int{4, 4096, 1 << 15} {
		for _, segment := range []bool{false, true} {
			for _, k := range []struct {
				name      string
				forbidden func(d *mpi.Comm)
			}{
				{"Barrier", func(d *mpi.Comm) { d.Barrier() }},
				{"Bcast", func(d *mpi.Comm) { mpi.Bcast(d, []int{1}, 0) }},
				{"Ibcast", func(d *mpi.Comm) { mpi.Ibcast(d, []int{1}, 0) }},
				{"Send", func(d *mpi.Comm) { mpi.Send(d, []int{1}, d.Rank(), 3) }},
			} {
				forbidden := k.forbidden
				t.Run(fmt.Sprintf("%s/%d/segment=%v", k.name, n, segment), func(t *testing.T) {
					mpitest.Sizes(t, []int{2, 3}, func(t *testing.T, c *mpi.Comm) {
						inBrokenComm(t, c, segment, []string{"6.9.5"}, func(d *mpi.Comm) error {
							op := (&mpi.UserOp[int64]{Name: "calls", Combine: func(inout, in []int64) { forbidden(d) }}).Op
							return mpi.Allreduce(d, ones(n), make([]int64, n), op)
						})
					})
				})
			}
		}
	}
}
