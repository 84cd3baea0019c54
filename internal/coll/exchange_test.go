package coll

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// What the matrix of proofs does not ask of the exchanges among all ranks: offsets
// that are each rank's own, and the steps that T2 chapter 3 promises.

// TestOwnOffsets gives every rank another order of blocks, with gaps: only lengths
// are common knowledge (MPI-4.1 6.7 and 6.8).
func TestOwnOffsets(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	for _, a := range append(allgatherAlgorithms(), alltoallAlgorithms()...) {
		if a.Needs.Regular {
			continue
		}
		t.Run(fmt.Sprintf("%s/%s", a.Kind, a.Name), func(t *testing.T) {
			for size := 1; size <= 11; size++ {
				for _, inPlace := range []bool{false, true} {
					shapes := ownOffsets(a.Kind, size, inPlace, rng)
					if ok, _ := Applicable(&a, &shapes[0]); !ok {
						continue
					}
					task := exchangeTask(shapes)
					a.EachParams(func(params []int) {
						if err := proveGraphs(&a, shapes, params, task); err != nil {
							t.Fatalf("%v, %d ranks, in place %v: %v", params, size, inPlace, err)
						}
					})
				}
			}
		})
	}
}

// ownOffsets draws blocks: lens[i][j] bytes go from rank i to rank j. In place
// the same number comes back; in an allgather the same goes to all.
func ownOffsets(kind Kind, size int, inPlace bool, rng *rand.Rand) []Shape {
	lens := make([][]int, size)
	for i := range lens {
		lens[i] = make([]int, size)
		for j := range lens[i] {
			lens[i][j] = rng.Intn(4)
			if kind == Allgather {
				lens[i][j] = lens[i][0]
			} else if inPlace && j < i {
				lens[i][j] = lens[j][i]
			}
		}
	}
	shapes := make([]Shape, size)
	for r := range shapes {
		send, recv := Blocks{Irregular: true}, Blocks{Irregular: true}
		for i := range size {
			send.Lens, recv.Lens = append(send.Lens, lens[r][i]), append(recv.Lens, lens[i][r])
		}
		for _, b := range []*Blocks{&send, &recv} {
			b.Offs = make([]int, size)
			end := 0
			for _, i := range rng.Perm(size) {
				b.Offs[i] = end + rng.Intn(2)
				end = b.Offs[i] + b.Lens[i]
			}
		}
		shapes[r] = Shape{Kind: kind, Rank: r, Size: size, InPlace: inPlace, Recv: recv}
		if kind == Alltoall && !inPlace {
			shapes[r].Send = send
		}
	}
	return shapes
}

// exchangeTask says what lies where, by hand and not by the code under test.
func exchangeTask(shapes []Shape) *sched.Task {
	task := &sched.Task{Ranks: make([]sched.Memory, len(shapes))}
	for r := range shapes {
		s, m := &shapes[r], &task.Ranks[r]
		for j := range shapes {
			off, n := s.Recv.Of(j)
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
				off, n = s.Send.Of(j)
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
		graphs[r] = g
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
		steps, port int // port: blocks that pass a port in all steps together
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
				t.Errorf("%d steps and %d blocks a port, want %d and %d", steps, busiest/each, c.steps, c.port)
			}
		})
	}
}
