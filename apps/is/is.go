package is

import (
	"strconv"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// Classes lists the problem sizes.
const Classes = "SWABC"

const iterations = 10

// params are the number of keys and of their values as powers of two, that of the buckets,
// and the ranks of five keys that the specification gives.
type params struct {
	log2Keys, log2Max, log2Buckets int
	probes                         [5]probe
}

// probe is a key by its index, and its rank. Each iteration replaces one key by a small
// and one by a large value, so that the rank changes by step from one to the next; rank is
// that of iteration 0.
type probe struct{ index, rank, step int }

var classes = map[byte]params{
	'S': {16, 11, 9, [5]probe{
		{48427, 0, 1}, {17148, 18, 1}, {23627, 346, 1}, {62548, 64917, -1}, {4431, 65463, -1}}},
	'W': {20, 16, 10, [5]probe{
		{357773, 1249 - 2, 1}, {934767, 11698 - 2, 1}, {875723, 1039987, -1}, {898999, 1043896, -1}, {404505, 1048018, -1}}},
	'A': {23, 19, 10, [5]probe{
		{2112377, 104 - 1, 1}, {662041, 17523 - 1, 1}, {5336171, 123928 - 1, 1}, {3642833, 8288932 + 1, -1}, {4250760, 8388264 + 1, -1}}},
	'B': {25, 21, 10, [5]probe{
		{41869, 33422937, -1}, {812306, 10244, 1}, {5102857, 59149, 1}, {18232239, 33135281, -1}, {26860214, 99, 1}}},
	'C': {27, 23, 10, [5]probe{
		{44172927, 61147, 1}, {72999161, 882988, 1}, {74326391, 266290, 1}, {129606274, 133997595, -1}, {21736814, 133525895, -1}}},
}

// Run ranks the keys of a class on the ranks of c, whose number is a power of two.
func Run(c *mpi.Comm, class byte) (npb.Result, error) {
	p, err := npb.Class(classes, class)
	if err != nil {
		return npb.Result{}, err
	}
	if err := npb.CheckPowerOfTwo(c.Size()); err != nil {
		return npb.Result{}, err
	}
	s := newSorter(c, p)
	// The first iteration is not timed: it touches all memory and connects the ranks.
	if err := s.rank(1); err != nil {
		return npb.Result{}, err
	}
	s.correct = 0
	if err := s.clock.Start(c); err != nil {
		return npb.Result{}, err
	}
	for i := 1; i <= iterations; i++ {
		if err := s.rank(i); err != nil {
			return npb.Result{}, err
		}
	}
	s.clock.Stop()

	unordered, err := s.countUnordered()
	if err != nil {
		return npb.Result{}, err
	}
	sums := []int{s.correct, unordered, len(s.received)}
	if err := mpi.Allreduce(c, sums, sums, mpi.Sum); err != nil {
		return npb.Result{}, err
	}
	keys := 1 << p.log2Keys
	return s.clock.Finish(c, npb.Result{
		Name: "IS", Class: class, Size: strconv.Itoa(keys), Iterations: iterations,
		Operation: "keys ranked", Operations: iterations * float64(keys),
		Checks: []npb.Check{
			{Name: "Ranks as given", Got: float64(sums[0]), Want: float64(iterations * len(p.probes))},
			{Name: "Unordered keys", Got: float64(sums[1]), Want: 0},
			{Name: "Sorted keys", Got: float64(sums[2]), Want: float64(keys)},
		},
	})
}
