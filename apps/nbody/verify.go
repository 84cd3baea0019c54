package nbody

import (
	"math"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// samples is how many stars of a rank are compared with the direct sum.
const samples = 64

// totals are sums over all stars of all ranks.
type totals struct {
	energy   float64
	momentum vector
}

func (s *simulation) totals() (totals, error) {
	sums := make([]float64, 4)
	for i, star := range s.stars {
		v := s.speed[i]
		sums[0] += star.mass * (v.square() + s.potential[i]) / 2
		for d := range v {
			sums[1+d] += star.mass * v[d]
		}
	}
	err := mpi.Allreduce(s.c, sums, sums, mpi.Sum)
	return totals{sums[0], vector(sums[1:])}, err
}

// verify checks that the simulation kept energy and momentum, and compares the accelerations
// of some stars with the direct sum over all stars. It returns the number of interactions of
// all ranks, too.
func (s *simulation) verify(before totals) ([]npb.Check, float64, error) {
	after, err := s.totals()
	if err != nil {
		return nil, 0, err
	}
	all, err := s.allStars()
	if err != nil {
		return nil, 0, err
	}
	sums := []float64{0, 0, float64(s.interactions)} // squares of differences and of values
	for i := 0; i < len(s.stars); i += max(1, len(s.stars)/samples) {
		direct := directSum(all, s.stars[i].at)
		sums[0] += direct.plus(s.acceleration[i], -1).square()
		sums[1] += direct.square()
	}
	if err := mpi.Allreduce(s.c, sums, sums, mpi.Sum); err != nil {
		return nil, 0, err
	}
	return []npb.Check{
		{Name: "Energy", Got: after.energy, Want: before.energy, Tolerance: 2e-3},
		{Name: "Momentum drift", Got: math.Sqrt(after.momentum.plus(before.momentum, -1).square()), Tolerance: 1e-3},
		{Name: "Force error", Got: math.Sqrt(sums[0] / sums[1]), Tolerance: 1e-2},
	}, sums[2], nil
}

// allStars gathers the stars of all ranks.
func (s *simulation) allStars() ([]point, error) {
	counts, n := make([]int, s.c.Size()), 0
	for rank, b := range s.boxes {
		counts[rank] = int(b.Stars)
		n += counts[rank]
	}
	all := make([]point, n)
	return all, mpi.Allgatherv(s.c, s.stars, all, counts, nil)
}

// directSum returns the acceleration at a position by the formula that the tree
// approximates.
func directSum(stars []point, at vector) vector {
	var sum vector
	for _, p := range stars {
		d := p.at.plus(at, -1)
		r2 := d.square() + softening*softening
		sum = sum.plus(d, p.mass/(r2*math.Sqrt(r2)))
	}
	return sum
}
