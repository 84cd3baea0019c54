package mpi_test

// A failed rank: every pending call of the others, and every later one, returns an error
// that names it.

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
)

// pendingCalls all wait for rank 0, which never responds.
var pendingCalls = map[string]func(c *mpi.Comm) error{
	"Recv":        func(c *mpi.Comm) error { return second(mpi.Recv(c, make([]byte, 8), 0, 1)) },
	"Recv any":    func(c *mpi.Comm) error { return second(mpi.Recv(c, make([]byte, 8), mpi.AnySource, mpi.AnyTag)) },
	"Send":        func(c *mpi.Comm) error { return mpi.Send(c, make([]byte, 1<<20), 0, 1) },
	"Ssend":       func(c *mpi.Comm) error { return mpi.Ssend(c, make([]byte, 8), 0, 1) },
	"Irecv, Wait": func(c *mpi.Comm) error { return waitErr(mpi.Irecv(c, make([]byte, 8), 0, 1)) },
	"Isend, Wait": func(c *mpi.Comm) error { return waitErr(mpi.Isend(c, make([]byte, 1<<20), 0, 1)) },
	"Sendrecv":    func(c *mpi.Comm) error { return second(mpi.Sendrecv(c, []int{1}, c.Rank(), 1, []int{1}, 0, 1)) },
	"Probe":       func(c *mpi.Comm) error { return second(c.Probe(0, 1)) },
	"Mprobe":      func(c *mpi.Comm) error { _, _, err := c.Mprobe(mpi.AnySource, mpi.AnyTag); return err },
	"RecvValue":   func(c *mpi.Comm) error { _, _, err := mpi.RecvValue[string](c, 0, 1); return err },
	"WaitOrCancel": func(c *mpi.Comm) error {
		return second(mpi.Irecv(c, make([]byte, 8), 0, 1).WaitOrCancel(context.Background()))
	},
	"RecvSlice": func(c *mpi.Comm) error { _, _, err := mpi.RecvSlice[int](c, 0, 1); return err },
	"WaitAll": func(c *mpi.Comm) error {
		return mpi.WaitAll(mpi.Irecv(c, []int{0}, 0, 1), mpi.Irecv(c, []int{0}, 0, 2))
	},
	"WaitAny": func(c *mpi.Comm) error {
		_, _, err := mpi.WaitAny(mpi.Irecv(c, []int{0}, 0, 1))
		return err
	},
	"WaitSome": func(c *mpi.Comm) error { return second(mpi.WaitSome(mpi.Irecv(c, []int{0}, 0, 1))) },
	"Completions": func(c *mpi.Comm) (first error) {
		for _, err := range mpi.Completions(context.Background(), []mpi.Request{mpi.Irecv(c, []int{0}, 0, 1)}) {
			first = errors.Join(first, err)
		}
		return first
	},
	"Test": func(c *mpi.Comm) error {
		for r := mpi.Irecv(c, []int{0}, 0, 1); ; {
			if _, done, err := r.Test(); done {
				return err
			}
		}
	},
	"TestAny": func(c *mpi.Comm) error {
		for reqs := []mpi.Request{mpi.Irecv(c, []int{0}, 0, 1)}; ; {
			if _, _, done, err := mpi.TestAny(reqs...); done {
				return err
			}
		}
	},
	"Done": func(c *mpi.Comm) error {
		r := mpi.Irecv(c, []int{0}, 0, 1)
		for !r.Done() {
		}
		return waitErr(r)
	},
	"Iprobe": func(c *mpi.Comm) error {
		for {
			if _, ok, err := c.Iprobe(0, 1); ok || err != nil {
				return err
			}
		}
	},
	"Barrier":   (*mpi.Comm).Barrier,
	"Bcast":     func(c *mpi.Comm) error { return mpi.Bcast(c, make([]int, 4), 0) },
	"Allreduce": func(c *mpi.Comm) error { return mpi.Allreduce(c, []int{1}, []int{1}, mpi.Sum) },
	"Gather":    func(c *mpi.Comm) error { return mpi.Gather(c, make([]byte, 1<<20), nil, 0) },
	"Alltoall":  func(c *mpi.Comm) error { return mpi.Alltoall(c, make([]int, c.Size()), make([]int, c.Size())) },
	"Scan": func(c *mpi.Comm) error {
		return mpi.Scan(c, make([]int, 1<<16), make([]int, 1<<16), mpi.Sum)
	},
	"Iallreduce": func(c *mpi.Comm) error { return waitErr(mpi.Iallreduce(c, []int{1}, []int{1}, mpi.Sum)) },
	"Iallgather": func(c *mpi.Comm) error { return waitErr(mpi.Iallgather(c, make([]int, 1<<16), make([]int, 3<<16))) },
	"AllreduceInit": func(c *mpi.Comm) error {
		return waitErr(mpi.AllreduceInit(c, []int{1}, []int{1}, mpi.Sum).Start())
	},
	"Ibarrier, Test": func(c *mpi.Comm) error {
		for r := c.Ibarrier(); ; {
			if _, done, err := r.Test(); done {
				return err
			}
		}
	},
	"several collectives": func(c *mpi.Comm) error {
		return mpi.WaitAll(c.Ibarrier(), mpi.Ibcast(c, make([]int, 4), 0), c.Ibarrier())
	},
	"Split": func(c *mpi.Comm) error { return second(c.Split(0, 0)) },
}

func TestRankThatEndsEarly(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("ranks that are processes die in TestProcessDies")
	}
	for name, call := range pendingCalls {
		t.Run(name, func(t *testing.T) {
			worlds, err := mpi.Local(3, nil)
			noError(t, err, "Local")
			var wg sync.WaitGroup
			for rank := 1; rank < 3; rank++ {
				wg.Add(1)
				go func() {
					defer wg.Done()
					c := worlds[rank].Comm()
					for _, when := range []string{"pending", "later"} {
						err := call(c)
						if !errors.Is(err, mpi.ErrProcAborted) {
							t.Errorf("%s call on rank %d: error is %v, want class ErrProcAborted", when, rank, err)
							return
						}
						for _, s := range []string{"rank 0", "pulled the plug", "world"} {
							if !strings.Contains(err.Error(), s) {
								t.Errorf("%s call on rank %d: error %q does not say %q", when, rank, err, s)
							}
						}
					}
					if err := worlds[rank].Finalize(); !errors.Is(err, mpi.ErrProcAborted) {
						t.Errorf("Finalize without rank 0: %v", err)
					}
				}()
			}
			time.Sleep(5 * time.Millisecond) // most ranks wait by now; either order is correct
			begin := time.Now()
			inspect.FailLocal(worlds, 0, "somebody pulled the plug")
			wg.Wait()
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("the others noticed after %v", took)
			}
		})
	}
}

// A second Finalize, or a call after Finalize, returns an error.
func TestAfterFinalize(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("the job is left once, by TestMain")
	}
	worlds, err := mpi.Local(1, nil)
	noError(t, err, "Local")
	w := worlds[0]
	noError(t, w.Finalize(), "Finalize")
	wantClass(t, w.Finalize(), mpi.ErrOther, "second Finalize")
	for what, err := range map[string]error{
		"Send":    mpi.Send(w.Comm(), []int{1}, 0, 1),
		"Isend":   waitErr(mpi.Isend(w.Comm(), make([]int, 100000), 0, 1)),
		"Recv":    second(mpi.Recv(w.Comm(), []int{1}, 0, 1)),
		"Iprobe":  func() error { _, _, err := w.Comm().Iprobe(0, 1); return err }(),
		"Barrier": w.Comm().Barrier(),
	} {
		if what == "Barrier" { // alone there is nobody to wait for
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "Finalize") {
			t.Errorf("%s after Finalize: %v; want an error that says so", what, err)
		}
	}
}
