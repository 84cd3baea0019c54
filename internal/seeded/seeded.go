package seeded

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Random returns a generator for one goroutine, and logs its seed.
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := Seed()
	t.Logf("repeat with SEED=%d", seed)
	return New(seed)
}

// Seed returns the seed of the variable SEED, or a new one, which the caller has to log.
func Seed() uint64 {
	if seed, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil && seed != 0 {
		return seed
	}
	return 1 + uint64(rand.Uint32()) // short enough to be typed
}

// New returns the generator of a seed.
func New(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
