package mpi_test

// What check mode reports of calls that do not fit together: both sides, each with its file
// and line.

import (
	"os"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// checkedRanks turns check mode on.
func checkedRanks(t *testing.T) {
	t.Helper()
	if !mpitest.Launched() {
		t.Setenv("MUSTER_CHECK", "on")
	} else if os.Getenv("MUSTER_CHECK") != "on" {
		t.Skip("this job is not in check mode")
	}
}

// wantReport checks an error that must name both sides.
func wantReport(t *testing.T, err error, classes []mpi.Class, want ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", want)
		return
	}
	wantClassOf(t, err, classes...)
	for _, s := range want {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("the error must contain %q: %v", s, err)
		}
	}
	if n := strings.Count(err.Error(), "check_report_test.go:"); n < 2 {
		t.Errorf("the error has the lines of %d calls, want both: %v", n, err)
	}
}

// Rank 1 sends []float32, rank 0 receives []float64, by every pair of calls.
func TestElementTypesOfMessages(t *testing.T) {
	checkedRanks(t)
	small, large := make([]float32, 4), make([]float32, 1<<17)
	sends := map[string]func(c *mpi.Comm) error{
		"Send":       func(c *mpi.Comm) error { return mpi.Send(c, small, 0, 0) },
		"Send large": func(c *mpi.Comm) error { return mpi.Send(c, large, 0, 0) },
		"Ssend":      func(c *mpi.Comm) error { return mpi.Ssend(c, small, 0, 0) },
		"Bsend":      func(c *mpi.Comm) error { return mpi.Bsend(c, small, 0, 0) },
		"Isend":      func(c *mpi.Comm) error { return waitErr(mpi.Isend(c, small, 0, 0)) },
		"SendInit":   func(c *mpi.Comm) error { return waitErr(mpi.SendInit(c, small, 0, 0).Start()) },
		"Sendrecv": func(c *mpi.Comm) error {
			return second(mpi.Sendrecv(c, small, 0, 0, []byte{}, mpi.ProcNull, 0))
		},
	}
	in := make([]float64, 1<<16)
	receives := map[string]func(c *mpi.Comm) error{
		"Recv":     func(c *mpi.Comm) error { return second(mpi.Recv(c, in, 1, 0)) },
		"any":      func(c *mpi.Comm) error { return second(mpi.Recv(c, in, mpi.AnySource, mpi.AnyTag)) },
		"Irecv":    func(c *mpi.Comm) error { return waitErr(mpi.Irecv(c, in, 1, 0)) },
		"WaitAll":  func(c *mpi.Comm) error { return mpi.WaitAll(mpi.Irecv(c, in, 1, 0)) },
		"RecvInit": func(c *mpi.Comm) error { return waitErr(mpi.RecvInit(c, in, 1, 0).Start()) },
		"Sendrecv": func(c *mpi.Comm) error {
			return second(mpi.Sendrecv(c, []byte{}, mpi.ProcNull, 0, in, 1, 0))
		},
		"Mrecv": func(c *mpi.Comm) error {
			m, _, err := c.Mprobe(1, 0)
			noError(t, err, "Mprobe")
			return second(mpi.Mrecv(m, in))
		},
	}
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		for _, send := range sortedNames(sends) {
			for _, receive := range sortedNames(receives) {
				if c.Rank() == 1 {
					noError(t, sends[send](c), send)
				} else {
					wantReport(t, receives[receive](c), []mpi.Class{mpi.ErrType}, "the element types differ: rank 1 sent with ",
						" of float32 at ", "rank 0 received with ", " of float64 at ", "use the same element type")
				}
			}
		}
	})
}

// Rank 1 sends []float64 in partitions, rank 0 receives []int64: the receive reports it, at each
// start, and the send completes.
func TestElementTypesOfPartitions(t *testing.T) {
	checkedRanks(t)
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		for _, n := range []int{8, 1 << 17} {
			var p *mpi.Partitioned
			if c.Rank() == 1 {
				p = mpi.PsendInit(c, make([]float64, n), 2, 0, 1)
			} else {
				p = mpi.PrecvInit(c, make([]int64, n), 4, 1, 1)
			}
			for range 2 {
				noError(t, p.Start(), "Start")
				if c.Rank() == 1 {
					noError(t, p.Ready(0, 1), "Ready")
					_, err := p.Wait()
					noError(t, err, "Wait")
				} else {
					_, err := p.Wait()
					wantReport(t, err, []mpi.Class{mpi.ErrType}, "the element types differ: rank 1 sent with PsendInit of float64 at ",
						"rank 0 received with PrecvInit of int64 at ")
				}
				barrier(t, c)
			}
		}
	})
}

// Collective calls that differ in one argument, blocking, non-blocking and persistent. All
// ranks report both calls.
func TestArgumentsOfCollectives(t *testing.T) {
	checkedRanks(t)
	sum := func(c *mpi.Comm, form string, n int, op func() mpi.Op[int32]) error {
		v := make([]int32, n)
		switch form {
		case "nonblocking":
			return waitErr(mpi.Iallreduce(c, nil, v, op))
		case "persistent":
			return waitErr(mpi.AllreduceInit(c, nil, v, op).Start())
		}
		return mpi.Allreduce(c, nil, v, op)
	}
	floats := func(c *mpi.Comm, form string) error {
		v := make([]float32, 2)
		switch form {
		case "nonblocking":
			return waitErr(mpi.Iallreduce(c, nil, v, mpi.Sum))
		case "persistent":
			return waitErr(mpi.AllreduceInit(c, nil, v, mpi.Sum).Start())
		}
		return mpi.Allreduce(c, nil, v, mpi.Sum)
	}
	bcast := func(c *mpi.Comm, form string, root int) error {
		v := make([]int32, 2)
		switch form {
		case "nonblocking":
			return waitErr(mpi.Ibcast(c, v, root))
		case "persistent":
			return waitErr(mpi.BcastInit(c, v, root).Start())
		}
		return mpi.Bcast(c, v, root)
	}
	wait := func(c *mpi.Comm, form string) error {
		switch form {
		case "nonblocking":
			return waitErr(c.Ibarrier())
		case "persistent":
			return waitErr(c.BarrierInit().Start())
		}
		return c.Barrier()
	}
	for name, test := range map[string]struct {
		even, odd func(c *mpi.Comm, form string) error
		class     mpi.Class
		want      []string
	}{
		"element type": {func(c *mpi.Comm, form string) error { return sum(c, form, 2, mpi.Sum[int32]) }, floats,
			mpi.ErrOther, []string{"of 8 bytes of int32 with Sum at ", "of 8 bytes of float32 with Sum at "}},
		"operation": {func(c *mpi.Comm, form string) error { return sum(c, form, 2, mpi.Sum[int32]) },
			func(c *mpi.Comm, form string) error { return sum(c, form, 2, mpi.Max[int32]) },
			mpi.ErrOther, []string{"of int32 with Sum at ", "of int32 with Max at "}},
		"count": {func(c *mpi.Comm, form string) error { return sum(c, form, 2, mpi.Sum[int32]) },
			func(c *mpi.Comm, form string) error { return sum(c, form, 3, mpi.Sum[int32]) },
			mpi.ErrTruncate, []string{"of 8 bytes of int32", "of 12 bytes of int32", "the counts differ between ranks"}},
		"root": {func(c *mpi.Comm, form string) error { return bcast(c, form, 0) },
			func(c *mpi.Comm, form string) error { return bcast(c, form, 1) },
			mpi.ErrOther, []string{"Bcast", "with root 0 at ", "with root 1 at "}},
		"kind": {wait, func(c *mpi.Comm, form string) error { return bcast(c, form, 1) },
			mpi.ErrOther, []string{"Barrier", "Bcast", " of int32 with root 1 at "}},
	} {
		for _, form := range []string{"blocking", "nonblocking", "persistent"} {
			t.Run(name+"/"+form, func(t *testing.T) {
				mpitest.Sizes(t, []int{2, 4}, func(t *testing.T, c *mpi.Comm) {
					d, err := c.Dup()
					noError(t, err, "Dup")
					call := test.even
					if c.Rank()%2 == 1 {
						call = test.odd
					}
					err = call(d, form)
					if err == nil { // others compare; the next call must report it
						err = d.Barrier()
					}
					wantReport(t, err, []mpi.Class{test.class}, test.want...)
					barrier(t, c)
				})
			})
		}
	}
}

// mistakeProgram is the prefix of programs that make a mistake; the rest of the name is which.
const mistakeProgram = "mistake "

func makeMistake(world *mpi.Comm, what string) error {
	switch what {
	case "types":
		if world.Rank() == 1 {
			return mpi.Send(world, make([]float32, 4), 0, 0)
		}
		if world.Rank() == 0 {
			_, err := mpi.Recv(world, make([]float64, 4), 1, 0)
			return err
		}
	case "collectives":
		if world.Rank()%2 == 0 {
			return world.Barrier()
		}
		return mpi.Bcast(world, make([]int, 1), 1)
	case "unreceived":
		if world.Rank() == 1 {
			return mpi.Send(world, make([]int, 1), 0, 7)
		}
	case "dropped":
		if world.Rank() == 0 {
			mpi.Irecv(world, make([]int, 1), 1, 7)
		}
	}
	return nil
}
