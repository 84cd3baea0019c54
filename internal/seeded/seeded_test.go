package seeded

import "testing"

func TestSeedComesFromTheVariable(t *testing.T) {
	t.Setenv("SEED", "7")
	if a, b := Random(t).Uint64(), New(7).Uint64(); a != b {
		t.Errorf("SEED=7 begins with %d, and the generator of 7 with %d", a, b)
	}
	t.Setenv("SEED", "")
	if Seed() == Seed() && Seed() == Seed() {
		t.Error("without SEED, seeds are equal")
	}
}
