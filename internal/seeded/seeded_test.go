package seeded

import "testing"

func TestSeedComesFromTheVariable(t *testing.T) {
	t.Setenv("SEED", "7")
	if a, b := Random(t).Uint64(), New(7).Uint64(); a != b {
		t.Errorf("SEED=7 begins with %d, and the generator of 7 with %d", a, b)
	}
	t.Setenv("SEED", "")
	seeds := map[uint64]bool{}
	for range 3 {
		seeds[Seed()] = true
	}
	if len(seeds) == 1 {
		t.Error("without SEED, seeds are equal")
	}
}
