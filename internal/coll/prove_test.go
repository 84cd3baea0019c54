package coll

import (
	"flag"
	"fmt"
	"math"
	"math/rand"
	"testing"
)

// The matrix: every algorithm × every parameter × numbers of ranks × counts ×
// roots × blocks × in place or not × commuting or not, proved. Prove checks that sends
// match receives, that none can block or race, and that every byte of every result is
// correct; the test also checks that all ranks compute the same costs. An ordinary run
// uses a sample of the numbers of ranks.

var proveFull = flag.Bool("prove.full", false, "prove all algorithms for all numbers of ranks up to 33 (minutes)")

// matrixRanks returns the numbers of ranks.
func matrixRanks() []int {
	switch {
	case *proveFull:
		all := make([]int, 33)
		for i := range all {
			all[i] = i + 1
		}
		return all
	case testing.Short():
		return []int{1, 2, 3, 5, 8}
	}
	return []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16}
}

// matrixCounts returns the numbers of elements of a block or of the data: zero, one,
// fewer than ranks, more than ranks, not divisible by the ranks, and for a few numbers of
// ranks enough for several segments of any length worth trying.
func matrixCounts(ranks int) []int {
	counts := []int{0, 1, 2*ranks + 5}
	if *proveFull {
		counts = []int{0, 1, ranks - 1, 37, 2*ranks + 5}
	}
	if ranks == 3 || ranks == 8 {
		counts = append(counts, 50021)
	}
	return counts
}

func TestMatrix(t *testing.T) {
	all := allForms(Algorithms())
	counts := make(chan int, len(all))
	t.Run("prove", func(t *testing.T) {
		for _, a := range all {
			t.Run(fmt.Sprintf("%s/%s", a.Kind, a.Name), func(t *testing.T) {
				t.Parallel()
				counts <- proveMatrix(t, &a)
			})
		}
	})
	close(counts)
	total, algorithms := 0, 0
	for n := range counts {
		total += n
		algorithms++
		if n == 0 {
			t.Error("an algorithm is applicable to no case")
		}
	}
	t.Logf("%d cases of %d algorithms proved, among %v ranks", total, algorithms, matrixRanks())
}

// proveMatrix proves one algorithm and counts the cases.
func proveMatrix(t *testing.T, a *Algorithm) (proved int) {
	rng := rand.New(rand.NewSource(1))
	all := allParams(a.Params)
	for _, ranks := range matrixRanks() {
		proofCases(a.Kind, ranks, matrixCounts(ranks), rng, func(c proofCase) {
			if a.Needs.Nodes {
				c.onNodes(drawNodes(ranks, rng))
			}
			if ok, _ := Applicable(a, &c.shapes[0]); !ok {
				return
			}
			for _, params := range all {
				if err := a.prove(c.shapes, params); err != nil {
					t.Fatalf("%s: %v", c.about, err)
				}
				if err := sameCost(a, c.shapes, params); err != nil {
					t.Fatalf("%v, %d ranks, %s: %v", params, ranks, c.about, err)
				}
				proved++
			}
		})
	}
	return proved
}

// sameCost checks that every rank computes the same valid cost.
func sameCost(a *Algorithm, shapes []Shape, params []int) error {
	m := &Model{Startup: 1e-6, PerByte: 1e-9, Reduce: 3e-10, Copy: 1e-10, Ports: 2}
	first := a.Cost(&shapes[0], m, params)
	if math.IsNaN(first) || math.IsInf(first, 0) || first <= 0 {
		return fmt.Errorf("invalid cost %v", first)
	}
	for r := range shapes {
		if cost := a.Cost(&shapes[r], m, params); cost != first {
			return fmt.Errorf("rank 0 computes the cost %v, rank %d computes %v: they could choose differently", first, r, cost)
		}
	}
	return nil
}
