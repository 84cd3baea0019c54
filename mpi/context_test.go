package mpi_test

import (
	"context"
	"errors"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// TestContextVariants calls the blocking calls that take a context, with one
// that never ends.
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
				mpi.RsendContext(ctx, c, []int{1}, 1, 1),
				mpi.SendLayoutContext(ctx, c, []int{2, 0, 3}, layout, 1, 2),
				mpi.SendValueContext(ctx, c, "four", 1, 3),
				mpi.SendContext(ctx, c, []int{5}, 1, 4),
			}
			if err := errors.Join(send...); err != nil {
				t.Fatal(err)
			}
		} else {
			first := make([]int, 1)
			reqs, statuses := []mpi.Request{mpi.Irecv(c, first, 0, 1)}, make([]mpi.Status, 1)
			if err := mpi.Send(c, []int{0}, 0, 0); err != nil {
				t.Fatal(err)
			}
			if err := mpi.WaitAllIntoContext(ctx, reqs, statuses); err != nil || first[0] != 1 || statuses[0].Tag != 1 {
				t.Errorf("Rsend: %v, %+v, error %v", first, statuses[0], err)
			}
			spread := make([]int, 3)
			if _, err := mpi.RecvLayoutContext(ctx, c, spread, layout, 0, 2); err != nil || spread[0] != 2 || spread[2] != 3 {
				t.Errorf("SendLayout: %v, error %v", spread, err)
			}
			if v, _, err := mpi.RecvValueContext[string](ctx, c, 0, 3); err != nil || v != "four" {
				t.Errorf("SendValue: %q, error %v", v, err)
			}
			m, _, err := mpi.MprobeContext(ctx, c, 0, 4)
			if err != nil {
				t.Fatal(err)
			}
			if st, err := mpi.MrecvContext(ctx, m, first); err != nil || first[0] != 5 || st.Source != 0 {
				t.Errorf("Mrecv: %v, %+v, error %v", first, st, err)
			}
		}
		other, got := 1-c.Rank(), make([]int, 1)
		if _, err := mpi.SendrecvContext(ctx, c, []int{c.Rank()}, other, 5, got, other, 5); err != nil || got[0] != other {
			t.Errorf("Sendrecv: %v, error %v", got, err)
		}
		got[0] = c.Rank()
		if _, err := mpi.SendrecvReplaceContext(ctx, c, got, other, 6, other, 6); err != nil || got[0] != other {
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
			if _, err := mpi.SendrecvContext(ctx, c, []int{1}, 1, 0, got, 1, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("Sendrecv with an ended context: error %v", err)
			}
			reqs := []mpi.Request{mpi.Irecv(c, got, 1, 1)}
			if err := mpi.WaitAllIntoContext(ctx, reqs, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("WaitAllInto with an ended context: error %v", err)
			}
			if err := mpi.Send(c, []int{2}, 1, 2); err != nil {
				t.Fatal(err)
			}
			if err := mpi.WaitAllInto(reqs, nil); err != nil || got[0] != 3 {
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
