package mpi_test

// The calls of the matrix (coll_matrix_test.go): the list of calls, their buffers, and
// the expected results, computed from MPI's definition of the call. Elements have three
// bytes, so that nothing is aligned by chance. Blocks of the irregular forms have random
// lengths, some of them zero, and are in random order with gaps between them, differently
// on each rank where MPI allows it (MPI-4.1 sections 6.5 to 6.8).

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
)

// odd is an element.
type odd [3]byte

const oddBytes = 3

// fence is the value around buffers and in their gaps.
var fence = odd{0xEE, 0xEE, 0xEE}

// oddFrom returns element i of the data of a rank for another.
func oddFrom(key, from, to, i int) odd {
	x := uint32(key)*0x9E3779B1 ^ uint32(from)*0x85EBCA6B ^ uint32(to)*0xC2B2AE35 + uint32(i)*0x27D4EB2F
	x ^= x >> 15
	x *= 0x2C1B3C6D
	x ^= x >> 13
	return odd{byte(x), byte(x >> 8), byte(x >> 16)}
}

// oddMix is associative and commutes; oddProduct, of upper triangular matrices with
// ones on the diagonal, is associative and does not.
func oddMix(a, b odd) odd { return odd{a[0] + b[0], a[1] ^ b[1], max(a[2], b[2])} }

func oddProduct(a, b odd) odd { return odd{a[0] + b[0], a[1] + b[1], a[2] + b[2] + a[0]*b[1]} }

// matrixCall is one call; it is the same on all ranks.
type matrixCall struct {
	kind               coll.Kind
	count, root        int
	irregular, ordered bool
	inPlaceAt          string // which ranks are in place; of neighbors, whether all get the same block
	seed               uint64
}

func (k matrixCall) String() string {
	return fmt.Sprintf("%d elements, irregular %v, ordered %v, in place %s, root %d", k.count, k.irregular, k.ordered, k.inPlaceAt, k.root)
}

func (k matrixCall) inPlace(rank int) bool {
	switch k.inPlaceAt {
	case "all":
		return true
	case "some":
		return (uint64(rank)+k.seed)%2 == 0
	case "the root":
		return rank == k.root
	}
	return false
}

// matrixCalls returns the calls of a kind among a number of ranks.
func matrixCalls(kind coll.Kind, ranks int) (calls []matrixCall) {
	counts := []int{0, 1, ranks - 1, 37, 2*ranks + 5}
	long := 15013 // a block of several packets, and of a rendezvous
	irregular, ordered, inPlace, roots := []bool{false, true}, []bool{false}, []string{"nobody", "all", "some"}, []int{0}
	switch kind {
	case coll.Barrier:
		counts, irregular, inPlace = []int{0}, []bool{false}, []string{"nobody"}
	case coll.Bcast:
		long, irregular, inPlace = 50021, []bool{false}, []string{"nobody"}
	case coll.Gather, coll.Scatter:
		inPlace = []string{"nobody", "the root"}
	case coll.Reduce:
		long, irregular, ordered, inPlace = 50021, []bool{false}, []bool{false, true}, []string{"nobody", "the root"}
	case coll.Allreduce, coll.Scan, coll.Exscan:
		long, irregular, ordered = 50021, []bool{false}, []bool{false, true}
	case coll.ReduceScatter:
		ordered = []bool{false, true}
	case coll.Neighbors:
		inPlace = []string{"nobody", "shared"}
	}
	if kind.Rooted() {
		roots = nil
		for r := range ranks {
			if ranks <= 9 || r < 2 || r == ranks/2 || r == ranks-1 {
				roots = append(roots, r)
			}
		}
	}
	if kind != coll.Barrier && (ranks == 3 || ranks == 8) {
		counts = append(counts, long)
	}
	for _, count := range counts {
		for _, irregular := range irregular {
			for _, ordered := range ordered {
				for _, who := range inPlace {
					for _, root := range roots {
						if count == long && root != roots[len(roots)-1] {
							continue // of the long ones, one root is enough
						}
						calls = append(calls, matrixCall{kind, count, root, irregular, ordered, who, uint64(len(calls))})
					}
				}
			}
		}
	}
	return calls
}

// matrixRun is a call on one rank.
type matrixRun struct {
	in, out                 []odd // between fences
	allIn, allOut           []odd // with them
	givenIn, givenOut, want []odd // what they hold before, and what allOut must hold after
	anyEnd                  int   // so many of the last elements of out may then hold anything

	blocking func() error
	start    func() mpi.Request
	prepare  func() *mpi.Persistent

	on            *mpi.Comm // if it is one of its own
	entered, left time.Time
	barrier       bool
}

const fences = 4

// buffers allocates in and out, filled with fences.
func buffers(in, out int) *matrixRun {
	r := &matrixRun{allIn: slices.Repeat([]odd{fence}, in+2*fences), allOut: slices.Repeat([]odd{fence}, out+2*fences)}
	r.in, r.out = r.allIn[fences:fences+in:fences+in], r.allOut[fences:fences+out:fences+out]
	return r
}

// given finishes the filling of the buffers and returns out in a copy, to be changed to
// the expected result.
func (r *matrixRun) given() []odd {
	r.givenIn, r.givenOut, r.want = slices.Clone(r.allIn), slices.Clone(r.allOut), slices.Clone(r.allOut)
	return r.want[fences : len(r.want)-fences]
}

func (r *matrixRun) restore() {
	copy(r.allIn, r.givenIn)
	copy(r.allOut, r.givenOut)
}

func (r *matrixRun) check(t *testing.T, c *mpi.Comm, what string) {
	t.Helper()
	if r.barrier {
		r.checkBarrier(t, c, what)
		return
	}
	if i := firstDifference(r.allIn, r.givenIn); i >= 0 {
		t.Fatalf("%s: element %d of in, which has %d, was changed", what, i-fences, len(r.in))
	}
	end := fences + len(r.out) - r.anyEnd
	if i := firstDifference(r.allOut[:end], r.want[:end]); i >= 0 {
		t.Fatalf("%s: element %d of out, which has %d, is %v, want %v", what, i-fences, len(r.out), r.allOut[i], r.want[i])
	}
	if i := firstDifference(r.allOut[end+r.anyEnd:], r.want[end+r.anyEnd:]); i >= 0 {
		t.Fatalf("%s: element %d behind out was written", what, i)
	}
}

func firstDifference(a, b []odd) int {
	if slices.Equal(a, b) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}

// checkBarrier checks that no rank has left before all have entered, by the clock of the
// machine.
func (r *matrixRun) checkBarrier(t *testing.T, c *mpi.Comm, what string) {
	t.Helper()
	last := []int64{r.entered.UnixNano()}
	noError(t, mpi.Allreduce(c, nil, last, mpi.Max), "Allreduce")
	if left := r.left.UnixNano(); left < last[0] {
		t.Fatalf("%s: left %v before the last rank had come", what, time.Duration(last[0]-left))
	}
}

// prepared returns the buffers of a call on one rank, the expected result, and the
// function that makes the call.
func (k matrixCall) prepared(t *testing.T, c *mpi.Comm) *matrixRun {
	switch k.kind {
	case coll.Barrier:
		return &matrixRun{barrier: true,
			blocking: c.Barrier,
			start:    c.Ibarrier,
			prepare:  c.BarrierInit}
	case coll.Bcast:
		return k.bcast(c)
	case coll.Gather:
		return k.gather(c)
	case coll.Scatter:
		return k.scatter(c)
	case coll.Allgather:
		return k.allgather(c)
	case coll.Alltoall:
		return k.alltoall(c)
	case coll.Neighbors:
		return k.neighbors(t, c)
	}
	return k.reduction(c)
}

// blocks are the lengths and displacements of blocks, and the length of their buffer.
type oddBlocks struct {
	lens, at []int
	room     int
}

// draw assigns displacements to blocks: consecutive ones, or, for irregular blocks, in
// random order with gaps.
func (k matrixCall) draw(lens []int, rng *rand.Rand) oddBlocks {
	b := oddBlocks{lens: lens, at: make([]int, len(lens))}
	order := make([]int, len(lens))
	for i := range order {
		order[i] = i
	}
	if k.irregular {
		order = rng.Perm(len(lens))
	}
	for _, i := range order {
		if k.irregular {
			b.room += rng.IntN(2)
		}
		b.at[i] = b.room
		b.room += lens[i]
	}
	return b
}

// of returns a block in a buffer.
func (b *oddBlocks) of(buf []odd, i int) []odd { return buf[b.at[i] : b.at[i]+b.lens[i]] }

// length returns a random length of a block.
func (k matrixCall) length(rng *rand.Rand) int {
	if k.irregular {
		return rng.IntN(k.count + 3)
	}
	return k.count
}

// lengths are those of one block for each of n ranks.
func (k matrixCall) lengths(n int, rng *rand.Rand) []int {
	lens := make([]int, n)
	for i := range lens {
		lens[i] = k.length(rng)
	}
	return lens
}

// common returns a random source that is the same on all ranks, own one that is not.
func (k matrixCall) common() *rand.Rand { return rand.New(rand.NewPCG(k.seed, uint64(k.kind))) }

func (k matrixCall) own(rank int) *rand.Rand {
	return rand.New(rand.NewPCG(k.seed, 1000+uint64(rank)))
}

// load fills a block with the data of one rank for another.
func (k matrixCall) load(block []odd, from, to int) {
	for i := range block {
		block[i] = oddFrom(int(k.seed), from, to, i)
	}
}
