package mpi_test

// Programs that are correct must behave in check mode as they do without it. What check mode
// reports is tested in package mpitest.

import (
	"context"
	"errors"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// Rank 0 starts a collective that it can complete alone, and does something with its
// request; the other ranks make the call after that. MPI-4.1 section 6.12: the start is
// local, and calls that test never wait.
func TestStartsAreLocal(t *testing.T) {
	starts := map[string]func(c *mpi.Comm, buf []int) mpi.Request{
		"Ibcast": func(c *mpi.Comm, buf []int) mpi.Request { return mpi.Ibcast(c, buf, 0) },
		"Iscatter": func(c *mpi.Comm, buf []int) mpi.Request {
			return mpi.Iscatter(c, make([]int, len(buf)*c.Size()), buf, 0)
		},
		"Igather": func(c *mpi.Comm, buf []int) mpi.Request {
			return mpi.Igather(c, buf, make([]int, len(buf)*c.Size()), c.Size()-1)
		},
		"Ireduce": func(c *mpi.Comm, buf []int) mpi.Request {
			return mpi.Ireduce(c, buf, make([]int, len(buf)), mpi.Sum, c.Size()-1)
		},
		"Ibarrier": func(c *mpi.Comm, _ []int) mpi.Request { return c.Ibarrier() },
	}
	between := map[string]func(r mpi.Request) (completed bool, err error){
		"nothing": func(mpi.Request) (bool, error) { return false, nil },
		"Done":    func(r mpi.Request) (bool, error) { r.Done(); return false, nil },
		"Cancel": func(r mpi.Request) (bool, error) {
			if r.Cancel() {
				return false, errors.New("a collective was cancelled")
			}
			return false, nil
		},
		"Test": func(r mpi.Request) (bool, error) {
			_, done, err := r.Test()
			return done, err
		},
		"TestAll": func(r mpi.Request) (bool, error) {
			done, err := mpi.TestAll(r)
			return done, err
		},
		"TestAny": func(r mpi.Request) (bool, error) {
			_, _, done, err := mpi.TestAny(r)
			return done, err
		},
		"TestSome": func(r mpi.Request) (bool, error) {
			done, err := mpi.TestSome(r)
			return len(done) > 0, err
		},
		"WaitContext": func(r mpi.Request) (bool, error) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, err := r.WaitContext(ctx)
			if errors.Is(err, context.Canceled) {
				return false, nil
			}
			return true, err
		},
	}
	mpitest.Sizes(t, []int{2, 3}, func(t *testing.T, c *mpi.Comm) {
		for _, name := range sortedNames(starts) {
			for _, way := range sortedNames(between) {
				buf := []int{c.Rank() + 1, 7}
				completed := false
				var r mpi.Request
				if c.Rank() == 0 {
					var err error
					r = starts[name](c, buf)
					completed, err = between[way](r)
					noError(t, err, name+", "+way)
					for other := 1; other < c.Size(); other++ {
						noError(t, mpi.Send(c, buf, other, 1), "Send")
					}
				} else {
					_, err := mpi.Recv(c, make([]int, 2), 0, 1)
					noError(t, err, "Recv")
					r = starts[name](c, buf)
				}
				if !completed {
					noError(t, waitErr(r), name+", "+way+", Wait")
				}
				if name == "Ibcast" && buf[0] != 1 {
					t.Errorf("%s: rank %d received %d", way, c.Rank(), buf[0])
				}
			}
		}
	})
}

// A collective that the other rank has not started must not keep WaitAny and WaitSome from
// completing a message.
func TestWaitAnyPassesCollective(t *testing.T) {
	ways := map[string]func(reqs []mpi.Request) error{
		"WaitAny":  func(reqs []mpi.Request) error { _, _, err := mpi.WaitAny(reqs...); return err },
		"WaitSome": func(reqs []mpi.Request) error { _, err := mpi.WaitSome(reqs...); return err },
	}
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		for _, way := range sortedNames(ways) {
			buf := []int{5 * c.Rank()}
			if c.Rank() == 0 {
				reqs := []mpi.Request{mpi.Ibcast(c, buf, 0), mpi.Irecv(c, make([]int, 1), 1, 2)}
				noError(t, ways[way](reqs), way)
				noError(t, mpi.Send(c, buf, 1, 1), "Send")
				noError(t, mpi.WaitAll(reqs...), "WaitAll")
				continue
			}
			noError(t, mpi.Send(c, buf, 0, 2), "Send")
			_, err := mpi.Recv(c, make([]int, 1), 0, 1)
			noError(t, err, "Recv")
			noError(t, waitErr(mpi.Ibcast(c, buf, 0)), "Ibcast")
			if buf[0] != 0 {
				t.Errorf("%s: received %d", way, buf[0])
			}
		}
	})
}

// A call that one rank refuses because of its arguments is no call: the next one has its own
// element type and operation.
func TestRefusedCallLeavesNothing(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		if c.Rank() == 0 {
			wantClass(t, mpi.Allgather(c, []int{1}, make([]int, 3)), mpi.ErrCount, "Allgather into three elements")
		}
		barrier(t, c)
		if c.Rank() == 1 {
			wantClass(t, mpi.Allreduce(c, []int8{1}, make([]int8, 3), mpi.Max), mpi.ErrCount, "Allreduce into three elements")
			wantClass(t, waitErr(mpi.Iallreduce(c, []int8{1}, make([]int8, 3), mpi.Max)), mpi.ErrCount, "Iallreduce into three elements")
		}
		barrier(t, c)
		sum := []int{1}
		noError(t, mpi.Allreduce(c, nil, sum, mpi.Sum), "Allreduce")
		if sum[0] != 2 {
			t.Errorf("the sum is %d", sum[0])
		}
		barrier(t, c)
	})
}
