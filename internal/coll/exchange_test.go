package coll

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// Properties of the exchanges that the matrix of proofs does not cover: offsets that
// differ between ranks, and the number of steps of T2 chapter 3.

// TestOwnOffsets gives every rank another order of blocks, with gaps: only lengths are
// known to all (MPI-4.1 6.7 and 6.8). Some ranks are in place and others are not, as
// callers in Go may be.
func TestOwnOffsets(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	for _, a := range allForms(slices.Concat(allgatherAlgorithms(), alltoallAlgorithms(), nodesAllgatherAlgorithms(), nodesAlltoallAlgorithms())) {
		t.Run(fmt.Sprintf("%s/%s", a.Kind, a.Name), func(t *testing.T) {
			for size := 1; size <= 14; size++ {
				for _, inPlace := range []func() bool{
					func() bool { return false }, func() bool { return true }, func() bool { return rng.Intn(2) == 0 },
				} {
					shapes := ownOffsets(a.Kind, size, a.Needs.Regular, inPlace, rng)
					if a.Needs.Nodes {
						nodes := drawNodes(size, rng)
						for r := range shapes {
							shapes[r].Nodes = nodes
						}
					}
					if ok, _ := Applicable(&a, &shapes[0]); !ok {
						continue
					}
					task := exchangeTask(shapes)
					a.EachParams(func(params []int) {
						if err := proveGraphs(&a, shapes, params, task); err != nil {
							t.Fatalf("%v, %d ranks: %v", params, size, err)
						}
					})
				}
			}
		})
	}
}

// ownOffsets generates blocks: lens[i][j] bytes from rank i to rank j, and as many back,
// as calls in place require. In an allgather all destinations get the same block.
func ownOffsets(kind Kind, size int, regular bool, inPlace func() bool, rng *rand.Rand) []Shape {
	lens := make([][]int, size)
	for i := range lens {
		lens[i] = make([]int, size)
		for j := range lens[i] {
			lens[i][j] = rng.Intn(4)
			if kind == Allgather {
				lens[i][j] = lens[i][0]
			} else if j < i {
				lens[i][j] = lens[j][i]
			}
		}
	}
	shapes := make([]Shape, size)
	for r := range shapes {
		shapes[r] = Shape{Kind: kind, Rank: r, Size: size, InPlace: inPlace()}
		if regular {
			shapes[r].Send.Each, shapes[r].Recv.Each = 3, 3
			continue
		}
		for i, b := range []*Blocks{&shapes[r].Send, &shapes[r].Recv} {
			b.Irregular, b.Offs = true, make([]int, size)
			for j := range size {
				b.Lens = append(b.Lens, []int{lens[r][j], lens[j][r]}[i])
			}
			end := 0
			for _, j := range rng.Perm(size) {
				b.Offs[j] = end + rng.Intn(2)
				end = b.Offs[j] + b.Lens[j]
			}
		}
	}
	return shapes
}

// exchangeTask defines the task independently of the code under test.
func exchangeTask(shapes []Shape) *sched.Task {
	task := &sched.Task{Ranks: make([]sched.Memory, len(shapes))}
	if nodes := shapes[0].Nodes; nodes != nil {
		task.Node = nodes.NodeList()
	}
	for r := range shapes {
		s, m := &shapes[r], &task.Ranks[r]
		for j := range shapes {
			off, n := s.Recv.Block(j)
			m.Out = max(m.Out, off+n)
			at := 1000 * r // the number of the block among those of rank j
			if s.Kind == Allgather {
				at = 0
			}
			m.End = append(m.End, sched.Piece{Span: sched.Span{Buf: sched.Out, Off: off, Len: n}, From: j, To: j + 1, At: at})
			switch {
			case s.Kind == Allgather && j != r:
				continue
			case s.InPlace:
				m.Start = append(m.Start, sched.Piece{Span: sched.Span{Buf: sched.Out, Off: off, Len: n}, From: r, To: r + 1})
			case s.Kind == Allgather:
				m.In = n
				m.Start = append(m.Start, sched.Piece{Span: sched.Span{Buf: sched.In, Len: n}, From: r, To: r + 1})
			default:
				off, n = s.Send.Block(j)
				m.In = max(m.In, off+n)
				m.Start = append(m.Start, sched.Piece{Span: sched.Span{Buf: sched.In, Off: off, Len: n}, From: r, To: r + 1})
			}
			if s.Kind == Alltoall {
				m.Start[len(m.Start)-1].At = 1000 * j
			}
		}
	}
	return task
}

func proveGraphs(a *Algorithm, shapes []Shape, params []int, task *sched.Task) error {
	graphs := make([]*sched.Graph, len(shapes))
	for r := range shapes {
		var b sched.Builder
		g, err := a.Graph(&b, &shapes[r], params)
		if err != nil {
			return err
		}
		if graphs[r], err = g.Expand(); err != nil {
			return err
		}
	}
	return sched.Validate(graphs, task)
}

// TestPortsAndSteps counts, in the graphs of every rank, the steps, the messages of
// a step and the bytes on a port, and compares them with the equations of T2.
func TestPortsAndSteps(t *testing.T) {
	const each = 10
	for _, c := range []struct {
		kind        Kind
		name        string
		ranks, k    int
		steps, port int // port: blocks per port in all steps together
	}{
		{Allgather, "direct", 9, 2, 4, 4}, // equation 3.3
		{Allgather, "direct", 10, 4, 3, 3},
		{Allgather, "standard-exchange", 9, 2, 2, 4}, // equation 3.4, figure 3.5
		{Allgather, "standard-exchange", 16, 3, 2, 5},
		{Allgather, "standard-exchange", 10, 2, 4, 16}, // corrected: a block before, all after
		{Allgather, "bruck", 9, 2, 2, 4},               // figure 3.6
		{Allgather, "bruck", 64, 3, 3, 21},
		{Allgather, "bruck", 10, 2, 3, 5}, // an additional step for the last block
		{Alltoall, "direct", 9, 2, 4, 4},
		{Alltoall, "bruck", 9, 2, 2, 6}, // figure 3.7: N/(k+1) blocks a port in each step
		{Alltoall, "bruck", 64, 3, 3, 48},
		{Alltoall, "standard-exchange", 9, 2, 2, 6},
		{Alltoall, "standard-exchange", 16, 1, 4, 32},
	} {
		t.Run(fmt.Sprintf("%s/%s/%d/%d", c.kind, c.name, c.ranks, c.k), func(t *testing.T) {
			a, err := Find(c.kind, c.name)
			if err != nil {
				t.Fatal(err)
			}
			steps, busiest := 0, 0
			for r := range c.ranks {
				var b sched.Builder
				s := Shape{Kind: c.kind, Rank: r, Size: c.ranks, Send: Blocks{Each: each}, Recv: Blocks{Each: each}}
				g, err := a.Graph(&b, &s, []int{c.k})
				if err != nil {
					t.Fatal(err)
				}
				sent, longest := map[int32]int{}, map[int32]int{}
				for _, op := range g.Ops {
					if op.Kind == sched.Send {
						sent[op.Step]++
						longest[op.Step] = max(longest[op.Step], op.Src.Len)
						steps = max(steps, int(op.Step)+1)
					}
				}
				port := 0
				for step, n := range sent {
					if n > c.k {
						t.Errorf("rank %d sends %d messages in step %d", r, n, step)
					}
					port += longest[step]
				}
				busiest = max(busiest, port)
			}
			if steps != c.steps || busiest != c.port*each {
				t.Errorf("%d steps and %d blocks per port, want %d and %d", steps, busiest/each, c.steps, c.port)
			}
		})
	}
}

func TestPartners(t *testing.T) {
	for n := 1; n <= 40; n++ {
		met := map[[2]int]int{}
		for step := range pairings(n) {
			for r := range n {
				p := partner(r, step, n)
				if p < 0 || p >= n || partner(p, step, n) != r {
					t.Fatalf("%d ranks, step %d: the partner of %d is %d, whose partner is %d", n, step, r, p, partner(p, step, n))
				}
				met[[2]int{r, p}]++
			}
		}
		for a := range n {
			for b := range n {
				if got := met[[2]int{a, b}]; a != b && got != 1 || a == b && got != n%2 {
					t.Fatalf("%d ranks: %d and %d are partners %d times", n, a, b, got)
				}
			}
		}
	}
}
