package coll

import (
	"math/rand"
	"testing"
)

// TestMixedInPlace executes reductions in which some ranks are in place and others are
// not: in Go a rank is in place if it passes one slice twice, and the other ranks do not
// know. TestOwnOffsets does the same for exchanges.
func TestMixedInPlace(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	for _, a := range Algorithms() {
		if !a.Kind.Combines() || a.Kind.Rooted() {
			continue
		}
		t.Run(a.Kind.String()+"/"+a.Name, func(t *testing.T) {
			for ranks := 2; ranks <= 9; ranks++ {
				for _, params := range allParams(a.Params) {
					cases(&a, ranks, rng, func(name string, shapes []Shape) {
						for i := range shapes {
							shapes[i].InPlace = rng.Intn(2) == 0
						}
						if err := execute(&a, shapes, params, rng); err != nil {
							t.Fatalf("%v, %s: %v", params, name, err)
						}
					})
				}
			}
		})
	}
}
