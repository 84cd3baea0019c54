package nbody

import (
	"cmp"
	"math"
	"slices"

	"github.com/muster-mpi/muster/apps/internal/npb"
)

// cluster returns a spherical star cluster of mass 1 in equilibrium: Plummer's model, sampled
// as by Aarseth, Hénon and Wielen. All ranks make the same one. The stars are in the order of
// a space-filling curve, so that a contiguous part of them is close together.
func cluster(n int) ([]point, []vector) {
	stars, speed := make([]point, n), make([]vector, n)
	random := npb.Random(npb.Seed)
	for i := range stars {
		// The fraction of the mass within the radius; the farthest stars are left out.
		fraction := 0.99 * (random.Next() + 1e-9)
		radius := 1 / math.Sqrt(math.Pow(fraction, -2.0/3)-1)
		// The speed in units of the one needed to escape has the density q²(1-q²)^3.5.
		q := random.Next()
		for 0.1*random.Next() > q*q*math.Pow(1-q*q, 3.5) {
			q = random.Next()
		}
		stars[i] = point{direction(&random, radius), 1 / float64(n)}
		speed[i] = direction(&random, q*math.Sqrt2*math.Pow(1+radius*radius, -0.25))
	}
	order := make([]int, n)
	codes := make([]uint64, n)
	for i := range order {
		order[i], codes[i] = i, morton(stars[i].at)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(codes[a], codes[b]) })
	sortedStars, sortedSpeed := make([]point, n), make([]vector, n)
	for i, o := range order {
		sortedStars[i], sortedSpeed[i] = stars[o], speed[o]
	}
	return sortedStars, sortedSpeed
}

// direction returns a vector of a length in a random direction.
func direction(random *npb.Random, length float64) vector {
	z := 2*random.Next() - 1
	sin, cos := math.Sincos(2 * math.Pi * random.Next())
	r := math.Sqrt(1 - z*z)
	return vector{length * r * cos, length * r * sin, length * z}
}

// morton returns the position on a curve through space: the bits of the three coordinates,
// interleaved.
func morton(at vector) uint64 {
	const bits, limit = 20, 32.0 // the cluster is within ±limit
	var code uint64
	for d, x := range at {
		cell := uint64((x + limit) / (2 * limit) * (1 << bits))
		for b := range bits {
			code |= cell >> b & 1 << (3*b + d)
		}
	}
	return code
}
