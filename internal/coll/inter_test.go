package coll

import (
	"bytes"
	"fmt"
	"math/rand"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// Execution of collectives between two groups, with random bytes and with every
// algorithm of the table for the phases, against MPI's definition.

// interCase is one call: the input and the expected output of each rank.
type interCase struct {
	shapes []Inter
	calls  []call
}

// newInterCase returns a call. Elements have two bytes; the lengths of the two groups
// differ where MPI allows it.
func newInterCase(kind Kind, sizes [2]int, root int, irregular, commutes bool, rng *rand.Rand) *interCase {
	n := sizes[0] + sizes[1]
	k := &interCase{shapes: make([]Inter, n), calls: make([]call, n)}
	group := func(r int) (first, size int) {
		if r < sizes[0] {
			return 0, sizes[0]
		}
		return sizes[0], sizes[1]
	}
	across := func(r int) (first, size int) {
		if r < sizes[0] {
			return sizes[0], sizes[1]
		}
		return 0, sizes[0]
	}
	// each[from][to] is the length of a block.
	each := make([][]int, n)
	for from := range each {
		each[from] = make([]int, n)
		for to := range each[from] {
			each[from][to] = 2 * (3 + 2*min(1, from/sizes[0]))
			if irregular && kind == Alltoall {
				each[from][to] = 2 * ((3*from + to) % 4)
			} else if irregular && kind == Scatter {
				each[from][to] = 2 * (to % 3)
			} else if irregular {
				each[from][to] = 2 * (from % 3)
			}
		}
	}
	total := 2 * sizes[0] * sizes[1] * 3 // divisible among either group
	for r := range n {
		s := &k.shapes[r]
		*s = Inter{Kind: kind, Rank: r, Sizes: sizes, Root: root, Elem: 2, Commutes: commutes, Bytes: total}
		s.Send.Irregular, s.Recv.Irregular = irregular, irregular
		first, _ := group(r)
		if rootFirst, _ := group(root); kind.Rooted() && r != root && first == rootFirst {
			s.Root = -1
		}
		in, out := 0, 0
		far, m := across(r)
		lens := func(length func(i int) int, n int) (b Blocks, sum int) {
			b = Blocks{Irregular: irregular, Each: length(0)}
			if irregular {
				b.Lens, b.Offs, b.Each = make([]int, n), make([]int, n), 0
			}
			for i := range n {
				if irregular {
					b.Lens[i], b.Offs[i] = length(i), sum
				}
				sum += length(i)
			}
			return b, sum
		}
		sends := func(i int) int { return each[r][far+i] }
		gets := func(i int) int { return each[far+i][r] }
		switch kind {
		case Bcast:
			if out = total; s.Root < 0 {
				out = 0
			}
		case Gather:
			if r == root {
				s.Recv, out = lens(gets, m)
			} else if s.Root >= 0 {
				in, s.Send.Each = each[r][root], each[r][root]
			}
		case Scatter:
			if r == root {
				s.Send, in = lens(sends, m)
			} else if s.Root >= 0 {
				out, s.Recv.Each = each[root][r], each[root][r]
			}
		case Allgather:
			in, s.Send.Each = sends(0), sends(0)
			s.Recv, out = lens(gets, m)
		case Alltoall:
			s.Send, in = lens(sends, m)
			s.Recv, out = lens(gets, m)
		case Reduce:
			if r == root {
				out = total
			} else if s.Root >= 0 {
				in = total
			}
		case Allreduce:
			in, out = total, total
		case ReduceScatter:
			_, size := group(r)
			in = total
			s.Recv, _ = lens(func(i int) int {
				if !irregular {
					return total / size
				}
				if i == size-1 {
					return total - (size-1)*2
				}
				return 2
			}, size)
			_, out = s.Recv.Block(r - first)
		}
		k.calls[r] = call{in: random(rng, in), out: random(rng, out)}
	}
	k.define(kind, root, commutes, across)
	return k
}

// define sets the expected output of each rank.
func (k *interCase) define(kind Kind, root int, commutes bool, across func(int) (first, size int)) {
	sum := func(first, n int) []byte {
		acc := bytes.Clone(k.calls[first+n-1].in)
		for r := first + n - 2; r >= first; r-- {
			combine(commutes, acc, k.calls[r].in)
		}
		return acc
	}
	for r := range k.calls {
		s, c := &k.shapes[r], &k.calls[r]
		c.want = bytes.Clone(c.out)
		far, m := across(r)
		switch {
		case kind.Rooted() && (s.Root < 0 || (kind == Bcast || kind == Scatter) == (r == root)):
		case kind == Bcast:
			c.want = bytes.Clone(k.calls[root].out)
		case kind == Reduce:
			c.want = sum(far, m)
		case kind == Scatter:
			mine, _ := across(root)
			off, n := k.shapes[root].Send.Block(r - mine)
			copy(c.want, k.calls[root].in[off:off+n])
		case kind == Gather, kind == Allgather:
			for i := range m {
				off, _ := s.Recv.Block(i)
				copy(c.want[off:], k.calls[far+i].in)
			}
		case kind == Alltoall:
			back, _ := across(far)
			for i := range m {
				from, n := k.shapes[far+i].Send.Block(r - back)
				off, _ := s.Recv.Block(i)
				copy(c.want[off:off+n], k.calls[far+i].in[from:from+n])
			}
		case kind == Allreduce:
			c.want = sum(far, m)
		case kind == ReduceScatter:
			back, _ := across(far)
			off, n := s.Recv.Block(r - back)
			copy(c.want, sum(far, m)[off:off+n])
		}
	}
}

// pickNth returns a Pick that chooses an applicable algorithm and its parameters by the
// seed, the same on all ranks.
func pickNth(seed int) Pick {
	return func(s *Shape) (*Algorithm, []int, error) {
		var fit []*Algorithm
		for _, a := range AlgorithmsOf(s.Kind) {
			if ok, _ := Applicable(a, s); ok {
				fit = append(fit, a)
			}
		}
		if len(fit) == 0 {
			return nil, nil, fmt.Errorf("no algorithm for %s", s.Kind)
		}
		a := fit[seed%len(fit)]
		params := a.Default()
		for i := range params {
			params[i] = a.Params[i].Values[seed/len(fit)%len(a.Params[i].Values)]
		}
		return a, params, nil
	}
}

func (k *interCase) execute(pick Pick, commutes bool, rng *rand.Rand) error {
	w := &network{rank: map[*sched.Run]int{}, eager: rng.Intn(2) == 0, commutes: commutes, queues: map[strand]*queue{}}
	for i := range k.shapes {
		var b sched.Builder
		b.Reset(i, len(k.shapes))
		BuildInter(&b, &k.shapes[i], pick)
		g, err := b.Graph()
		if err != nil {
			return fmt.Errorf("rank %d: %w", i, err)
		}
		r := &sched.Run{Graph: g, Port: w, Mem: [sched.Bufs][]byte{k.calls[i].in, k.calls[i].out, random(rng, g.Tmp)}}
		w.runs = append(w.runs, r)
		w.rank[r] = i
	}
	if err := w.run(rng); err != nil {
		return err
	}
	for i, c := range k.calls {
		if !bytes.Equal(c.out, c.want) {
			return fmt.Errorf("rank %d has\n%v, must have\n%v:\n%v", i, c.out, c.want, w.runs[i].Graph)
		}
	}
	return nil
}

func TestBetweenGroups(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	cases := 0
	for _, kind := range []Kind{Barrier, Bcast, Gather, Scatter, Allgather, Alltoall, Reduce, Allreduce, ReduceScatter} {
		for _, sizes := range [][2]int{{1, 1}, {1, 2}, {2, 1}, {2, 3}, {4, 1}, {3, 5}, {5, 3}} {
			roots := 1
			if kind.Rooted() {
				roots = sizes[0] + sizes[1]
			}
			for root := range roots {
				for _, irregular := range []bool{false, true} {
					for _, commutes := range []bool{false, true} {
						for seed := range 6 {
							k := newInterCase(kind, sizes, root, irregular, commutes, rng)
							if err := k.execute(pickNth(seed), commutes, rng); err != nil {
								t.Fatalf("%s between %v, root %d, irregular %v, commutes %v, choice %d: %v", kind, sizes, root, irregular, commutes, seed, err)
							}
							cases++
						}
					}
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}
