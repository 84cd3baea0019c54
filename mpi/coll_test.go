package mpi_test

// Collectives against naive results computed by each rank alone (MPI-4.1
// chapter 6).

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

var oneToNine = []int{1, 2, 3, 4, 5, 6, 7, 8, 9}

var collCounts = []int{0, 1, 3, 1000, 12000}

// value returns element i of the contribution of rank r.
func value(r, i int) int64 { return int64((r+1)*1_000_003 + i*7) }

func contribution(r, n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = value(r, i)
	}
	return out
}

func wantSlice[T comparable](t *testing.T, got, want []T, what string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: element %d of %d is %v, want %v", what, i, len(want), got[i], want[i])
		}
	}
}

// No rank leaves a barrier before the last has entered it.
func TestBarrier(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("counts in memory that the ranks share")
	}
	for _, n := range oneToNine {
		var entered atomic.Int32
		mpitest.Run(t, n, func(t *testing.T, c *mpi.Comm) {
			for round := range 20 {
				if c.Rank() == round%n {
					time.Sleep(time.Millisecond) // one rank is late
				}
				entered.Add(1)
				noError(t, c.Barrier(), "Barrier")
				if got := int(entered.Load()); got < (round+1)*n {
					t.Fatalf("rank %d left barrier %d when %d of %d had entered", c.Rank(), round, got-round*n, n)
				}
			}
		})
	}
}

func TestBcast(t *testing.T) {
	mpitest.Sizes(t, oneToNine, func(t *testing.T, c *mpi.Comm) {
		for _, n := range collCounts {
			for root := range c.Size() {
				buf := make([]int64, n)
				if c.Rank() == root {
					buf = contribution(root, n)
				}
				noError(t, mpi.Bcast(c, buf, root), "Bcast")
				wantSlice(t, buf, contribution(root, n), fmt.Sprintf("Bcast of %d from %d", n, root))
			}
		}
	})
}

func TestReduceAndAllreduce(t *testing.T) {
	mpitest.Sizes(t, oneToNine, func(t *testing.T, c *mpi.Comm) {
		for _, n := range collCounts {
			in := contribution(c.Rank(), n)
			sum, top := make([]int64, n), make([]int64, n)
			for i := range n {
				for r := range c.Size() {
					sum[i] += value(r, i)
					top[i] = max(top[i], value(r, i))
				}
			}
			for root := range c.Size() {
				var out []int64
				if c.Rank() == root {
					out = make([]int64, n)
				}
				noError(t, mpi.Reduce(c, in, out, mpi.Sum, root), "Reduce")
				if c.Rank() == root {
					wantSlice(t, out, sum, fmt.Sprintf("Reduce of %d to %d", n, root))
				}
			}
			out := make([]int64, n)
			noError(t, mpi.Allreduce(c, in, out, mpi.Max), "Allreduce")
			wantSlice(t, out, top, fmt.Sprintf("Allreduce of %d", n))
			wantSlice(t, in, contribution(c.Rank(), n), "the contribution, which no reduction may change")
			noError(t, mpi.Allreduce(c, in, in, mpi.Sum), "Allreduce in place")
			wantSlice(t, in, sum, fmt.Sprintf("Allreduce of %d in place", n))
		}
	})
}

// matrix multiplication is associative and not commutative.
type matrix [2][2]int64

const modulus = 1_000_007

func times(a, b matrix) (m matrix) {
	for i := range 2 {
		for j := range 2 {
			m[i][j] = (a[i][0]*b[0][j] + a[i][1]*b[1][j]) % modulus
		}
	}
	return m
}

func TestNonCommutativeReduce(t *testing.T) {
	product := (&mpi.UserOp[matrix]{Name: "matrix product", NonCommutative: true, Combine: func(inout, in []matrix) {
		for i := range inout {
			inout[i] = times(in[i], inout[i])
		}
	}}).Op
	of := func(r, i int) matrix { return matrix{{int64(r + 2), int64(i + 1)}, {1, int64(r*i + 3)}} }
	mpitest.Sizes(t, oneToNine, func(t *testing.T, c *mpi.Comm) {
		const n = 5
		in, want := make([]matrix, n), make([]matrix, n)
		for i := range n {
			in[i], want[i] = of(c.Rank(), i), of(0, i)
			for r := 1; r < c.Size(); r++ {
				want[i] = times(want[i], of(r, i))
			}
		}
		for root := range c.Size() {
			out := make([]matrix, n)
			noError(t, mpi.Reduce(c, in, out, product, root), "Reduce")
			if c.Rank() == root {
				wantSlice(t, out, want, fmt.Sprintf("product of the matrices of %d ranks in order, at %d", c.Size(), root))
			}
		}
		noError(t, mpi.Allreduce(c, in, in, product), "Allreduce")
		wantSlice(t, in, want, "product of the matrices in order")
	})
}

func TestPredefinedOperations(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		n, r := c.Size(), c.Rank()
		ints := func(op func() mpi.Op[int32], mine, want int32) {
			t.Helper()
			v := []int32{mine}
			noError(t, mpi.Allreduce(c, v, v, op), op().Name())
			if v[0] != want {
				t.Errorf("%s over %d ranks gives %d, want %d", op().Name(), n, v[0], want)
			}
		}
		factorial, bits, odd := int32(1), int32(0), int32(n%2)
		for i := range n {
			factorial *= int32(i + 1)
			bits |= 1 << i
		}
		ints(mpi.Sum[int32], int32(r), int32(n*(n-1)/2))
		ints(mpi.Prod[int32], int32(r+1), factorial)
		ints(mpi.Min[int32], int32(5-r), int32(6-n))
		ints(mpi.Max[int32], int32(-r), 0)
		ints(mpi.BitOr[int32], 1<<r, bits)
		ints(mpi.BitAnd[int32], ^(1 << r), ^bits)
		ints(mpi.BitXor[int32], 3, 3*odd)
		ints(mpi.LogicalAnd[int32], int32(r+1), 1)
		ints(mpi.LogicalAnd[int32], int32(r), 0)
		ints(mpi.LogicalOr[int32], int32(r), int32(min(1, n-1)))
		ints(mpi.LogicalXor[int32], 1, odd)

		at := []mpi.Loc[float64]{{Value: float64(r % 2), Index: int64(r)}, {Value: -1, Index: int64(r)}}
		lo, hi := make([]mpi.Loc[float64], 2), make([]mpi.Loc[float64], 2)
		noError(t, mpi.Allreduce(c, at, lo, mpi.MinLoc), "MinLoc")
		noError(t, mpi.Allreduce(c, at, hi, mpi.MaxLoc), "MaxLoc")
		if lo[0].Index != 0 || lo[1].Index != 0 || hi[1].Index != 0 || hi[0].Index != int64(min(1, n-1)) {
			t.Errorf("MinLoc gives %v, MaxLoc %v", lo, hi)
		}
	})
}

func TestGatherScatter(t *testing.T) {
	mpitest.Sizes(t, oneToNine, func(t *testing.T, c *mpi.Comm) {
		for _, n := range collCounts {
			var all []int64
			for r := range c.Size() {
				all = append(all, contribution(r, n)...)
			}
			for root := range c.Size() {
				var out []int64
				if c.Rank() == root {
					out = make([]int64, n*c.Size())
				}
				noError(t, mpi.Gather(c, contribution(c.Rank(), n), out, root), "Gather")
				if c.Rank() == root {
					wantSlice(t, out, all, fmt.Sprintf("Gather of %d to %d", n, root))
				}
				part := make([]int64, n)
				noError(t, mpi.Scatter(c, out, part, root), "Scatter")
				wantSlice(t, part, contribution(c.Rank(), n), fmt.Sprintf("Scatter of %d from %d", n, root))
			}
			out := make([]int64, n*c.Size())
			noError(t, mpi.Allgather(c, contribution(c.Rank(), n), out), "Allgather")
			wantSlice(t, out, all, fmt.Sprintf("Allgather of %d", n))
		}
	})
}

func TestAlltoall(t *testing.T) {
	mpitest.Sizes(t, oneToNine, func(t *testing.T, c *mpi.Comm) {
		for _, n := range collCounts {
			in, want := make([]int64, 0, n*c.Size()), make([]int64, 0, n*c.Size())
			for r := range c.Size() {
				in = append(in, contribution(100*c.Rank()+r, n)...)
				want = append(want, contribution(100*r+c.Rank(), n)...)
			}
			out := make([]int64, n*c.Size())
			noError(t, mpi.Alltoall(c, in, out), "Alltoall")
			wantSlice(t, out, want, fmt.Sprintf("Alltoall of %d", n))
		}
	})
}

// Collectives do not match point-to-point messages, whatever their tags, nor concurrent
// collectives of a subset of the communicator.
func TestCollectivesAmongMessages(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		next, prev := neighbors(c)
		r := mpi.Irecv(c, make([]int64, 1), mpi.AnySource, mpi.AnyTag)
		half, err := c.Split(c.Rank()%2, 0)
		noError(t, err, "Split with a receive from anybody posted")
		for i := range 10 {
			sum := []int64{1}
			noError(t, mpi.Allreduce(half, sum, sum, mpi.Sum), "Allreduce on a half")
			if sum[0] != int64(half.Size()) {
				t.Fatalf("round %d: sum over a half is %d, want %d", i, sum[0], half.Size())
			}
			noError(t, mpi.Allreduce(c, sum, sum, mpi.Max), "Allreduce on all")
		}
		if r.Done() {
			t.Fatal("a receive from anybody took a message of a collective")
		}
		barrier(t, c)
		noError(t, mpi.Send(c, []int64{5}, next, 0), "Send")
		st, err := r.Wait()
		noError(t, err, "the receive from anybody")
		if st.Source != prev {
			t.Errorf("it came from %d, want %d", st.Source, prev)
		}
	})
}

func TestCollectiveArguments(t *testing.T) {
	mpitest.Sizes(t, []int{1, 3}, func(t *testing.T, c *mpi.Comm) {
		two, three := make([]int, 2), make([]int, 3)
		sum := mpi.Sum[int]
		for what, err := range map[string]error{
			"Bcast":   mpi.Bcast(c, two, c.Size()),
			"Reduce":  mpi.Reduce(c, two, two, sum, -1),
			"Gather":  mpi.Gather(c, two, two, 99),
			"Scatter": mpi.Scatter(c, two, two, mpi.ProcNull),
		} {
			e := wantClass(t, err, mpi.ErrRoot, what+" with a root that is not there")
			if e.Op != what {
				t.Errorf("error of %s says it is of %s", what, e.Op)
			}
		}
		wantClass(t, mpi.Allreduce(c, two, three, sum), mpi.ErrCount, "Allreduce of 2 into 3")
		wantClass(t, mpi.Reduce(c, two, three, sum, c.Rank()), mpi.ErrCount, "Reduce of 2 into 3")
		wantClass(t, mpi.Allgather(c, two, make([]int, 2*c.Size()+1)), mpi.ErrCount, "Allgather into one more")
		wantClass(t, mpi.Alltoall(c, two, three), mpi.ErrCount, "Alltoall of 2 into 3")
		wantClass(t, mpi.Gather(c, two, make([]int, 1), c.Rank()), mpi.ErrCount, "Gather into too little")
		wantClass(t, mpi.Scatter(c, make([]int, 1), two, c.Rank()), mpi.ErrCount, "Scatter of too little")
		wantClass(t, mpi.Allreduce(c, two, two, (&mpi.UserOp[int]{}).Op), mpi.ErrOp, "an operation without a function")
		barrier(t, c) // a refused call has sent nothing
	})
}

// Counts that differ between ranks are an error on the ranks that detect it.
func TestCountsThatDiffer(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		own := func(n int) []int { return make([]int, n+c.Rank()) } // rank 1 has one more
		differ := func(what string, err error) {
			t.Helper()
			wantClass(t, err, mpi.ErrTruncate, what)
		}
		names := func(what string, err error) {
			t.Helper()
			differ(what, err)
			if !strings.Contains(err.Error(), "counts differ") || !strings.Contains(err.Error(), "16") {
				t.Errorf("%s: error %q does not say what differs", what, err)
			}
		}
		dup := func() *mpi.Comm { // none is of use afterwards
			t.Helper()
			d, err := c.Dup()
			noError(t, err, "Dup")
			return d
		}
		if err := mpi.Bcast(dup(), own(2), 0); c.Rank() == 1 {
			names("Bcast of 2 to a rank that expects 3", err)
		}
		if err := mpi.Bcast(dup(), own(2), 1); c.Rank() == 0 {
			differ("Bcast of 3 to a rank that expects 2", err)
		}
		if err := mpi.Gather(dup(), own(2), make([]int, 4), 0); c.Rank() == 0 {
			differ("Gather of 3 at a rank that expects 2", err)
		}
		if err := mpi.Gather(dup(), own(2), make([]int, 6), 1); c.Rank() == 1 {
			names("Gather of 2 at a rank that expects 3", err)
		}
		if err := mpi.Scatter(dup(), make([]int, 4), own(2), 0); c.Rank() == 1 {
			names("Scatter of 2 to a rank that expects 3", err)
		}
		if err := mpi.Reduce(dup(), own(2), own(2), mpi.Sum, 0); c.Rank() == 0 {
			differ("Reduce of 3 at a rank that expects 2", err)
		}
		n := 2 * (1 + c.Rank())
		err := mpi.Alltoall(dup(), make([]int, n), make([]int, n))
		differ("Alltoall with different counts", err)
		barrier(t, c)
	})
}

// More ranks than cores, more senders than rings.
func TestManyRanks(t *testing.T) {
	mpitest.Run(t, 33, func(t *testing.T, c *mpi.Comm) {
		const n = 300
		in, out := make([]int64, n*c.Size()), make([]int64, n*c.Size())
		for i := range in {
			in[i] = int64(c.Rank()*1000 + i/n)
		}
		for range 3 {
			noError(t, mpi.Alltoall(c, in, out), "Alltoall")
		}
		for i := range out {
			if want := int64(i/n*1000 + c.Rank()); out[i] != want {
				t.Fatalf("element %d is %d, want %d", i, out[i], want)
			}
		}
		row, err := c.Split(c.Rank()%4, -c.Rank())
		noError(t, err, "Split")
		sum := []int{1}
		noError(t, mpi.Allreduce(row, sum, sum, mpi.Sum), "Allreduce")
		if sum[0] != row.Size() {
			t.Errorf("%d ranks count %d", row.Size(), sum[0])
		}
	})
}
