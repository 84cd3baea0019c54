package mpi_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/seeded"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
)

// recoverJob is a job of processes that are goroutines and can die.
type recoverJob struct {
	worlds []*mpi.World
	dead   []atomic.Bool // by process
	errs   []error       // what Recover has returned
}

// newRecoverJob runs fn under Recover on n ranks and some spares. then, if not nil, runs after
// it.
func newRecoverJob(t *testing.T, n, spares int, fn func(j *recoverJob, c *mpi.Comm, a mpi.Attempt) error, then func(j *recoverJob, world *mpi.Comm) error) *recoverJob {
	t.Helper()
	if mpitest.Launched() {
		t.Skip("needs a job whose ranks can be made to fail")
	}
	worlds, err := mpi.LocalSpares(n, spares, &mpi.Config{OnFailure: "return"})
	noError(t, err, "Local")
	j := &recoverJob{worlds, make([]atomic.Bool, n+spares), make([]error, n+spares)}
	var wg sync.WaitGroup
	for i, w := range worlds {
		wg.Add(1)
		go func() {
			defer wg.Done()
			work := func(c *mpi.Comm, a mpi.Attempt) error { return fn(j, c, a) }
			if j.errs[i] = mpi.Recover(work)(w.Comm()); j.errs[i] == nil && then != nil {
				j.errs[i] = then(j, w.Comm())
			}
			if err := w.Finalize(); err != nil {
				t.Errorf("process %d: Finalize: %v", i, err)
			}
		}()
	}
	wg.Wait()
	return j
}

// die ends the process of the caller.
func (j *recoverJob) die(c *mpi.Comm) {
	p := slices.Index(j.worlds, c.World())
	j.dead[p].Store(true)
	inspect.FailLocal(j.worlds, p, "somebody pulled the plug")
	runtime.Goexit()
}

// check fails unless Recover has returned nil in all processes that are alive.
func (j *recoverJob) check(t *testing.T) {
	t.Helper()
	for p, err := range j.errs {
		if err != nil && !j.dead[p].Load() {
			t.Errorf("process %d: %v", p, err)
		}
	}
}

func reduceRanks(c *mpi.Comm) error {
	sum := []int{0}
	if err := mpi.Allreduce(c, []int{1 << c.Rank()}, sum, mpi.Sum); err != nil {
		return err
	}
	if sum[0] != 1<<c.Size()-1 {
		return fmt.Errorf("the sum is %#x of %d ranks", sum[0], c.Size())
	}
	return nil
}

// TestRecover kills ranks in the first attempt, in several places, with too few spares, enough
// and none.
func TestRecover(t *testing.T) {
	for name, k := range map[string]struct {
		spares  int
		victims []int
		early   bool // the others have returned when the victims die
	}{
		"shrink": {0, []int{2}, false}, "shrink by the first": {0, []int{0, 1}, false}, "refill": {2, []int{1, 3}, false},
		"too few spares": {1, []int{0, 2}, false}, "after the others": {1, []int{3}, true}, "no failure": {1, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 4
			var last atomic.Int64
			newRecoverJob(t, n, k.spares, func(j *recoverJob, c *mpi.Comm, a mpi.Attempt) error {
				if a.Number == 1 {
					if c.Size() != n || a.Failed != nil || a.New {
						return fmt.Errorf("the first attempt has %d ranks, and is %+v", c.Size(), a)
					}
					err := reduceRanks(c) // may fail already because of another victim
					if slices.Contains(k.victims, c.Rank()) {
						if k.early {
							time.Sleep(5 * time.Millisecond) // the others have returned; either order is correct
						}
						j.die(c)
					}
					if err != nil || k.early {
						return err
					}
				}
				if err := reduceRanks(c); err != nil {
					return err
				}
				if a.Number > 1 && len(k.victims) == 1 && !slices.Equal(a.Failed, k.victims) {
					return fmt.Errorf("attempt %d is told of the failed ranks %v, want %v", a.Number, a.Failed, k.victims)
				}
				if a.New && !slices.Contains(k.victims, c.Rank()) {
					return fmt.Errorf("a spare has become rank %d, which has not failed", c.Rank())
				}
				last.Store(int64(c.Size()))
				return nil
			}, nil).check(t)
			if want := min(n, n-len(k.victims)+k.spares); int(last.Load()) != want {
				t.Errorf("the last attempt has %d ranks, want %d", last.Load(), want)
			}
		})
	}
}

// TestRecoverInterruptsDerived checks that ranks return that wait on a communicator on which
// nobody has failed.
func TestRecoverInterruptsDerived(t *testing.T) {
	newRecoverJob(t, 4, 0, func(j *recoverJob, c *mpi.Comm, a mpi.Attempt) error {
		row, err := c.Split(c.Rank()/2, c.Rank())
		if err != nil || a.Number > 1 {
			return err
		}
		switch c.Rank() {
		case 3:
			j.die(c)
		case 1:
			_, err = mpi.Recv(c, []int{0}, 3, 0)
			return err
		}
		return row.Barrier() // rank 0 waits for rank 1, which waits for rank 3
	}, nil).check(t)
}

// TestRecoverEnds checks that an error that is not a failure ends the attempts on all ranks,
// also if a rank fails.
func TestRecoverEnds(t *testing.T) {
	bad := errors.New("the input is not valid")
	j := newRecoverJob(t, 4, 1, func(j *recoverJob, c *mpi.Comm, a mpi.Attempt) error {
		if c.Rank() == 1 {
			return bad
		}
		if c.Rank() == 2 {
			j.die(c)
		}
		return c.Barrier()
	}, nil)
	for p, err := range j.errs {
		switch {
		case j.dead[p].Load():
		case p == 1 && err != bad:
			t.Errorf("rank 1 returns %v, want its own error", err)
		case p != 1 && (err == nil || !strings.Contains(err.Error(), "rank 1 has returned an error")):
			t.Errorf("process %d returns %v, want an error that names rank 1", p, err)
		}
	}
}

// TestRecoverGivesUp checks that attempts which fail for other reasons than a failed rank end.
func TestRecoverGivesUp(t *testing.T) {
	var calls atomic.Int64
	j := newRecoverJob(t, 2, 1, func(j *recoverJob, c *mpi.Comm, a mpi.Attempt) error {
		calls.Add(1)
		if c.Rank() == 0 {
			return c.Revoke()
		}
		return c.Barrier()
	}, nil)
	for p, err := range j.errs {
		if !errors.Is(err, mpi.ErrOther) || !strings.Contains(err.Error(), "10 attempts in a row") {
			t.Errorf("process %d returns %v", p, err)
		}
	}
	if calls.Load() != 20 {
		t.Errorf("the function has been called %d times, want 10 times on 2 ranks", calls.Load())
	}
}

// TestRecoverTwice calls Recover again after it has returned, on the world that the first
// call has left.
func TestRecoverTwice(t *testing.T) {
	dieOnce := func(victim int) func(j *recoverJob, c *mpi.Comm, a mpi.Attempt) error {
		return func(j *recoverJob, c *mpi.Comm, a mpi.Attempt) error {
			if c.Rank() == victim && !a.New && a.Number <= victim+1 {
				j.die(c)
			}
			return reduceRanks(c)
		}
	}
	newRecoverJob(t, 3, 2, dieOnce(0), func(j *recoverJob, world *mpi.Comm) error {
		again := func(c *mpi.Comm, a mpi.Attempt) error { return dieOnce(1)(j, c, a) }
		return mpi.Recover(again)(world)
	}).check(t)
}

// TestRecoverRandom kills ranks in random calls of random attempts.
func TestRecoverRandom(t *testing.T) {
	random := seeded.Random(t)
	for range 6 {
		n, spares := 2+random.IntN(5), random.IntN(4)
		when := map[[2]int]int{} // attempt and rank → call in which it dies
		for range random.IntN(n + spares) {
			when[[2]int{1 + random.IntN(4), random.IntN(n)}] = random.IntN(20)
		}
		var alive atomic.Int64
		alive.Store(int64(n + spares))
		newRecoverJob(t, n, spares, func(j *recoverJob, c *mpi.Comm, a mpi.Attempt) error {
			at, dies := when[[2]int{a.Number, c.Rank()}]
			for i := range 20 {
				if dies && i == at && alive.Add(-1) > 0 {
					j.die(c)
				}
				if err := reduceRanks(c); err != nil {
					return err
				}
			}
			return nil
		}, nil).check(t)
		if t.Failed() {
			t.Fatalf("%d ranks, %d spares, killed %v", n, spares, when)
		}
	}
}

// TestRecoverOnce checks that Recover calls the function once in jobs that end with a failure.
func TestRecoverOnce(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		calls := 0
		noError(t, mpi.Recover(func(c *mpi.Comm, a mpi.Attempt) error {
			calls++
			return reduceRanks(c)
		})(c), "Recover")
		if calls != 1 {
			t.Errorf("the function has been called %d times", calls)
		}
	})
}
