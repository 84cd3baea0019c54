package coll

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// Forms in a segment. The tests of all algorithms prove and execute them too, with
// messages and in one memory for each node; here are the properties that only they have.

// allForms returns algorithms, their forms in a segment, and those with generated
// operations, in a window so small that every call moves it.
func allForms(list []Algorithm) []Algorithm {
	var all []Algorithm
	for _, a := range list {
		all = append(all, a)
		if form := a.SegmentForm(); form != nil {
			form.Name += "-segment"
			all = append(all, *form)
		}
		if a.Generate != nil {
			form := a.generatedForm(8)
			form.Name += "-generated"
			all = append(all, *form)
		}
	}
	return all
}

func TestSegmented(t *testing.T) {
	var got []string
	for _, a := range Algorithms() {
		if a.SegmentForm() != nil {
			got = append(got, fmt.Sprint(a.Kind, " ", a.Name))
		}
	}
	want := []string{"allgather node-bruck", "allgather node-groups", "allgather node-ring", "allgather node-spread", "allgather pap_shm_direct", "alltoall pap_shm_direct"}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("forms in a segment: %v, want %v", got, want)
	}
}

// segmentCases calls try with the calls of every algorithm that has a form in a segment.
func segmentCases(t *testing.T, rng *rand.Rand, try func(t *testing.T, a *Algorithm, params []int, shapes []Shape)) {
	for _, a := range Algorithms() {
		if a.InSegment == nil {
			continue
		}
		t.Run(fmt.Sprintf("%s/%s", a.Kind, a.Name), func(t *testing.T) {
			for _, top := range papTopologies() {
				for _, params := range allParams(a.Params) {
					casesOf(&a, top.Size(), []int{0, 1, 5}, rng, func(name string, shapes []Shape) {
						for i := range shapes {
							shapes[i].Nodes = top
						}
						try(t, &a, params, shapes)
					})
				}
			}
		})
	}
}

// TestSegmentByNode checks that each node may use its segment or not, because the messages
// between nodes are the same.
func TestSegmentByNode(t *testing.T) {
	rng := rand.New(rand.NewSource(11))
	segmentCases(t, rng, func(t *testing.T, a *Algorithm, params []int, shapes []Shape) {
		with := make([]bool, shapes[0].Nodes.Nodes())
		for n := range with {
			with[n] = rng.Intn(2) == 0
		}
		mixed := *a
		mixed.Build = func(b *sched.Builder, s *Shape, params []int) {
			if with[s.Nodes.NodeOf(s.Rank)] {
				a.InSegment(b, s, params)
			} else {
				a.Build(b, s, params)
			}
		}
		if err := mixed.prove(shapes, params); err != nil {
			t.Fatalf("nodes in a segment: %v: %v", with, err)
		}
		if err := execute(&mixed, shapes, params, rng); err != nil {
			t.Fatalf("nodes in a segment: %v: %.3000v", with, err)
		}
	})
}

// TestSegmentReuse makes several calls in a row, each rank as soon as it has ended the last
// one, in two memories for each node that the calls use in turn. With one memory the test
// must find wrong results.
func TestSegmentReuse(t *testing.T) {
	rng := rand.New(rand.NewSource(12))
	for memories := 2; memories >= 1; memories-- {
		wrong := 0
		segmentCases(t, rng, func(t *testing.T, a *Algorithm, params []int, shapes []Shape) {
			err := consecutive(a.SegmentForm(), params, shapes, 5, memories, rng)
			if err != nil && memories == 2 {
				t.Fatalf("%v on %v: %v", params, shapes[0].Nodes, err)
			}
			if err != nil {
				wrong++
			}
		})
		if memories == 1 && wrong < 100 {
			t.Errorf("only %d of the cases with one memory have wrong results: the test does not find reuse that is too early", wrong)
		}
	}
}

// consecutive executes a number of calls in memories of each node.
func consecutive(a *Algorithm, params []int, shapes []Shape, count, memories int, rng *rand.Rand) error {
	n := len(shapes)
	graphs := make([]*sched.Graph, n)
	for r := range graphs {
		var b sched.Builder
		var err error
		if graphs[r], err = a.Graph(&b, &shapes[r], params); err != nil {
			return err
		}
	}
	var calls [][]call
	for range count {
		calls = append(calls, defineCalls(shapes, rng))
	}
	var seg [][][]byte
	for range memories {
		seg = append(seg, newSegments(graphs, shapes, true, rng))
	}
	w := &network{rank: map[*sched.Run]int{}, eager: rng.Intn(2) == 0, queues: map[strand]*queue{}, rng: rng, begun: make([]bool, n)}
	for r := range graphs {
		run := &sched.Run{Graph: graphs[r], Port: w, Arrivals: w, InSegment: true}
		w.runs, w.rank[run] = append(w.runs, run), r
		w.begun[r] = true
	}
	made := make([]int, n) // calls begun
	for {
		var idle []int
		for r, run := range w.runs {
			if run.Serve(); run.Done() && made[r] < count {
				idle = append(idle, r)
			}
		}
		if len(w.moved)+len(idle) == 0 {
			break
		}
		if k := rng.Intn(len(w.moved) + len(idle)); k < len(idle) {
			r, run := idle[k], w.runs[idle[k]]
			c := &calls[made[r]][r]
			run.Mem = [sched.Bufs][]byte{c.in, c.out, random(rng, graphs[r].Tmp), seg[made[r]%memories][r]}
			made[r]++
			run.Start()
		} else if err := w.deliver(k - len(idle)); err != nil {
			return err
		}
	}
	for k := range calls {
		for r, c := range calls[k] {
			if !w.runs[r].Done() || made[r] < count {
				return fmt.Errorf("rank %d is stuck in call %d", r, made[r])
			}
			if !bytes.Equal(c.out, c.want) {
				return fmt.Errorf("call %d: rank %d has\n%v, must have\n%v", k, r, c.out, c.want)
			}
		}
	}
	return nil
}

// TestSegmentTraffic checks table 5.1 of T2 for nodes with a segment (see
// TestComplexity): its formulas less what the network reads and writes in place, the pM
// bytes that leave a node and the npM that the leaders write, of which pM are there.
//
//	              connections   network     written   read
//	g groups      g(n-1)        p(n-1)M     pM        p·npM
//	gather-based  n-1           p(n-1)M     pM        p·npM
func TestSegmentTraffic(t *testing.T) {
	const m = complexityBytes
	for _, c := range []struct{ n, p int }{{4, 4}, {2, 2}, {3, 4}, {5, 6}, {8, 4}, {4, 8}} {
		n, p := c.n, c.p
		counts := slices.Repeat([]int{p}, n)
		network := p * (n - 1) * m
		want := func(connections, reads, handOvers int) sched.Traffic {
			return sched.Traffic{Out: connections, In: connections, Sent: network, Received: network, FromShared: network, ToShared: network,
				Writes: p, Written: p * m, Reads: reads, Read: p * n * p * m, HandOvers: handOvers}
		}
		for _, row := range []struct {
			name   string
			params []int
			want   sched.Traffic
		}{
			// A leader takes the blocks of its group over and hands the row over: once, or
			// node by node. A rank copies the row of a group out at once if its blocks are
			// adjacent in both.
			{"node-groups", []int{1, 1, copied}, want(1, p, 2*(p-1))},
			{"node-groups", []int{1, 16, copied}, want(n-1, p, 2*(p-1))},
			{"node-groups", []int{1, 16, straight}, want(n-1, p*n, p-1+n*(p-1))},
			{"node-groups", []int{2, 16, copied}, want(2*(n-1), p*n*2, p-2+2*(p-1))},
			{"node-groups", []int{2, 16, straight}, want(2*(n-1), p*n*2, p-2+2*n*(p-1))},
			{"node-ring", []int{1, copied}, want(1, p, 2*(p-1))},
			{"node-spread", nil, want(n-1, 0, p*(p-1)+p-1)},
		} {
			a, err := Find(Allgather, row.name)
			if err != nil {
				t.Fatal(err)
			}
			for node, got := range trafficOfForm(t, a.SegmentForm(), row.params, counts...) {
				if row.name == "node-spread" { // the row begins with the own node
					if row.want.Reads = 2 * p; node > 0 && node < n-1 {
						row.want.Reads = 3 * p
					}
				}
				if got != row.want {
					t.Errorf("%s %v, %d nodes of %d ranks, node %d: %+v, by table 5.1 %+v", row.name, row.params, n, p, node, got, row.want)
				}
			}
		}
	}
}

// generatedForm returns the form of an algorithm whose operations are generated, for a window.
func (a *Algorithm) generatedForm(window int) *Algorithm {
	form := *a
	form.Build = func(b *sched.Builder, s *Shape, params []int) { a.Generate(b, s, params, window) }
	return &form
}
