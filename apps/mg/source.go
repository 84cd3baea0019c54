package mg

import (
	"cmp"
	"slices"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// charges is the number of points of the right side with 1, and of those with -1.
const charges = 10

// point is a point of the finest grid and its random number. It has no pointers, so it
// can be sent as it is.
type point struct {
	Value   float64
	X, Y, Z int32 // in the whole grid, from 0
}

func byValue(a, b point) int { return cmp.Compare(a.Value, b.Value) }

// source returns the right side: zero, except for 1 at the ten points with the largest
// random numbers, and -1 at the ten with the smallest. Each rank proposes its own.
func (s *solver) source() ([]float64, error) {
	b := s.top()
	coords := s.cart.MyCoords()
	ox, oy, oz := coords[2]*b.own[0], coords[1]*b.own[1], coords[0]*b.own[2]

	extremes := make([]point, 0, 3*charges) // the smallest and the largest, in order
	numbers := make([]float64, b.own[0])
	b.rows(func(y, z int) {
		random := npb.Random(npb.Seed)
		random.Skip(ox + b.n*(oy+y-1+b.n*(oz+z-1)))
		random.Fill(numbers)
		for i, v := range numbers {
			p := point{v, int32(ox + i), int32(oy + y - 1), int32(oz + z - 1)}
			if len(extremes) == 2*charges {
				if v > extremes[charges-1].Value && v < extremes[charges].Value {
					continue
				}
				extremes = slices.Delete(insert(extremes, p), charges, charges+1)
				continue
			}
			extremes = insert(extremes, p)
		}
	})
	all := make([]point, len(extremes)*s.cart.Size())
	if err := mpi.Allgather(s.cart.Comm, extremes, all); err != nil {
		return nil, err
	}
	slices.SortFunc(all, byValue)

	v := make([]float64, len(b.u))
	set := func(points []point, charge float64) {
		for _, p := range points {
			x, y, z := int(p.X)-ox, int(p.Y)-oy, int(p.Z)-oz
			if x >= 0 && x < b.own[0] && y >= 0 && y < b.own[1] && z >= 0 && z < b.own[2] {
				v[b.at(x+1, y+1, z+1)] = charge
			}
		}
	}
	set(all[:charges], -1)
	set(all[len(all)-charges:], 1)
	return v, nil
}

// insert adds a point to a list in order.
func insert(list []point, p point) []point {
	i, _ := slices.BinarySearchFunc(list, p, byValue)
	return slices.Insert(list, i, p)
}
