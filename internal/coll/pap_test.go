package coll

import (
	"bytes"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// The arrival-aware algorithms on nodes: proved, and executed with ranks that begin at
// random times and arrivals that are reported at random times or not at all. On one node
// the tests of all algorithms cover them.

// papTopologies returns nodes of equal and of different size, single ranks, and ranks
// dealt round-robin.
func papTopologies() []*Topology {
	return []*Topology{
		Consecutive(1, 4, 4), Consecutive(2, 1, 3, 2), Consecutive(1, 1, 1, 1, 1), Consecutive(2, 5, 1, 3, 4, 4),
		NewTopology([]int{0, 1, 0, 1, 2, 2, 0}, 1), NewTopology([]int{2, 1, 0, 0, 1, 2, 1, 0, 2}, 2),
	}
}

func TestArrivalAwareOnNodes(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	total := 0
	for _, a := range allForms(papAlgorithms()) {
		t.Run(fmt.Sprintf("%s/%s", a.Kind, a.Name), func(t *testing.T) {
			irregular := 0
			for _, top := range papTopologies() {
				for _, params := range [][]int{a.Default(), last(a.Params)} {
					cases(&a, top.Size(), rng, func(name string, shapes []Shape) {
						for i := range shapes {
							shapes[i].Nodes = top
						}
						if err := a.prove(shapes, params); err != nil {
							t.Fatalf("%v on %v, %s: %v", params, top, name, err)
						}
						if err := execute(&a, shapes, params, rng); err != nil {
							t.Fatalf("%v on %v, %s: %.3000v", params, top, name, err)
						}
						total++
						if shapes[0].Recv.Irregular {
							irregular++
						}
					})
				}
			}
			if hasBlocks(a.Kind) && irregular == 0 && a.Instead == "" {
				t.Error("no case has blocks of different lengths, and there is no replacement for them")
			}
		})
	}
	t.Logf("%d cases proved and executed", total)
}

// TestAwareFormsMix checks that graphs of an algorithm and of its aware form work
// together, because every rank chooses between the two on its own.
func TestAwareFormsMix(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	forms := 0
	for _, a := range Algorithms() {
		if a.Aware == "" {
			continue
		}
		aware, err := Find(a.Kind, a.Aware)
		if err != nil {
			t.Fatal(err)
		}
		forms++
		for _, ranks := range []int{2, 3, 5, 8, 13, 17} {
			cases(&a, ranks, rng, func(name string, shapes []Shape) {
				if err := mixed(&a, aware, shapes, rng); err != nil {
					t.Fatalf("%s by %s and %s, %s: %.3000v", a.Kind, a.Name, aware.Name, name, err)
				}
			})
		}
	}
	if forms == 0 {
		t.Error("no algorithm has an aware form")
	}
}

func mixed(a, b *Algorithm, shapes []Shape, rng *rand.Rand) error {
	calls := defineCalls(shapes, rng)
	w := &network{rank: map[*sched.Run]int{}, eager: rng.Intn(2) == 0, late: true, commutes: true, queues: map[strand]*queue{}}
	graphs := make([]*sched.Graph, len(shapes))
	for i := range shapes {
		form := a
		if rng.Intn(2) == 0 {
			form = b
		}
		var build sched.Builder
		var err error
		if graphs[i], err = form.Graph(&build, &shapes[i], []int{1 + rng.Intn(4)}); err != nil {
			return err
		}
		r := &sched.Run{Graph: graphs[i], Port: w, Arrivals: w, Mem: [sched.Bufs][]byte{calls[i].in, calls[i].out, random(rng, graphs[i].Tmp)}}
		w.runs = append(w.runs, r)
		w.rank[r] = i
	}
	if err := Prove(shapes, graphs); err != nil {
		return err
	}
	if err := w.run(rng); err != nil {
		return err
	}
	for i, c := range calls {
		if !bytes.Equal(c.out, c.want) {
			return fmt.Errorf("rank %d has\n%v, must have\n%v:\n%v", i, c.out, c.want, graphs[i])
		}
	}
	return nil
}

// TestInsteadOfLeaders checks that a rule for pap_shm_direct makes alltoallv use
// pap_direct with the same ports.
func TestInsteadOfLeaders(t *testing.T) {
	shm, err := Find(Alltoall, papShmDirect)
	if err != nil {
		t.Fatal(err)
	}
	table := &Tuning{Rules: []Rule{{Kind: Alltoall, Algorithm: shm, Params: []int{8}}}}
	shape := Shape{Kind: Alltoall, Size: 12, Elem: 1, Nodes: Consecutive(2, 4, 4, 4), Recv: Blocks{Each: 8 << 10}, Send: Blocks{Each: 8 << 10}}
	model := Model{Startup: 1e-6, PerByte: 1e-9, Ports: 2}
	for _, irregular := range []bool{false, true} {
		shape.Send.Irregular, shape.Recv.Irregular = irregular, irregular
		c, err := Choose(&shape, &model, table)
		if err != nil {
			t.Fatal(err)
		}
		want := papShmDirect
		if irregular {
			want = papDirect
		}
		if c.Algorithm.Name != want || len(c.Params) != 1 || c.Params[0] != 8 {
			t.Errorf("irregular %v: %s %v is chosen, want %s with 8 ports", irregular, c.Algorithm.Name, c.Params, want)
		}
		if named := strings.Contains(c.Why, "names pap_shm_direct, but the blocks have different lengths"); named != irregular {
			t.Errorf("irregular %v: the reason is %q", irregular, c.Why)
		}
	}
	if table.Rules[0].Algorithm != shm {
		t.Error("the table was changed")
	}
}

// TestReplacementParams checks that a replacement algorithm (Instead) has the same
// parameters.
func TestReplacementParams(t *testing.T) {
	for _, a := range Algorithms() {
		if a.Instead == "" {
			continue
		}
		b, err := Find(a.Kind, a.Instead)
		if err != nil {
			t.Errorf("%s by %s: %v", a.Kind, a.Name, err)
		} else if !reflect.DeepEqual(a.Params, b.Params) {
			t.Errorf("%s by %s has the parameters %v, its replacement %s has %v", a.Kind, a.Name, a.Params, b.Name, b.Params)
		}
	}
}
