package mpi_test

// Communicators (MPI-4.1 section 7.4).

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/muster-mpi/muster/internal/seeded"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// Messages and collectives of a duplicate do not match those of the original, even with
// the same ranks and tags and wildcards.
func TestDupKeepsMessagesApart(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		d, err := c.Dup()
		noError(t, err, "Dup")
		if d.Rank() != c.Rank() || d.Size() != c.Size() {
			t.Fatalf("the duplicate has rank %d of %d, want %d of %d", d.Rank(), d.Size(), c.Rank(), c.Size())
		}
		if got := c.Compare(d); got != mpi.Congruent {
			t.Errorf("Compare with the duplicate gives %v, want Congruent", got)
		}
		if got := d.Compare(d); got != mpi.Identical {
			t.Errorf("Compare with itself gives %v, want Identical", got)
		}
		next, prev := neighbors(c)
		s1 := mpi.Isend(c, []int{1}, next, 7)
		s2 := mpi.Isend(d, []int{2}, next, 7)
		barrier(t, d)
		in := []int{0}
		_, err = mpi.Recv(d, in, mpi.AnySource, mpi.AnyTag)
		noError(t, err, "Recv on the duplicate")
		if in[0] != 2 {
			t.Errorf("the duplicate received message %d of the original", in[0])
		}
		if _, ok, _ := d.Iprobe(mpi.AnySource, mpi.AnyTag); ok {
			t.Error("the duplicate sees a second message")
		}
		_, err = mpi.Recv(c, in, prev, 7)
		noError(t, err, "Recv on the original")
		if in[0] != 1 {
			t.Errorf("the original received message %d", in[0])
		}
		noError(t, mpi.WaitAll(s1, s2), "sends")
		noError(t, d.Free(), "Free")
	})
}

// Split: colours, keys with ties, Undefined; against the rule computed here.
func TestSplit(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 3, 4, 5, 9}, func(t *testing.T, c *mpi.Comm) {
		for _, k := range []struct {
			name   string
			colour func(r int) int
			key    func(r int) int
		}{
			{"all in order", func(int) int { return 0 }, func(int) int { return 0 }},
			{"reversed", func(int) int { return 7 }, func(r int) int { return -r }},
			{"even and odd", func(r int) int { return r % 2 }, func(r int) int { return r }},
			{"ties", func(r int) int { return 1 << 30 }, func(r int) int { return r % 2 }},
			{"some stay out", func(r int) int { return []int{3, mpi.Undefined}[r%2] }, func(r int) int { return -r / 2 }},
			{"all stay out", func(int) int { return mpi.Undefined }, func(int) int { return 0 }},
			{"each alone", func(r int) int { return r }, func(int) int { return 5 }},
			{"extreme keys", func(int) int { return 0 }, func(r int) int { return []int{1 << 62, -1 << 62, 0}[r%3] }},
		} {
			var want []int // ranks of c in the caller's part, in order
			mine := k.colour(c.Rank())
			for r := range c.Size() {
				if k.colour(r) != mine {
					continue
				}
				at := len(want)
				for at > 0 && k.key(want[at-1]) > k.key(r) {
					at--
				}
				want = append(want[:at], append([]int{r}, want[at:]...)...)
			}
			s, err := c.Split(mine, k.key(c.Rank()))
			noError(t, err, "Split: "+k.name)
			if mine == mpi.Undefined {
				if s != nil {
					t.Fatalf("%s: a rank with colour Undefined got a communicator", k.name)
				}
				continue
			}
			if s.Size() != len(want) || want[s.Rank()] != c.Rank() {
				t.Fatalf("%s: rank %d is %d of %d, want the order %v", k.name, c.Rank(), s.Rank(), s.Size(), want)
			}
			all := make([]int, s.Size())
			noError(t, mpi.Allgather(s, []int{c.Rank()}, all), "Allgather on the part: "+k.name)
			if fmt.Sprint(all) != fmt.Sprint(want) {
				t.Fatalf("%s: the part has the ranks %v, want %v", k.name, all, want)
			}
			next, prev := neighbors(s)
			in := []int{-1}
			st, err := mpi.Sendrecv(s, []int{c.Rank()}, next, 1, in, mpi.AnySource, 1)
			noError(t, err, "Sendrecv on the part: "+k.name)
			if st.Source != prev || in[0] != want[prev] {
				t.Fatalf("%s: from %d came %d, want %d from %d", k.name, st.Source, in[0], want[prev], prev)
			}
			noError(t, s.Free(), "Free")
		}
		_, err := c.Split(-5, 0)
		wantClass(t, err, mpi.ErrArg, "Split with a negative colour")
	})
}

// Parts of parts of parts: ranks, messages and errors use the numbers of the
// part.
func TestNestedSplits(t *testing.T) {
	mpitest.Sizes(t, []int{4, 5, 8}, func(t *testing.T, c *mpi.Comm) {
		comms := []*mpi.Comm{c}
		for c.Size() > 1 {
			s, err := c.Split(c.Rank()*2/c.Size(), -c.Rank())
			noError(t, err, "Split")
			comms = append(comms, s)
			c = s
		}
		for i := len(comms) - 1; i >= 0; i-- {
			c := comms[i]
			sum := []int{c.Rank()}
			noError(t, mpi.Allreduce(c, sum, sum, mpi.Sum), "Allreduce")
			if want := c.Size() * (c.Size() - 1) / 2; sum[0] != want {
				t.Errorf("sum of ranks at depth %d is %d, want %d", i, sum[0], want)
			}
			err := mpi.Send(c, []int{1}, c.Size(), 1)
			e := wantClass(t, err, mpi.ErrRank, "Send beyond the part")
			if e.Comm != c.Name() || !strings.Contains(err.Error(), c.Name()) {
				t.Errorf("error %q does not name %s", err, c.Name())
			}
		}
	})
}

func TestSplitType(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		n, err := c.SplitType(mpi.ByNode, -c.Rank())
		noError(t, err, "SplitType")
		if !mpitest.Launched() && n.Size() != c.Size() {
			t.Errorf("all ranks share this process, but rank %d is one of %d on its node", c.Rank(), n.Size())
		}
		ranks := make([]int, n.Size())
		noError(t, mpi.Allgather(n, []int{c.Rank()}, ranks), "Allgather")
		for i := range ranks {
			if i > 0 && ranks[i] >= ranks[i-1] || ranks[n.Rank()] != c.Rank() {
				t.Errorf("the ranks of the node, asked for from the highest to the lowest, are %v", ranks)
			}
		}
		if got := c.Compare(n); n.Size() == c.Size() && c.Size() > 1 && got != mpi.Similar {
			t.Errorf("Compare with the reversed communicator gives %v, want Similar", got)
		}
		n, err = c.SplitType(mpi.Undefined, 0)
		if n != nil || err != nil {
			t.Errorf("SplitType with Undefined gives %v, %v", n, err)
		}
		_, err = c.SplitType(77, 0)
		wantClass(t, err, mpi.ErrArg, "SplitType with an unknown kind")
	})
}

func TestCreate(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		var ranks []int
		for r := c.Size() - 1; r >= 0; r -= 2 {
			ranks = append(ranks, r)
		}
		g, err := c.Group().Include(ranks...)
		noError(t, err, "Include")
		s, err := c.Create(g)
		noError(t, err, "Create")
		if g.Rank() == mpi.Undefined {
			if s != nil {
				t.Fatal("a rank outside of the group got a communicator")
			}
		} else {
			all := make([]int, s.Size())
			noError(t, mpi.Allgather(s, []int{c.Rank()}, all), "Allgather")
			if fmt.Sprint(all) != fmt.Sprint(ranks) {
				t.Errorf("the communicator has the ranks %v, want %v", all, ranks)
			}
			if c.Size() > len(ranks) {
				_, err = s.Create(c.Group())
				wantClass(t, err, mpi.ErrGroup, "Create with ranks that are not there")
			}
		}
		empty, err := c.Group().Include()
		noError(t, err, "Include of nobody")
		if s, err := c.Create(empty); s != nil || err != nil {
			t.Errorf("Create of an empty group gives %v, %v", s, err)
		}
		_, err = c.Create(nil)
		wantClass(t, err, mpi.ErrGroup, "Create with nil")
	})
}

// Two goroutines of each rank duplicate two communicators repeatedly at the same time: all
// get different contexts.
func TestConcurrentDup(t *testing.T) {
	mpitest.Sizes(t, []int{2, 3, 4}, func(t *testing.T, c *mpi.Comm) {
		a, err := c.Dup()
		noError(t, err, "Dup")
		b, err := c.Dup()
		noError(t, err, "Dup")
		var wg sync.WaitGroup
		made := make([][]*mpi.Comm, 2)
		for i, parent := range []*mpi.Comm{a, b} {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range 15 {
					d, err := parent.Dup()
					if err != nil {
						t.Errorf("Dup: %v", err)
						return
					}
					made[i] = append(made[i], d)
				}
			}()
		}
		wg.Wait()
		var all []*mpi.Comm
		all = append(append(all, made[0]...), made[1]...)
		if len(all) != 30 {
			t.Fatalf("only %d communicators were made", len(all))
		}
		next, prev := neighbors(c)
		var sends []mpi.Request
		for i, d := range all {
			sends = append(sends, mpi.Isend(d, []int{i}, next, 1))
		}
		for _, i := range seeded.Random(t).Perm(len(all)) {
			in := []int{-1}
			_, err := mpi.Recv(all[i], in, prev, 1)
			noError(t, err, "Recv")
			if in[0] != i {
				t.Fatalf("communicator %d received the message of %d: their contexts are the same", i, in[0])
			}
		}
		noError(t, mpi.WaitAll(sends...), "sends")
	})
}

// Every call rejects a freed communicator.
func TestFreedCommunicator(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2}, func(t *testing.T, c *mpi.Comm) {
		d, err := c.Dup()
		noError(t, err, "Dup")
		noError(t, d.Free(), "Free")
		buf := []int{1}
		g := c.Group()
		for what, err := range map[string]error{
			"Send":      mpi.Send(d, buf, 0, 1),
			"Isend":     waitErr(mpi.Isend(d, buf, 0, 1)),
			"Bsend":     mpi.Bsend(d, buf, 0, 1),
			"Recv":      second(mpi.Recv(d, buf, 0, 1)),
			"Irecv":     waitErr(mpi.Irecv(d, buf, mpi.AnySource, 1)),
			"Probe":     second(d.Probe(0, 1)),
			"Barrier":   d.Barrier(),
			"Bcast":     mpi.Bcast(d, buf, 0),
			"Reduce":    mpi.Reduce(d, buf, buf, mpi.Sum, 0),
			"Allreduce": mpi.Allreduce(d, buf, buf, mpi.Sum),
			"Gather":    mpi.Gather(d, buf, buf, 0),
			"Allgather": mpi.Allgather(d, buf, buf),
			"Scatter":   mpi.Scatter(d, buf, buf, 0),
			"Alltoall":  mpi.Alltoall(d, buf, buf),
			"Dup":       second(d.Dup()),
			"Split":     second(d.Split(0, 0)),
			"SplitType": second(d.SplitType(mpi.ByNode, 0)),
			"Create":    second(d.Create(g)),
			"Free":      d.Free(),
		} {
			wantClass(t, err, mpi.ErrComm, what+" on a freed communicator")
		}
		wantClass(t, c.World().Comm().Free(), mpi.ErrComm, "Free of the world")
	})
}

func TestNames(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		if c.Name() != "world" {
			t.Errorf("the world is called %q", c.Name())
		}
		d, err := c.Dup()
		noError(t, err, "Dup")
		d.SetName("ghosts")
		err = mpi.Send(d, []int{1}, 9, 1)
		if d.Name() != "ghosts" || c.Name() != "world" || !strings.Contains(err.Error(), "ghosts") {
			t.Errorf("names %q and %q; error %q", d.Name(), c.Name(), err)
		}
	})
}
