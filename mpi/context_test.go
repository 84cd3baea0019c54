package mpi_test

import (
	"context"
	"errors"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// TestContextVariants calls the blocking calls with a context that never ends.
func TestContextVariants(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		layout, err := mpi.Vector[int](2, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		if c.Rank() == 0 {
			ready := make([]int, 1)
			if _, err := mpi.Recv(c, ready, 1, 0); err != nil {
				t.Fatal(err)
			}
			send := []error{
				second(mpi.Irsend(c, []int{1}, 1, 1).WaitContext(ctx)),
				second(mpi.IsendLayout(c, []int{2, 0, 3}, layout, 1, 2).WaitContext(ctx)),
				second(mpi.IsendValue(c, "four", 1, 3).WaitContext(ctx)),
				second(mpi.Isend(c, []int{5}, 1, 4).WaitContext(ctx)),
			}
			if err := errors.Join(send...); err != nil {
				t.Fatal(err)
			}
		} else {
			first := make([]int, 1)
			reqs := []mpi.Request{mpi.Irecv(c, first, 0, 1)}
			if err := mpi.Send(c, []int{0}, 0, 0); err != nil {
				t.Fatal(err)
			}
			for done, err := range mpi.Completions(ctx, reqs) {
				if err != nil || first[0] != 1 || done.Status.Tag != 1 {
					t.Errorf("Rsend: %v, %+v, error %v", first, done.Status, err)
				}
			}
			spread := make([]int, 3)
			if _, err := mpi.IrecvLayout(c, spread, layout, 0, 2).WaitOrCancel(ctx); err != nil || spread[0] != 2 || spread[2] != 3 {
				t.Errorf("SendLayout: %v, error %v", spread, err)
			}
			if v, _, err := recvValue[string](ctx, c, 0, 3); err != nil || v != "four" {
				t.Errorf("SendValue: %q, error %v", v, err)
			}
			m, _, err := c.Mprobe(0, 4)
			if err != nil {
				t.Fatal(err)
			}
			if st, err := mpi.Imrecv(m, first).WaitContext(ctx); err != nil || first[0] != 5 || st.Source != 0 {
				t.Errorf("Mrecv: %v, %+v, error %v", first, st, err)
			}
		}
		other, got := 1-c.Rank(), make([]int, 1)
		if _, err := mpi.Isendrecv(c, []int{c.Rank()}, other, 5, got, other, 5).WaitContext(ctx); err != nil || got[0] != other {
			t.Errorf("Sendrecv: %v, error %v", got, err)
		}
		got[0] = c.Rank()
		if _, err := mpi.IsendrecvReplace(c, got, other, 6, other, 6).WaitContext(ctx); err != nil || got[0] != other {
			t.Errorf("SendrecvReplace: %v, error %v", got, err)
		}
	})
}

// TestContextEnds shows that a call returns the error of a context that has
// ended, and that the message of a cancelled receive goes to the next one.
func TestContextEnds(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		got := make([]int, 1)
		if c.Rank() == 0 {
			if _, err := mpi.Isendrecv(c, []int{1}, 1, 0, got, 1, 1).WaitOrCancel(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Isendrecv with an ended context: error %v", err)
			}
			reqs := []mpi.Request{mpi.Irecv(c, got, 1, 1)}
			for _, err := range mpi.Completions(ctx, reqs) {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("Completions with an ended context: error %v", err)
				}
			}
			if err := mpi.Send(c, []int{2}, 1, 2); err != nil {
				t.Fatal(err)
			}
			if err := mpi.WaitAll(reqs...); err != nil || got[0] != 3 {
				t.Errorf("the next receive has %v, error %v", got, err)
			}
			return
		}
		if _, err := mpi.Recv(c, got, 0, 2); err != nil {
			t.Fatal(err)
		}
		if err := mpi.Send(c, []int{3}, 0, 1); err != nil {
			t.Fatal(err)
		}
		// The send of Sendrecv may have begun before the context was looked at. Its message
		// would have arrived before the one with tag 2.
		m, _, ok, err := c.Improbe(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			if _, err := mpi.Mrecv(m, got); err != nil || got[0] != 1 {
				t.Errorf("the message of Sendrecv is %v, error %v", got, err)
			}
		}
	})
}
