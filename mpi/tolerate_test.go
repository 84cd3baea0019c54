package mpi_test

// Jobs that survive the failure of a rank (Config.OnFailure "return"). Ranks that are
// processes die in tolerate_linux_test.go.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
)

// tolerantJob runs fn on all ranks except those that fail, which do nothing.
func tolerantJob(t *testing.T, n int, failing []int, fn func(c *mpi.Comm) error) {
	t.Helper()
	if mpitest.Launched() {
		t.Skip("needs a job whose ranks can be made to fail")
	}
	worlds, err := mpi.Local(n, &mpi.Config{OnFailure: "return"})
	noError(t, err, "Local")
	var wg sync.WaitGroup
	for rank, w := range worlds {
		if slices.Contains(failing, rank) {
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := fn(w.Comm()); err != nil {
				t.Errorf("rank %d: %v", rank, err)
				inspect.FailLocal(worlds, rank, "its test has failed") // the others must not wait for it
				return
			}
			if err := w.Finalize(); err != nil {
				t.Errorf("rank %d: Finalize: %v", rank, err)
			}
		}()
	}
	time.Sleep(5 * time.Millisecond) // most ranks wait by now; either order is correct
	for _, r := range failing {
		inspect.FailLocal(worlds, r, "somebody pulled the plug")
	}
	wg.Wait()
}

func isFailure(err error, rank int) error {
	if !errors.Is(err, mpi.ErrProcFailed) || !strings.Contains(err.Error(), fmt.Sprintf("rank %d", rank)) {
		return fmt.Errorf("the error is %v, want one of class ErrProcFailed that names rank %d", err, rank)
	}
	return nil
}

// shrunken checks that the ranks of c that are alive can go on.
func shrunken(c *mpi.Comm, want int) error {
	s, err := c.Shrink()
	if err != nil {
		return err
	}
	if s.Size() != want {
		return fmt.Errorf("the shrunken communicator has %d ranks, want %d", s.Size(), want)
	}
	for range 8 { // some by messages, some in a segment
		sum := []int{0}
		if err := mpi.Allreduce(s, []int{1 << s.Rank()}, sum, mpi.Sum); err != nil {
			return err
		}
		if sum[0] != 1<<want-1 {
			return fmt.Errorf("the sum is %d, want %d", sum[0], 1<<want-1)
		}
	}
	return s.Free()
}

// TestCallsAfterFailure checks that every kind of call that waits for a failed rank returns
// an error that names it, and that the others can go on.
func TestCallsAfterFailure(t *testing.T) {
	for name, call := range pendingCalls {
		t.Run(name, func(t *testing.T) {
			tolerantJob(t, 3, []int{0}, func(c *mpi.Comm) error {
				for _, when := range []string{"pending", "later"} {
					if err := isFailure(call(c), 0); err != nil {
						return fmt.Errorf("%s call: %w", when, err)
					}
				}
				return shrunken(c, 2)
			})
		})
	}
}

// TestOthersGoOn checks that calls that do not involve the failed rank work on.
func TestOthersGoOn(t *testing.T) {
	tolerantJob(t, 4, []int{3}, func(c *mpi.Comm) error {
		g, err := c.Group().Include(0, 1, 2)
		if err != nil {
			return err
		}
		three, err := c.CreateGroup(g, 0)
		if err != nil {
			return err
		}
		if err := isFailure(second(mpi.Recv(c, []int{0}, 3, 1)), 3); err != nil {
			return err
		}
		if failed := c.Failed(); !slices.Equal(failed, []int{3}) {
			return fmt.Errorf("Failed returns %v, want rank 3", failed)
		}
		later, err := c.CreateGroup(g, 1)
		if err != nil {
			return fmt.Errorf("after the failure: %w", err)
		}
		if err := later.Barrier(); err != nil {
			return fmt.Errorf("Barrier of a group created after the failure: %w", err)
		}
		next, previous, got := (c.Rank()+1)%3, (c.Rank()+2)%3, []int{0}
		if _, err := mpi.Sendrecv(c, []int{c.Rank()}, next, 1, got, previous, 1); err != nil || got[0] != previous {
			return fmt.Errorf("Sendrecv among the others: %v, received %d", err, got[0])
		}
		if err := three.Barrier(); err != nil {
			return fmt.Errorf("Barrier among the others: %w", err)
		}
		if err := isFailure(second(mpi.Recv(c, got, mpi.AnySource, 9)), 3); err != nil {
			return fmt.Errorf("from any source: %w", err)
		}
		if acked := c.AckFailed(); !slices.Equal(acked, []int{3}) {
			return fmt.Errorf("AckFailed returns %v, want rank 3", acked)
		}
		r := mpi.Irecv(c, got, mpi.AnySource, 2)
		if err := mpi.Send(c, []int{10 + c.Rank()}, next, 2); err != nil {
			return err
		}
		if _, err := r.Wait(); err != nil || got[0] != 10+previous {
			return fmt.Errorf("from any source, acknowledged: %v, received %d", err, got[0])
		}
		return isFailure(mpi.Send(c, make([]int, 1<<20), 3, 1), 3)
	})
}

// TestRevoke checks that a revoked communicator interrupts calls that wait for ranks that
// are alive, and nothing on other communicators.
func TestRevoke(t *testing.T) {
	for name, call := range pendingCalls {
		t.Run(name, func(t *testing.T) {
			tolerantJob(t, 3, nil, func(c *mpi.Comm) error {
				other, err := c.Dup()
				if err := errors.Join(err, together(c)); err != nil { // no rank is in Dup any more
					return err
				}
				if c.Rank() == 0 {
					time.Sleep(5 * time.Millisecond) // the others wait by now; either order is correct
					if err := c.Revoke(); err != nil {
						return err
					}
					return shrunken(c, 3)
				}
				for range 2 {
					err := call(c)
					for tries := 0; err == nil && tries < 1000; tries++ {
						err = call(c) // a send succeeds if the receiver drops the message first
					}
					if !errors.Is(err, mpi.ErrRevoked) {
						return fmt.Errorf("the error is %v, want one of class ErrRevoked", err)
					}
				}
				if !c.Revoked() || other.Revoked() {
					return fmt.Errorf("Revoked returns %v for the communicator and %v for another", c.Revoked(), other.Revoked())
				}
				if err := mpi.Send(other, []int{1}, c.Rank(), 1); err != nil {
					return fmt.Errorf("Send on another communicator: %w", err)
				}
				if _, err := mpi.Recv(other, []int{0}, c.Rank(), 1); err != nil {
					return fmt.Errorf("Recv on another communicator: %w", err)
				}
				return shrunken(c, 3)
			})
		})
	}
}

// TestAgree checks the agreement with ranks that die, and without.
func TestAgree(t *testing.T) {
	for _, failing := range [][]int{nil, {0}, {4}, {0, 1}, {2, 3, 5}} {
		t.Run(fmt.Sprint(failing), func(t *testing.T) {
			tolerantJob(t, 6, failing, func(c *mpi.Comm) error {
				for range 20 {
					flag, failed, err := c.Agree(^(uint64(1) << c.Rank()))
					if err != nil {
						return err
					}
					want := ^uint64(1<<6 - 1)
					for _, r := range failing {
						want |= 1 << r
					}
					if slices.Sort(failed); flag != want || !slices.Equal(failed, failing) {
						return fmt.Errorf("agreed on %x and the failed ranks %v, want %x and %v", flag, failed, want, failing)
					}
				}
				return shrunken(c, 6-len(failing))
			})
		})
	}
}

// TestToleranceIsASetting checks the errors of jobs that end with a failure.
func TestToleranceIsASetting(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		wantClass(t, c.Revoke(), mpi.ErrUnsupported, "Revoke")
		wantClass(t, second(c.Shrink()), mpi.ErrUnsupported, "Shrink")
		_, _, err := c.Agree(0)
		wantClass(t, err, mpi.ErrUnsupported, "Agree")
	})
	if _, err := mpi.ConfigFromEnv([]string{"MUSTER_ON_FAILURE=retrun"}); err == nil || !strings.Contains(err.Error(), "did you mean return?") {
		t.Errorf("a misspelt value gives %v", err)
	}
}

// TestAgreeOnManyCommunicators checks agreements on more communicators than there are slots
// on the board, and on communicators that use the slots of freed ones.
func TestAgreeOnManyCommunicators(t *testing.T) {
	tolerantJob(t, 4, nil, func(c *mpi.Comm) error {
		var all []*mpi.Comm
		for i := range 30 {
			d, err := c.Dup()
			if err != nil {
				return err
			}
			if i%3 == 0 {
				if d, err = d.Shrink(); err != nil {
					return err
				}
			}
			all = append(all, d)
			for j, d := range all {
				flag, failed, err := d.Agree(^(uint64(8*i+j) << (8 * d.Rank())))
				if want := ^(uint64(8*i+j) * 0x1010101); err != nil || flag != want || len(failed) > 0 {
					return fmt.Errorf("agreed on %x without %v (%v) on communicator %d of %d, want %x", flag, failed, err, j, i, want)
				}
			}
			if i%2 == 1 { // ranks free it while others may still be in its last agreement
				if err := all[i/3].Free(); err != nil {
					return err
				}
				all = append(all[:i/3], all[i/3+1:]...)
			}
		}
		return nil
	})
}

// TestAgreeWhileRanksFail checks that all ranks, also those that fail, return the same from
// each agreement.
func TestAgreeWhileRanksFail(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("needs a job whose ranks can be made to fail")
	}
	for _, messages := range []bool{false, true} {
		t.Run(fmt.Sprintf("messages=%v", messages), func(t *testing.T) { agreeWhileRanksFail(t, messages) })
	}
}

func agreeWhileRanksFail(t *testing.T, messages bool) {
	const ranks, calls = 8, 200
	type result struct {
		flag   uint64
		failed string
	}
	var mu sync.Mutex
	agreed := map[int]result{}
	worlds, err := mpi.Local(ranks, &mpi.Config{OnFailure: "return"})
	noError(t, err, "Local")
	var wg sync.WaitGroup
	for rank, w := range worlds {
		wg.Go(func() {
			if messages {
				mpi.AgreeByMessages(w.Comm())
			}
			limit := calls
			if rank%3 == 1 { // ranks 1, 4 and 7 fail, at different times
				limit = 20 + 50*rank/3
			}
			for i := range calls {
				if i == limit {
					inspect.FailLocal(worlds, rank, "somebody pulled the plug")
					return
				}
				flag, failed, err := w.Comm().Agree(^(uint64(1) << rank) ^ uint64(i)<<32)
				if err != nil {
					t.Errorf("rank %d: agreement %d: %v", rank, i, err)
					return
				}
				mine := result{flag, fmt.Sprint(failed)}
				mu.Lock()
				if other, ok := agreed[i]; ok && other != mine {
					t.Errorf("rank %d returns %+v from agreement %d, another rank %+v", rank, mine, i, other)
				}
				agreed[i] = mine
				mu.Unlock()
			}
			if err := w.Finalize(); err != nil {
				t.Errorf("rank %d: Finalize: %v", rank, err)
			}
		})
	}
	wg.Wait()
	if last := agreed[calls-1].failed; last != "[1 4 7]" {
		t.Errorf("the ranks that have failed in the last agreement are %s, want [1 4 7]", last)
	}
}

// TestAgreeOnManyFailures checks an agreement whose messages are longer than a note: every
// second rank has failed.
func TestAgreeOnManyFailures(t *testing.T) {
	const ranks = 600
	var failing []int
	for r := 1; r < ranks; r += 2 {
		failing = append(failing, r)
	}
	tolerantJob(t, ranks, failing, func(c *mpi.Comm) error {
		mpi.AgreeByMessages(c)
		_, failed, err := c.Agree(0)
		if err != nil || !slices.Equal(failed, failing) {
			return fmt.Errorf("agreed on the failed ranks %v (%v), want every second one", failed, err)
		}
		return nil
	})
}
