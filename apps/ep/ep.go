package ep

import (
	"math"
	"strconv"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// Classes lists the problem sizes.
const Classes = "SWABC"

// A batch is the unit of work: 2¹⁶ pairs, which any rank can start to generate at their
// position in the sequence of random numbers.
const (
	batchPairs = 1 << 16
	seed       = 271828183
	bins       = 10
)

// params are the number of pairs as a power of two, and the results that the specification
// gives for it: the sums of the numbers and the count of accepted pairs.
type params struct {
	log2Pairs  int
	sumX, sumY float64
	accepted   float64
}

var classes = map[byte]params{
	'S': {24, 1.051299420395306e+07, 1.051517131857535e+07, 13176389},
	'W': {25, 2.102505525182392e+07, 2.103162209578822e+07, 26354769},
	'A': {28, 1.682235632304711e+08, 1.682195123368299e+08, 210832767},
	'B': {30, 6.728927543423024e+08, 6.728951822504275e+08, 843345606},
	'C': {32, 2.691444083862931e+09, 2.691519118724585e+09, 3373275903},
}

// tally is what a rank collects: the sums of the absolute values, and how many pairs have
// their larger one in [l, l+1).
type tally struct {
	sumX, sumY float64
	counts     [bins]float64
}

// Run generates the pairs of a class on the ranks of c. Any number of ranks will do.
func Run(c *mpi.Comm, class byte) (npb.Result, error) {
	p, err := npb.Class(classes, class)
	if err != nil {
		return npb.Result{}, err
	}
	var clock npb.Clock
	if err := clock.Start(c); err != nil {
		return npb.Result{}, err
	}
	batches := 1 << p.log2Pairs / batchPairs
	var t tally
	for b := batches * c.Rank() / c.Size(); b < batches*(c.Rank()+1)/c.Size(); b++ {
		t.batch(b)
	}
	sums := append([]float64{t.sumX, t.sumY}, t.counts[:]...)
	clock.EnterMPI()
	err = mpi.Allreduce(c, sums, sums, mpi.Sum)
	clock.LeaveMPI()
	if err != nil {
		return npb.Result{}, err
	}
	clock.Stop()

	accepted := 0.0
	for _, n := range sums[2:] {
		accepted += n
	}
	numbers := 2 << p.log2Pairs
	return clock.Finish(c, npb.Result{
		Name: "EP", Class: class, Size: strconv.Itoa(numbers),
		Operation: "random numbers generated", Operations: float64(numbers),
		Checks: []npb.Check{
			{Name: "Sum of x", Got: sums[0], Want: p.sumX, Tolerance: 1e-8},
			{Name: "Sum of y", Got: sums[1], Want: p.sumY, Tolerance: 1e-8},
			{Name: "Gaussian pairs", Got: accepted, Want: p.accepted},
		},
	})
}

// batch generates the pairs of one batch by the polar method: a point of the unit disk
// gives two Gaussian numbers, and points of the square outside it are dropped.
func (t *tally) batch(number int) {
	random := npb.Random(seed)
	random.Skip(2 * batchPairs * number)
	for range batchPairs {
		x := 2*random.Next() - 1
		y := 2*random.Next() - 1
		r := x*x + y*y
		if r > 1 {
			continue
		}
		f := math.Sqrt(-2 * math.Log(r) / r)
		x, y = math.Abs(x*f), math.Abs(y*f)
		t.counts[int(max(x, y))]++
		t.sumX += x
		t.sumY += y
	}
}
