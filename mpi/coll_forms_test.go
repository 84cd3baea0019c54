package mpi_test

// Collectives in all their forms: blocking, nonblocking, persistent; several under way
// together, among other messages, and by several goroutines.

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

var formCounts = []int{1, 5, 3000}

func TestCollectiveForms(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		for _, n := range formCounts {
			for _, k := range collCases(c, n, 1, c.Size()-1) {
				what := fmt.Sprintf("%s of %d on rank %d of %d", k.name, n, c.Rank(), c.Size())
				for range 2 {
					k.before()
					noError(t, k.blocking(), what)
					k.check(t, what)
				}
				k.before()
				r := k.start()
				if !r.Active() {
					t.Fatalf("%s: the request stands for nothing", what)
				}
				st, err := r.Wait()
				noError(t, err, what+", started")
				if st.Bytes != 0 || st.Cancelled {
					t.Errorf("%s, started: status %v", what, st)
				}
				k.check(t, what+", started")
				p := k.prepare()
				for range 3 {
					k.before()
					_, err := p.Start().Wait()
					noError(t, err, what+", persistent")
					k.check(t, what+", persistent")
				}
			}
		}
	})
}

// Many collectives under way on one communicator, started in the same order
// everywhere and completed in another order on each rank.
func TestManyCollectivesTogether(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		random := rand.New(rand.NewPCG(uint64(c.Rank()), 7))
		var cases []collCase
		for key := range 4 {
			cases = append(cases, casesApart(c, 1+40*key, key, key%c.Size())...)
		}
		reqs := make([]mpi.Request, len(cases))
		for i, k := range cases {
			k.before()
			reqs[i] = k.start()
			if i%10 == 9 {
				barrier(t, c) // a blocking one among them
			}
		}
		for _, i := range random.Perm(len(cases)) {
			what := fmt.Sprintf("%s, number %d", cases[i].name, i)
			switch i % 3 {
			case 0:
				_, err := reqs[i].Wait()
				noError(t, err, what)
			case 1:
				for done := false; !done; {
					var err error
					_, done, err = reqs[i].Test()
					noError(t, err, what)
				}
			case 2:
				for !reqs[i].Done() {
				}
				noError(t, mpi.WaitAll(reqs[i:i+1]...), what)
			}
			cases[i].check(t, what)
		}
	})
}

// WaitAll and WaitAny take sends, receives and collectives together.
func TestCollectivesWithOtherRequests(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		next, prev := neighbors(c)
		for round := range 20 {
			cases := casesApart(c, 3+100*round, round, round%c.Size())
			k, l := cases[round%len(cases)], cases[(7*round+3)%len(cases)]
			k.before()
			l.before()
			got := []int64{0}
			reqs := []mpi.Request{mpi.Irecv(c, got, prev, round), k.start(), mpi.Isend(c, []int64{int64(c.Rank())}, next, round), l.start()}
			if round%2 == 0 {
				err := mpi.WaitAll(reqs...)
				noError(t, err, "WaitAll")
			} else {
				for range reqs {
					if i, _, err := mpi.WaitAny(reqs...); i == mpi.Undefined || err != nil {
						t.Fatalf("WaitAny gives index %d, %v", i, err)
					}
				}
			}
			k.check(t, k.name)
			l.check(t, l.name)
			if got[0] != int64(prev) {
				t.Fatalf("round %d: the message among collectives is %d, want %d", round, got[0], prev)
			}
		}
	})
}

// Persistent collectives may be started in another order on each rank.
func TestPersistentInAnyOrder(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		random := rand.New(rand.NewPCG(uint64(c.Rank()), 8))
		cases := slices.Concat(casesApart(c, 4, 1, 0), casesApart(c, 900, 2, c.Size()/2))
		ps := make([]*mpi.Persistent, len(cases))
		for i, k := range cases {
			ps[i] = k.prepare()
		}
		reqs := make([]mpi.Request, len(cases))
		for round := range 3 {
			for _, i := range random.Perm(len(cases)) {
				cases[i].before()
				reqs[i] = ps[i].Start()
			}
			err := mpi.WaitAll(reqs...)
			noError(t, err, "WaitAll")
			for _, k := range cases {
				k.check(t, fmt.Sprintf("%s, round %d", k.name, round))
			}
		}
	})
}

// A persistent collective is started again only when it has ended.
func TestPersistentStartedTwice(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		p := c.BarrierInit()
		if c.Rank() == 0 {
			first := p.Start()
			wantClass(t, waitErr(p.Start()), mpi.ErrRequest, "a second start")
			barrier(t, c)
			noError(t, waitErr(first), "the first")
		} else {
			barrier(t, c)
			noError(t, waitErr(p.Start()), "Start")
		}
	})
}

// Goroutines of a rank use different communicators at the same time.
func TestCollectivesOfGoroutines(t *testing.T) {
	mpitest.Sizes(t, []int{2, 4}, func(t *testing.T, c *mpi.Comm) {
		const goroutines = 3
		var wg sync.WaitGroup
		for g := range goroutines {
			d, err := c.Dup()
			noError(t, err, "Dup")
			wg.Add(1)
			go func() {
				defer wg.Done()
				cases := collCases(d, 200*g+1, g, g%d.Size())
				for round := range 2 * len(cases) {
					k := cases[round%len(cases)]
					k.before()
					var err error
					if round%2 == 0 {
						err = k.blocking()
					} else {
						_, err = k.start().Wait()
					}
					if err != nil {
						t.Errorf("goroutine %d, %s: %v", g, k.name, err)
						return
					}
					k.check(t, k.name)
				}
			}()
		}
		wg.Wait()
	})
}

// A late rank does not delay a nonblocking call of the others: rank 0 makes its calls only
// when the others have returned from theirs. If a call waited, no rank would proceed.
func TestStartedCollectiveDoesNotWait(t *testing.T) {
	mpitest.Run(t, 3, func(t *testing.T, c *mpi.Comm) {
		for from := 1; c.Rank() == 0 && from < c.Size(); from++ {
			noError(t, second(mpi.Recv(c, []int{0}, from, 7)), "the word that the others have started")
		}
		r := c.Ibarrier()
		sum := []int{1}
		s := mpi.Iallreduce(c, sum, sum, mpi.Sum)
		if c.Rank() != 0 {
			if _, done, _ := r.Test(); done {
				t.Errorf("rank %d: the barrier ended without rank 0", c.Rank())
			}
			noError(t, mpi.Send(c, []int{1}, 0, 7), "the word that this rank has started")
		}
		noError(t, waitErr(s), "Iallreduce")
		noError(t, waitErr(r), "Ibarrier")
		if sum[0] != 3 {
			t.Errorf("the sum is %d, want 3", sum[0])
		}
	})
}

// A freed communicator rejects calls; calls under way complete.
func TestCollectivesOfFreedCommunicator(t *testing.T) {
	mpitest.Run(t, 3, func(t *testing.T, c *mpi.Comm) {
		d, err := c.Dup()
		noError(t, err, "Dup")
		p := d.BarrierInit()
		r := d.Ibarrier()
		noError(t, d.Free(), "Free")
		noError(t, waitErr(r), "a barrier that was under way")
		for _, k := range collCases(c, 1, 1, 0)[:1] {
			noError(t, k.blocking(), k.name)
		}
		wantClass(t, d.Barrier(), mpi.ErrComm, "Barrier")
		wantClass(t, waitErr(mpi.Ibcast(d, []int{1}, 0)), mpi.ErrComm, "Ibcast")
		wantClass(t, waitErr(p.Start()), mpi.ErrComm, "a start")
		if _, err := mpi.AllreduceInit(d, []int{1}, []int{1}, mpi.Sum).Start().Wait(); !errors.Is(err, mpi.ErrComm) {
			t.Errorf("AllreduceInit: %v", err)
		}
	})
}
