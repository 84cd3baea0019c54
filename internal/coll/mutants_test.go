package coll

import (
	"errors"
	"maps"
	"math/rand"
	"slices"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// TestMutants plants faults into the graphs of every algorithm. The validator must
// find each, or the mutant must be as good as the original, which the adversary is
// asked: it executes those that pass, again and again, and may get nothing but the
// right bytes. It is asked about the others too: most faults that are found must
// be faults that can be shown.
func TestMutants(t *testing.T) {
	rng := rand.New(rand.NewSource(7))
	tally := map[string]*mutantTally{}
	for _, a := range Algorithms() {
		for _, shapes := range mutantShapes(&a, rng) {
			graphs := make([]*sched.Graph, len(shapes))
			for r := range shapes {
				var b sched.Builder
				g, err := a.Graph(&b, &shapes[r], last(a.Params))
				if err != nil {
					t.Fatal(err)
				}
				graphs[r] = g
			}
			if err := Prove(shapes, graphs); err != nil {
				t.Fatalf("%s by %s, without any fault: %v", a.Kind, a.Name, err)
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
					t.Fatalf("%s by %s: %s: the proof passes, and yet %s\n%v", a.Kind, a.Name, fault, text, d)
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
		// Of dependencies dropped, some change nothing that can be seen: messages of
		// other ranks order the two operations. The rule is that they must not rely
		// on it.
		if n.shown*10 < n.found*8 {
			t.Errorf("%s: %d are found, and only %d can be shown to be faults", fault, n.found, n.shown)
		}
	}
}

// mutantTally counts what became of the mutants with one kind of fault.
type mutantTally struct {
	all, found, shown int
	mayPass           int            // may be as good as the original
	by                map[string]int // the checks that found them
}

// mayBeHarmless reports which faults can be none: dependencies may follow from
// others or be there for pace, the same bytes may lie in two buffers, and operands
// that commute may be exchanged.
func mayBeHarmless(fault string, s *Shape) bool {
	switch fault {
	case "a dependency dropped", "a source in another buffer":
		return true
	case "operands exchanged":
		return s.Commutes
	}
	return false
}

// judge puts a mutant in the place of its original. It returns what is wrong with
// one that was not found.
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

// mutantShapes is a few calls that an algorithm has much to do for. Reductions
// keep their order if the algorithm can.
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
