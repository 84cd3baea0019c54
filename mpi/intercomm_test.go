package mpi_test

// Intercommunicators: two groups of the world, odd and even ranks or halves, with leaders
// that are not always rank 0.

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// pairOfGroups is the division of the world, and the leaders.
type pairOfGroups struct {
	what   string
	second func(r, n int) bool
	lead   func(size int) int
}

var groupPairs = []pairOfGroups{
	{"halves", func(r, n int) bool { return r >= (n+1)/2 }, func(int) int { return 0 }},
	{"halves, the higher first", func(r, n int) bool { return r < n/2 }, func(size int) int { return size - 1 }},
	{"even and odd", func(r, n int) bool { return r%2 == 1 }, func(size int) int { return size / 2 }},
	{"one and the rest", func(r, n int) bool { return r > 0 }, func(int) int { return 0 }},
}

// joined creates the two groups and the intercommunicator. mine and theirs are the world
// ranks of the caller's group and of the other one.
func (p pairOfGroups) join(t *testing.T, c *mpi.Comm) (inter, local *mpi.Comm, mine, theirs []int) {
	t.Helper()
	n := c.Size()
	in := p.second(c.Rank(), n)
	for r := range n {
		if p.second(r, n) == in {
			mine = append(mine, r)
		} else {
			theirs = append(theirs, r)
		}
	}
	colour := 0
	if in {
		colour = 1
	}
	local, err := c.Split(colour, c.Rank())
	noError(t, err, "Split")
	var bridge *mpi.Comm
	remote := -99 // used by the leader only
	if local.Rank() == p.lead(len(mine)) {
		bridge, remote = c, theirs[p.lead(len(theirs))]
	}
	inter, err = local.IntercommCreate(p.lead(len(mine)), bridge, remote, 17)
	noError(t, err, "IntercommCreate: "+p.what)
	return inter, local, mine, theirs
}

func TestIntercomm(t *testing.T) {
	mpitest.Sizes(t, []int{2, 3, 4, 5, 6}, func(t *testing.T, c *mpi.Comm) {
		for _, p := range groupPairs {
			inter, local, mine, theirs := p.join(t, c)
			checkInter(t, p.what, inter, c, mine, theirs)
			d, err := inter.Dup()
			noError(t, err, "Dup")
			checkInter(t, p.what+", duplicate", d, c, mine, theirs)
			if inter.Compare(inter) != mpi.Identical || inter.Compare(d) != mpi.Congruent || inter.Compare(local) != mpi.Unequal {
				t.Errorf("%s: Compare with itself %d, the duplicate %d, the local group %d", p.what, inter.Compare(inter), inter.Compare(d), inter.Compare(local))
			}
			noError(t, d.Free(), "Free")
			wantClass(t, d.Barrier(), mpi.ErrComm, "Barrier on a freed inter-communicator")
			wantClass(t, mpi.Send(d, []int{1}, 0, 1), mpi.ErrComm, "Send on a freed inter-communicator")
			checkMerge(t, p.what, inter, c, mine, theirs)
		}
	})
}

// checkInter checks ranks and sizes and sends messages between all pairs.
func checkInter(t *testing.T, what string, inter, c *mpi.Comm, mine, theirs []int) {
	t.Helper()
	me := slices.Index(mine, c.Rank())
	if !inter.IsInter() || c.IsInter() || inter.Rank() != me || inter.Size() != len(mine) || inter.RemoteSize() != len(theirs) || c.RemoteSize() != 0 {
		t.Fatalf("%s: rank %d of %d, %d remote; want %d of %d, %d", what, inter.Rank(), inter.Size(), inter.RemoteSize(), me, len(mine), len(theirs))
	}
	wantMembers(t, what+": the local group", inter.Group(), c.Group(), c.Rank(), mine)
	if got := members(t, inter.RemoteGroup(), c.Group()); !slices.Equal(got, theirs) || inter.RemoteGroup().Rank() != mpi.Undefined {
		t.Fatalf("%s: the remote group is %v, want %v", what, got, theirs)
	}
	var reqs []mpi.Request
	in := make([]int, len(theirs))
	for r := range theirs {
		reqs = append(reqs, mpi.Irecv(inter, in[r:r+1], r, 3), mpi.Isend(inter, []int{100*c.Rank() + r}, r, 3))
	}
	noError(t, mpi.WaitAll(reqs...), "messages between the groups")
	for r, w := range theirs {
		if in[r] != 100*w+me {
			t.Fatalf("%s: from remote rank %d, %d of the world, came %d", what, r, w, in[r])
		}
	}
	send := mpi.Isend(inter, []int{7}, (me+1)%len(theirs), 4)
	want := 0
	for w := range theirs {
		if (w+1)%len(mine) == me {
			want++
		}
	}
	for range want {
		st, err := mpi.Recv(inter, in[:1], mpi.AnySource, 4)
		noError(t, err, "Recv from anybody")
		if in[0] != 7 || (st.Source+1)%len(mine) != me {
			t.Fatalf("%s: %d came from %d", what, in[0], st.Source)
		}
	}
	_, err := send.Wait()
	noError(t, err, "Isend")
	wantClass(t, mpi.Send(inter, in[:1], len(theirs), 1), mpi.ErrRank, "Send beyond the other group")
}

func checkMerge(t *testing.T, what string, inter, c *mpi.Comm, mine, theirs []int) {
	t.Helper()
	for _, k := range []struct {
		what          string
		lower, higher mpi.MergeOrder // what the group with the lowest rank passes, and the other
	}{
		{"low first", mpi.MergeLow, mpi.MergeHigh}, {"high first", mpi.MergeHigh, mpi.MergeLow},
		{"both low", mpi.MergeLow, mpi.MergeLow}, {"both high", mpi.MergeHigh, mpi.MergeHigh},
	} {
		lowest := slices.Min(mine) < slices.Min(theirs)
		order, first := k.higher, slices.Concat(theirs, mine)
		if lowest {
			order, first = k.lower, slices.Concat(mine, theirs)
		}
		m, err := inter.Merge(order)
		noError(t, err, "Merge")
		if k.lower > k.higher { // the group with the lowest rank goes last
			if first = slices.Concat(mine, theirs); lowest {
				first = slices.Concat(theirs, mine)
			}
		}
		wantMembers(t, what+": merged, "+k.what, m.Group(), c.Group(), c.Rank(), first)
		all := make([]int, m.Size())
		noError(t, mpi.Allgather(m, []int{c.Rank()}, all), "Allgather on the merged communicator")
		if !slices.Equal(all, first) {
			t.Fatalf("%s, %s: Allgather gives %v, want %v", what, k.what, all, first)
		}
	}
	_, err := c.Merge(mpi.MergeHigh)
	wantClass(t, err, mpi.ErrComm, "Merge of a communicator with one group")
}

func TestIntercommSplit(t *testing.T) {
	mpitest.Sizes(t, []int{4, 6}, func(t *testing.T, c *mpi.Comm) {
		inter, _, mine, theirs := groupPairs[0].join(t, c)
		// By the parity of the rank in the world, from the highest to the lowest.
		parity := func(list []int) (out []int) {
			for _, r := range list {
				if r%2 == c.Rank()%2 {
					out = append([]int{r}, out...)
				}
			}
			return out
		}
		s, err := inter.Split(c.Rank()%2, -c.Rank())
		noError(t, err, "Split")
		if len(parity(theirs)) == 0 {
			if s != nil {
				t.Fatal("a colour that the other group does not give made a communicator")
			}
		} else {
			checkInter(t, "split", s, c, parity(mine), parity(theirs))
			sum := []int{c.Rank()}
			noError(t, mpi.Allreduce(s, sum, sum, mpi.Sum), "Allreduce on the part")
			want := 0
			for _, r := range parity(theirs) {
				want += r
			}
			if sum[0] != want {
				t.Errorf("the other part sums up to %d, want %d", sum[0], want)
			}
		}
		s, err = inter.Split(mpi.Undefined, 0)
		if s != nil || err != nil {
			t.Errorf("Split with Undefined gives %v, %v", s, err)
		}
		// Colors without members in the other group.
		s, err = inter.Split(c.Rank(), 0)
		if s != nil || err != nil {
			t.Errorf("Split with a colour for each gives %v, %v", s, err)
		}
		// The first and last of each group.
		g, err := inter.Group().Include(inter.Size()-1, 0)
		noError(t, err, "Include")
		s, err = inter.Create(g)
		noError(t, err, "Create")
		if (s != nil) != (g.Rank() >= 0) {
			t.Fatalf("Create: member %d got %v", g.Rank(), s)
		}
		if s != nil {
			checkInter(t, "created", s, c, []int{mine[len(mine)-1], mine[0]}, []int{theirs[len(theirs)-1], theirs[0]})
		}
	})
}

func TestIntercommRefuses(t *testing.T) {
	mpitest.Sizes(t, []int{3}, func(t *testing.T, c *mpi.Comm) {
		inter, local, _, _ := groupPairs[0].join(t, c)
		_, err := local.IntercommCreate(local.Size(), c, 0, 1)
		wantClass(t, err, mpi.ErrRoot, "a leader that is not there")
		_, err = local.IntercommCreate(0, nil, 0, 1)
		class := mpi.ErrOther
		if local.Rank() == 0 {
			class = mpi.ErrComm
		}
		e := wantClass(t, err, class, "no bridge at the leader")
		if !strings.Contains(e.Error(), "leader") {
			t.Errorf("error %q does not speak of the leader", e)
		}
		// Groups that overlap: both are the whole world.
		_, err = c.IntercommCreate(0, c, 0, 9)
		wantClass(t, err, mpi.ErrComm, "a group with itself")
		_, err = inter.IntercommCreate(0, c, 0, 9)
		wantClass(t, err, mpi.ErrComm, "an inter-communicator as a group")
		one := []int{1}
		for what, err := range map[string]error{
			"Scan":                    mpi.Scan(inter, one, one, mpi.Sum),
			"Exscan":                  mpi.Exscan(inter, one, one, mpi.Sum),
			"BcastValue":              second(mpi.BcastValue(inter, 1, 0)),
			"CartCreate":              second(inter.CartCreate([]int{1}, nil, nil)),
			"GraphCreate":             second(inter.GraphCreate(nil, nil)),
			"DistGraphCreate":         second(inter.DistGraphCreate(nil, nil)),
			"DistGraphCreateAdjacent": second(inter.DistGraphCreateAdjacent(nil, nil, nil)),
		} {
			wantClass(t, err, mpi.ErrComm, what+" on an inter-communicator")
		}
		wantClass(t, mpi.Bcast(inter, one, inter.RemoteSize()), mpi.ErrRoot, "Bcast from a root that is not there")
		wantClass(t, mpi.Bcast(inter, one, mpi.AnySource), mpi.ErrRoot, "Bcast from AnySource")
		wantClass(t, mpi.Bcast(c, one, mpi.Root), mpi.ErrRoot, "Bcast with Root on one group")
		wantClass(t, mpi.Allreduce(inter, one, nil, mpi.Sum), mpi.ErrCount, "Allreduce without out")
		barrier(t, c)
	})
}
