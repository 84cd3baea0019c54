package nodecoll

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
)

// sizes of data in bytes: around a cell, a piece, a slot, and several slots.
var sizes = []int{0, 1, 8, cellBytes - 1, cellBytes, cellBytes + 1, 1000, flowBytes, flowBytes + 1,
	slotBytes - 1, slotBytes, slotBytes + 1, 3*slotBytes + 17, mostBytes, mostBytes + 1, 5*mostBytes + 5}

// filled returns n bytes that depend on a seed and on their offset.
func filled(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed*31 + 1)
	}
	return b
}

// pause delays a rank now and then.
func pause(rng *rand.Rand) {
	if rng.IntN(40) == 0 {
		time.Sleep(time.Duration(rng.IntN(300)) * time.Microsecond) // jitter
	}
}

// check verifies the calls of one rank.
type check struct {
	testing.TB
	team *Team
	rng  *rand.Rand
}

func newCheck(t testing.TB, team *Team) *check {
	return &check{t, team, rand.New(rand.NewPCG(uint64(team.Rank()), 7))}
}

func (c *check) ok(err error, format string, args ...any) {
	if err != nil {
		c.Errorf("rank %d: %s: %v", c.team.Rank(), fmt.Sprintf(format, args...), err)
	}
	pause(c.rng)
}

func (c *check) equal(got, want []byte, format string, args ...any) {
	if !bytes.Equal(got, want) {
		i := 0
		for i < len(got) && i < len(want) && got[i] == want[i] {
			i++
		}
		c.Errorf("rank %d of %d: %s: byte %d of %d is wrong", c.team.Rank(), c.team.Size(), fmt.Sprintf(format, args...), i, len(want))
	}
}

func everyTeam(t *testing.T, fn func(c *check)) {
	for size := 1; size <= 9; size++ {
		for _, oversubscribed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d ranks, oversubscribed %v", size, oversubscribed), func(t *testing.T) {
				g := newRig(size)
				if oversubscribed {
					g.yields = 3 // let ranks sleep
				}
				g.run(t, oversubscribed, func(t testing.TB, team *Team) { fn(newCheck(t, team)) })
			})
		}
	}
}

func lengths(size int) []int {
	if testing.Short() || race.Enabled && size > 4 {
		return []int{0, 8, cellBytes, cellBytes + 1, slotBytes + 1}
	}
	return sizes
}

func TestMoves(t *testing.T) {
	everyTeam(t, func(c *check) {
		t, me, size := c.team, c.team.Rank(), c.team.Size()
		for _, n := range lengths(size) {
			var all []byte
			for r := range size {
				all = append(all, filled(n, r)...)
			}
			for root := range size {
				data := make([]byte, n)
				if me == root {
					copy(data, filled(n, root))
				}
				c.ok(t.Bcast("Bcast", data, root), "Bcast of %d from %d", n, root)
				c.equal(data, filled(n, root), "Bcast of %d from %d", n, root)

				out := make([]byte, n*size)
				c.ok(t.Gather("Gather", filled(n, me), out, n, root), "Gather of %d", n)
				if me == root {
					c.equal(out, all, "Gather of %d to %d", n, root)
				}
				in := filled(n, me)
				if me == root { // in place
					clear(out)
					copy(out[me*n:], in)
					in = nil
				}
				c.ok(t.Gather("Gather", in, out, n, root), "Gather in place of %d", n)
				if me == root {
					c.equal(out, all, "Gather in place of %d to %d", n, root)
				}
				part := make([]byte, n)
				c.ok(t.Scatter("Scatter", all, part, n, root), "Scatter of %d", n)
				c.equal(part, filled(n, me), "Scatter of %d from %d", n, root)
			}
			c.ok(t.Barrier("Barrier"), "Barrier")
			out := make([]byte, n*size)
			c.ok(t.Allgather("Allgather", filled(n, me), out, n), "Allgather of %d", n)
			c.equal(out, all, "Allgather of %d", n)
			clear(out)
			copy(out[me*n:], filled(n, me))
			c.ok(t.Allgather("Allgather", nil, out, n), "Allgather in place of %d", n)
			c.equal(out, all, "Allgather in place of %d", n)

			var in, want []byte
			for r := range size {
				in = append(in, filled(n, 100*me+r)...)
				want = append(want, filled(n, 100*r+me)...)
			}
			clear(out)
			c.ok(t.Alltoall("Alltoall", in, out, n), "Alltoall of %d", n)
			c.equal(out, want, "Alltoall of %d", n)
			c.ok(t.Alltoall("Alltoall", nil, in, n), "Alltoall in place of %d", n)
			c.equal(in, want, "Alltoall in place of %d", n)
		}
	})
}

// affine is x → a·x + b modulo a prime: composing does not commute.
type affine struct{ A, B uint32 }

const prime = 65521

func compose(f, g affine) affine { return affine{f.A * g.A % prime, (f.A*g.B + f.B) % prime} }

func combineAffine(inout, in []affine) {
	for i := range inout {
		inout[i] = compose(in[i], inout[i])
	}
}

func contribution(rank, n int) []affine {
	s := make([]affine, n)
	for i := range s {
		s[i] = affine{uint32(rank*3+i%50+2) % prime, uint32(rank*1000+i) % prime}
	}
	return s
}

// composed is the result over ranks lo to hi-1.
func composed(lo, hi, n int) []affine {
	if lo == hi {
		return make([]affine, n)
	}
	acc := contribution(lo, n)
	for r := lo + 1; r < hi; r++ {
		next := contribution(r, n)
		for i := range acc {
			acc[i] = compose(acc[i], next[i])
		}
	}
	return acc
}

func TestReductions(t *testing.T) {
	everyTeam(t, func(c *check) {
		t, me, size := c.team, c.team.Rank(), c.team.Size()
		equal := func(got, want []affine, what string) {
			if !slices.Equal(got, want) {
				c.Errorf("rank %d of %d: %s of %d is wrong", me, size, what, len(want))
			}
		}
		for _, n := range lengths(size) {
			n /= sizeOf[affine]()
			want := composed(0, size, n)
			for root := range size {
				in, out := contribution(me, n), make([]affine, n)
				c.ok(Reduce(t, "Reduce", in, out, combineAffine, 1, false, root), "Reduce of %d", n)
				if me == root {
					equal(out, want, "Reduce")
				}
				equal(in, contribution(me, n), "the operand of Reduce, which must not change,")
				c.ok(Reduce(t, "Reduce", in, in, combineAffine, 1, false, root), "Reduce in place of %d", n)
				if me == root {
					equal(in, want, "Reduce in place")
				}
			}
			in, out := contribution(me, n), make([]affine, n)
			c.ok(Allreduce(t, "Allreduce", in, out, combineAffine, 1, false), "Allreduce of %d", n)
			equal(out, want, "Allreduce")
			c.ok(Scan(t, "Scan", in, out, combineAffine, 1), "Scan of %d", n)
			equal(out, composed(0, me+1, n), "Scan")
			clear(out)
			c.ok(Exscan(t, "Exscan", in, out, combineAffine, 1), "Exscan of %d", n)
			equal(out, composed(0, me, n), "Exscan")
			equal(in, contribution(me, n), "the operand, which must not change,")
			c.ok(Allreduce(t, "Allreduce", in, in, combineAffine, 1, false), "Allreduce in place of %d", n)
			equal(in, want, "Allreduce in place")

			k := n / size
			in = contribution(me, k*size)
			c.ok(ReduceScatter(t, "ReduceScatter", in, out[:k], combineAffine, 1), "ReduceScatter of %d", k)
			equal(out[:k], composed(0, size, k*size)[me*k:(me+1)*k], "ReduceScatter")
			c.ok(ReduceScatter(t, "ReduceScatter", in, in[:k], combineAffine, 1), "ReduceScatter in place of %d", k)
			equal(in[:k], out[:k], "ReduceScatter in place")
		}
	})
}

// Elements whose size does not divide that of a cell or slot are not split.
func TestOddElements(t *testing.T) {
	type odd [3]uint16
	sum := func(inout, in []odd) {
		for i := range inout {
			for j := range inout[i] {
				inout[i][j] += in[i][j]
			}
		}
	}
	newRig(3).run(t, false, func(t testing.TB, team *Team) {
		c := newCheck(t, team)
		for _, n := range []int{1, 9, 10, mostBytes/6 - 1, slotBytes / 6, mostBytes/6 + 1, slotBytes} {
			v := make([]odd, n)
			for i := range v {
				v[i] = odd{1, uint16(i), uint16(team.Rank())}
			}
			c.ok(Allreduce(team, "Allreduce", v, v, sum, 1, true), "Allreduce of %d", n)
			for i, got := range v {
				if want := (odd{3, uint16(3 * i), 3}); got != want {
					c.Fatalf("element %d of %d is %v, want %v", i, n, got, want)
				}
			}
		}
	})
}

// With one slow rank, the others sleep, and no rank is ahead by more than the slots allow.
func TestSlowRank(t *testing.T) {
	g := newRig(4)
	g.run(t, false, func(t testing.TB, team *Team) {
		c := newCheck(t, team)
		data := make([]byte, 20*mostBytes)
		for i := range 3 {
			for team.Rank() == i && team.seg.head.sleepers.Load() == 0 {
				runtime.Gosched() // until another rank sleeps
			}
			copy(data, filled(len(data), i))
			if team.Rank() != 0 {
				clear(data)
			}
			c.ok(team.Bcast("Bcast", data, 0), "Bcast")
			c.equal(data, filled(len(data), i), "Bcast with a slow rank %d", i)
		}
	})
	if g.sleeps.Load() == 0 {
		t.Error("no rank slept while another was late")
	}
}

// Commutative operations use shorter paths to the same result.
func TestCommuting(t *testing.T) {
	everyTeam(t, func(c *check) {
		for _, n := range []int{1, 7, 8, 600, 5000} {
			in, want := make([]int64, n), make([]int64, n)
			for i := range in {
				in[i] = int64(i + c.team.Rank())
				want[i] = int64(c.team.Size()*i + c.team.Size()*(c.team.Size()-1)/2)
			}
			for root := range c.team.Size() {
				out := slices.Clone(in)
				c.ok(Reduce(c.team, "Reduce", out, out, sum, 1, true, root), "Reduce in place")
				if root == c.team.Rank() && !slices.Equal(out, want) {
					c.Errorf("Reduce in place of %d is wrong", n)
				}
				clear(out)
				c.ok(Reduce(c.team, "Reduce", in, out, sum, 1, true, root), "Reduce")
				if root == c.team.Rank() && !slices.Equal(out, want) {
					c.Errorf("Reduce of %d is wrong", n)
				}
			}
			out := make([]int64, n)
			c.ok(Allreduce(c.team, "Allreduce", in, out, sum, 1, true), "Allreduce")
			if !slices.Equal(out, want) {
				c.Errorf("Allreduce of %d is wrong", n)
			}
			c.ok(Allreduce(c.team, "Allreduce", in, in, sum, 1, true), "Allreduce in place")
			if !slices.Equal(in, want) {
				c.Errorf("Allreduce in place of %d is wrong", n)
			}
		}
	})
}
