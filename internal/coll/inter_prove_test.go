package coll

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// Proofs of collectives between two groups: the cases of inter_test.go with more ranks,
// against MPI's definition.

// task returns the definition of a call between groups.
func (k *interCase) task() *sched.Task {
	s := &k.shapes[0]
	t := &sched.Task{Elem: s.Elem, Commutes: s.Commutes, Sync: s.Kind == Barrier, Agree: s.Kind == Allreduce}
	for r := range k.shapes {
		t.Ranks = append(t.Ranks, k.memory(r))
	}
	return t
}

func (k *interCase) memory(r int) sched.Memory {
	s, c := &k.shapes[r], &k.calls[r]
	m := sched.Memory{In: len(c.in), Out: len(c.out)}
	mine, far, others := 0, s.Sizes[0], s.Sizes[1]
	if r >= s.Sizes[0] {
		mine, far, others = far, mine, s.Sizes[0]
	}
	// gets records that bytes of Out are those of ranks from to to-1, from offset at.
	gets := func(off, n, from, to, at int) {
		m.End = append(m.End, sched.Piece{Span: sched.Span{Buf: sched.Out, Off: off, Len: n}, From: from, To: to, At: at})
	}
	if len(c.in) > 0 {
		m.Start = append(m.Start, sched.Piece{Span: sched.Span{Buf: sched.In, Len: len(c.in)}, From: r, To: r + 1})
	}
	isRoot, isOther := s.Kind.Rooted() && r == s.Root, s.Kind.Rooted() && s.Root >= 0 && r != s.Root
	switch s.Kind {
	case Bcast:
		if isRoot {
			m.Start = append(m.Start, sched.Piece{Span: sched.Span{Buf: sched.Out, Len: len(c.out)}, From: r, To: r + 1})
		} else if isOther {
			gets(0, s.Bytes, s.Root, s.Root+1, 0)
		}
	case Scatter:
		if isOther {
			at, n := k.shapes[s.Root].Send.Block(r - mine)
			gets(0, n, s.Root, s.Root+1, at)
		}
	case Gather, Allgather, Alltoall:
		if s.Kind == Gather && !isRoot {
			break
		}
		for i := range others {
			off, n := s.Recv.Block(i)
			at := 0
			if s.Kind == Alltoall {
				at, _ = k.shapes[far+i].Send.Block(r - mine)
			}
			gets(off, n, far+i, far+i+1, at)
		}
	case Reduce, Allreduce:
		if s.Kind == Allreduce || isRoot {
			gets(0, s.Bytes, far, far+others, 0)
		}
	case ReduceScatter:
		at, n := s.Recv.Block(r - mine)
		gets(0, n, far, far+others, at)
	}
	return m
}

func (k *interCase) prove(pick Pick) error {
	var b sched.Builder
	graphs := make([]*sched.Graph, len(k.shapes))
	for r := range k.shapes {
		b.Reset(r, len(k.shapes))
		BuildInter(&b, &k.shapes[r], pick)
		g, err := b.Graph()
		if err != nil {
			return fmt.Errorf("rank %d: %w", r, err)
		}
		graphs[r] = g
	}
	return sched.Validate(graphs, k.task())
}

func TestProveBetweenGroups(t *testing.T) {
	rng := rand.New(rand.NewSource(6))
	proved := 0
	for _, kind := range []Kind{Barrier, Bcast, Gather, Scatter, Allgather, Alltoall, Reduce, Allreduce, ReduceScatter} {
		for _, sizes := range [][2]int{{1, 1}, {1, 4}, {3, 1}, {2, 2}, {3, 4}, {5, 2}, {1, 9}, {8, 7}, {9, 16}} {
			roots := []int{0}
			if kind.Rooted() {
				roots = []int{0, sizes[0] - 1, sizes[0], sizes[0] + sizes[1]/2, sizes[0] + sizes[1] - 1}
			}
			for _, root := range roots {
				for variant := range 4 * 6 {
					irregular, commutes, choice := variant&1 != 0, variant&2 != 0, variant/4
					k := newInterCase(kind, sizes, root, irregular, commutes, rng)
					if err := k.prove(pickNth(choice)); err != nil {
						t.Fatalf("%s between %v, root %d, irregular %v, commutes %v, choice %d: %v", kind, sizes, root, irregular, commutes, choice, err)
					}
					proved++
				}
			}
		}
	}
	t.Logf("%d cases proved", proved)
}
