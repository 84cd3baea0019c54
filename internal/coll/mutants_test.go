package coll

import (
	"errors"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// TestMutants inserts faults into the graphs of every algorithm. The validator must find
// each, or the mutant must be equivalent to the original: the adversary executes mutants
// that pass many times and must get only correct results. The adversary also executes
// the others: most faults that are found must be demonstrable.
func TestMutants(t *testing.T) {
	rng := rand.New(rand.NewSource(7))
	tally := map[string]*mutantTally{}
	for _, a := range allForms(Algorithms()) {
		if strings.HasSuffix(a.Name, "-generated") {
			continue // has operations without an effect, which may be dropped
		}
		for _, shapes := range mutantShapes(&a, rng) {
			graphs := make([]*sched.Graph, len(shapes))
			for r := range shapes {
				var b sched.Builder
				g, err := a.Graph(&b, &shapes[r], last(a.Params))
				if err != nil {
					t.Fatal(err)
				}
				if graphs[r], err = g.Expand(); err != nil {
					t.Fatal(err)
				}
			}
			if err := Prove(shapes, graphs); err != nil {
				t.Fatalf("%s by %s, without a fault: %v", a.Kind, a.Name, err)
			}
			victim := graphs[rng.Intn(len(graphs))]
			mutants(victim, shapes[0].Elem, func(fault string, d *draft) {
				if tally[fault] == nil {
					tally[fault] = &mutantTally{by: map[string]int{}}
				}
				if mayBeHarmless(fault, &shapes[0]) {
					tally[fault].mayPass++
				}
				if text := tally[fault].judge(shapes, graphs, d, rng); text != "" {
					t.Fatalf("%s by %s: %s: the proof passes, but %s\n%v", a.Kind, a.Name, fault, text, d)
				}
			})
		}
	}
	for _, fault := range slices.Sorted(maps.Keys(tally)) {
		n := tally[fault]
		t.Logf("%-31s %5d, found %5d %v, shown %5d, harmless %d", fault, n.all, n.found, n.by, n.shown, n.all-n.found)
		if n.all-n.found > n.mayPass {
			t.Errorf("%s: %d of %d are not found, and %d may be harmless", fault, n.all-n.found, n.all, n.mayPass)
		}
		// Some dropped dependencies have no visible effect: messages of other ranks
		// order the two operations. A graph must not rely on that.
		if n.shown*10 < n.found*8 {
			t.Errorf("%s: %d are found, but only %d can be demonstrated", fault, n.found, n.shown)
		}
	}
}

// mutantTally counts the results for the mutants with one kind of fault.
type mutantTally struct {
	all, found, shown int
	mayPass           int            // may be equivalent to the original
	by                map[string]int // the checks that found them
}

// mayBeHarmless reports whether a kind of fault may have no effect: a dependency may
// follow from others or only limit the rate, two buffers may hold the same bytes, and
// commuting operands may be exchanged.
func mayBeHarmless(fault string, s *Shape) bool {
	switch fault {
	case "a dependency dropped", "a source in another buffer":
		return true
	case "operands exchanged":
		return s.Commutes
	}
	return false
}

// judge replaces a graph by a mutant. It returns the wrong result of a mutant that the
// validator did not find.
func (n *mutantTally) judge(shapes []Shape, graphs []*sched.Graph, d *draft, rng *rand.Rand) string {
	n.all++
	g, err := d.graph()
	if err != nil {
		n.found++
		n.shown++
		n.by["builder"]++
		return ""
	}
	mixed := slices.Clone(graphs)
	mixed[d.rank] = g
	var fault *sched.Fault
	found := errors.As(Prove(shapes, mixed), &fault)
	if found {
		n.found++
		n.by[fault.Check]++
	}
	if shapes[0].Kind == Neighbors { // not among the adversary's definitions
		return ""
	}
	for range 20 {
		if err := runAdversary(mixed, shapes, rng); err != nil {
			if !found {
				return err.Error()
			}
			n.shown++
			return ""
		}
	}
	return ""
}

// mutantShapes returns a few calls with many operations. Reductions do not commute if
// the algorithm supports that.
func mutantShapes(a *Algorithm, rng *rand.Rand) (calls [][]Shape) {
	for variant := range 8 {
		ranks, irregular, inPlace := 4+3*(variant&1), variant&2 != 0, variant&4 != 0
		if irregular && !hasBlocks(a.Kind) || inPlace && len(placements(a.Kind)) == 1 {
			continue
		}
		shapes := make([]Shape, ranks)
		for r := range shapes {
			shapes[r] = Shape{Kind: a.Kind, Rank: r, Size: ranks, Root: 1, Elem: 2, Commutes: a.Needs.Commutes, Bytes: 4 * ranks, Nodes: put(a, ranks),
				InPlace: inPlace && (r == 1 || !a.Kind.Rooted())}
			if a.Kind == Neighbors {
				s := &shapes[r]
				s.Sources, s.Dests = []int{(r + 1) % ranks, (r + 2) % ranks}, []int{(r + ranks - 1) % ranks, (r + ranks - 2) % ranks}
			}
		}
		layBlocks(shapes, 4, irregular, rng)
		if ok, _ := Applicable(a, &shapes[0]); ok {
			calls = append(calls, shapes)
		}
	}
	return calls
}
