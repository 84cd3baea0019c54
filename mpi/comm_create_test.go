package mpi_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// Only the members of a group call CreateGroup; the other ranks do something else.
func TestCreateGroup(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 3, 5, 7}, func(t *testing.T, c *mpi.Comm) {
		var odd, even []int
		for r := range c.Size() {
			if r%2 == 1 {
				odd = append(odd, r)
			} else {
				even = append([]int{r}, even...) // in reverse
			}
		}
		mine := even
		if c.Rank()%2 == 1 {
			mine = odd
		}
		g, err := c.Group().Include(mine...)
		noError(t, err, "Include")
		d, err := c.CreateGroup(g, 7)
		noError(t, err, "CreateGroup")
		sum := []int{c.Rank()}
		noError(t, mpi.Allreduce(d, nil, sum, mpi.Sum), "Allreduce")
		want := 0
		for i, r := range mine {
			want += r
			if r == c.Rank() && (d.Rank() != i || d.Size() != len(mine)) {
				t.Errorf("rank %d of the world is rank %d of %d, want %d of %d", r, d.Rank(), d.Size(), i, len(mine))
			}
		}
		if sum[0] != want {
			t.Errorf("the sum is %d, want %d", sum[0], want)
		}
		noError(t, d.Free(), "Free")
		if c.Rank() == 0 { // the others make no call at all
			self, err := c.CreateGroup(c.Self().Group(), 0)
			noError(t, err, "CreateGroup of one rank")
			noError(t, self.Barrier(), "Barrier")
		}
	})
}

func TestCreateGroupRefuses(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		other, err := c.Group().Include(1 - c.Rank())
		noError(t, err, "Include")
		e := wantClass(t, second(c.CreateGroup(other, 0)), mpi.ErrGroup, "a group without the caller")
		if !strings.Contains(e.Error(), "all ranks call Create") {
			t.Errorf("the error must name the call for all ranks: %v", e)
		}
		wantClass(t, second(c.CreateGroup(nil, 0)), mpi.ErrGroup, "no group")
		wantClass(t, second(c.CreateGroup(c.Group(), -1)), mpi.ErrTag, "a negative tag")
	})
}

// Two goroutines of each rank make communicators of the same group at the same time. Only
// the tags separate them.
func TestCreateGroupByTag(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		for _, tags := range [][2]int{{0, 1}, {0, 1 << 27}, {1 << 30, 1<<30 + 1<<27}, {mpi.MaxTag - 1, mpi.MaxTag}} {
			for range 20 {
				var made [2]*mpi.Comm
				var errs [2]error
				var both sync.WaitGroup
				for i := range 2 {
					which := (i + c.Rank()) % 2
					both.Go(func() { made[which], errs[which] = c.CreateGroup(c.Group(), tags[which]) })
				}
				both.Wait()
				noError(t, errors.Join(errs[:]...), "CreateGroup")
				for i, d := range made {
					noError(t, mpi.Send(d, []int{tags[i]}, 1-c.Rank(), 0), "Send")
				}
				for i, d := range made {
					got := []int{-1}
					_, err := mpi.Recv(d, got, 1-c.Rank(), 0)
					noError(t, err, "Recv")
					if got[0] != tags[i] {
						t.Fatalf("the communicator made with tag %d receives a message of the one made with tag %d", tags[i], got[0])
					}
					noError(t, d.Free(), "Free")
				}
			}
		}
	})
}

// Ranks complete several duplicates in any order, and make other calls in between.
func TestIdup(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		const n = 4
		var made [n]*mpi.Comm
		var reqs [n]mpi.Request
		for i := range made {
			made[i], reqs[i] = c.Idup()
			barrier(t, c)
		}
		for k := range n {
			i := (k + c.Rank()) % n
			st, err := reqs[i].Wait()
			noError(t, err, "Wait")
			if st.Source != mpi.ProcNull {
				t.Errorf("there is no message to describe: %+v", st)
			}
		}
		next, prev := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
		for i, d := range made { // the same tag on all of them, received in another order
			if d.Compare(c) != mpi.Congruent || d.Rank() != c.Rank() || d.Name() != c.Name()+".dup" {
				t.Errorf("%s has rank %d of %d", d.Name(), d.Rank(), d.Size())
			}
			noError(t, mpi.Send(d, []int{i}, next, 1), "Send")
		}
		for i := n - 1; i >= 0; i-- {
			got := []int{-1}
			_, err := mpi.Recv(made[i], got, prev, 1)
			noError(t, err, "Recv")
			if got[0] != i {
				t.Errorf("duplicate %d received the message of duplicate %d", i, got[0])
			}
			sum := []int{1}
			noError(t, mpi.Allreduce(made[i], nil, sum, mpi.Sum), "Allreduce")
			if sum[0] != c.Size() {
				t.Errorf("the sum is %d", sum[0])
			}
			noError(t, made[i].Free(), "Free")
		}
	})
}

// MPI-4.1 section 2.9: the duplicate must be made while a rank waits for a message that
// depends on it.
func TestIdupProgresses(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		d, r := c.Idup()
		if c.Rank() == 0 {
			noError(t, waitErr(r), "Wait")
			noError(t, mpi.Send(c, []int{1}, 1, 1), "Send")
		} else {
			_, err := mpi.Recv(c, make([]int, 1), 0, 1)
			noError(t, err, "Recv")
			noError(t, waitErr(r), "Wait")
		}
		barrier(t, d)
	})
}

// A wait that gives up leaves the duplicate to be made; it cannot be cancelled.
func TestIdupGivesUp(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		if c.Rank() == 1 { // calls it when rank 0 has given up
			_, err := mpi.Recv(c, make([]int, 1), 0, 1)
			noError(t, err, "Recv")
		}
		d, r := c.Idup()
		if c.Rank() == 0 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err := r.WaitContext(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a wait for a duplicate that cannot be made yet returned %v", err)
			}
			if r.Cancel() {
				t.Error("the duplicate was cancelled")
			}
			noError(t, mpi.Send(c, []int{1}, 1, 1), "Send")
		}
		noError(t, waitErr(r), "Wait")
		barrier(t, d)
		noError(t, d.Free(), "Free")
	})
}

func TestIdupOfIntercomm(t *testing.T) {
	mpitest.Run(t, 3, func(t *testing.T, c *mpi.Comm) {
		half, err := c.Split(c.Rank()%2, 0)
		noError(t, err, "Split")
		inter, err := half.IntercommCreate(0, c, 1-c.Rank()%2, 4)
		noError(t, err, "IntercommCreate")
		d, r := inter.Idup()
		noError(t, waitErr(r), "Wait")
		if d.Compare(inter) != mpi.Congruent || d.RemoteSize() != inter.RemoteSize() {
			t.Errorf("the duplicate has %d remote ranks, want %d", d.RemoteSize(), inter.RemoteSize())
		}
		merged, err := d.Merge(mpi.MergeLow)
		noError(t, err, "Merge")
		if merged.Size() != 3 {
			t.Errorf("the merged duplicate has %d ranks", merged.Size())
		}
	})
}
