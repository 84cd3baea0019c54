package mpi_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// All ways to complete a request of Isendrecv, with messages on both sides of all
// thresholds. Rank 0 receives late, so that its peer's send is under way for a while.
func TestIsendrecv(t *testing.T) {
	complete := map[string]func(r mpi.Request) (mpi.Status, error){
		"Wait": mpi.Request.Wait,
		"Test": func(r mpi.Request) (st mpi.Status, err error) {
			for done := false; !done; {
				st, done, err = r.Test()
			}
			return st, err
		},
		"WaitContext":  func(r mpi.Request) (mpi.Status, error) { return r.WaitContext(context.Background()) },
		"WaitOrCancel": func(r mpi.Request) (mpi.Status, error) { return r.WaitOrCancel(context.Background()) },
		"WaitSome": func(r mpi.Request) (mpi.Status, error) {
			done, err := mpi.WaitSome(mpi.Request{}, r)
			return done[0].Status, err
		},
		"Completions": func(r mpi.Request) (st mpi.Status, err error) {
			for done, e := range mpi.Completions(context.Background(), []mpi.Request{r, {}}) {
				st, err = done.Status, errors.Join(err, e)
			}
			return st, err
		},
		"WaitAny": func(r mpi.Request) (mpi.Status, error) {
			_, st, err := mpi.WaitAny(r)
			return st, err
		},
		"TestSome": func(r mpi.Request) (mpi.Status, error) {
			for {
				if done, err := mpi.TestSome(r); len(done) > 0 {
					return done[0].Status, err
				}
			}
		},
	}
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		peer := 1 - c.Rank()
		for _, size := range thresholds {
			for _, name := range sortedNames(complete) {
				whole, in := guarded(size)
				barrier(t, c)
				r := mpi.Isendrecv(c, pattern(size, c.Rank()), peer, 3, in, peer, 3)
				st, err := complete[name](r)
				noError(t, err, name)
				if st.Source != peer || st.Tag != 3 || st.Bytes != size {
					t.Fatalf("%s: %d bytes: %+v", name, size, st)
				}
				wantPattern(t, in, peer, name)
				wantGuards(t, whole, size, name)
			}
			buf := pattern(size, c.Rank())
			st, err := mpi.IsendrecvReplace(c, buf, peer, 4, mpi.AnySource, 4).Wait()
			noError(t, err, "IsendrecvReplace")
			if st.Source != peer || st.Bytes != size {
				t.Fatalf("IsendrecvReplace: %d bytes: %+v", size, st)
			}
			wantPattern(t, buf, peer, "IsendrecvReplace")
		}
	})
}

// A context that ends completes neither message, and invalid arguments send nothing.
func TestIsendrecvEndsEarly(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		peer := 1 - c.Rank()
		in := make([]int, 1<<17)
		wantClass(t, waitErr(mpi.Isendrecv(c, in, peer, 1, in, 5, 1)), mpi.ErrRank, "a source that does not exist")
		if c.Rank() == 1 { // the message of rank 0 may be there; it must not be lost
			_, err := c.Probe(0, 1)
			noError(t, err, "Probe")
		}
		wantClass(t, waitErr(mpi.Isendrecv(c, in, 5, 1, in, peer, 1)), mpi.ErrRank, "a destination that does not exist")
		wantClass(t, second(mpi.Sendrecv(c, in, 5, 1, in, peer, 1)), mpi.ErrRank, "a destination that does not exist")
		if c.Rank() == 0 {
			out := make([]int, len(in))
			out[len(out)-1] = 7
			r := mpi.Isendrecv(c, out, 1, 1, in, 1, 1)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := r.WaitContext(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Wait with an ended context: %v", err)
			}
			barrier(t, c)
			st, err := r.Wait()
			noError(t, err, "Wait")
			if st.Source != 1 || in[len(in)-1] != 8 {
				t.Errorf("received %d with %+v", in[len(in)-1], st)
			}
			return
		}
		barrier(t, c)
		_, err := mpi.Recv(c, in, 0, 1)
		noError(t, err, "Recv")
		in[len(in)-1]++
		noError(t, mpi.Send(c, in, 0, 1), "Send")
	})
}

// answerOnSignal is the peer of an Isendrecv of rank 0: it receives the message, and sends
// the other one when rank 0 allows it.
func answerOnSignal(t *testing.T, c *mpi.Comm, out, in []int) {
	t.Helper()
	_, err := mpi.Recv(c, in, 0, 1)
	noError(t, err, "Recv")
	_, err = mpi.Recv(c, in[:1], 0, 2)
	noError(t, err, "Recv")
	noError(t, mpi.Send(c, out, 0, 1), "Send")
}

// A context that ends after the send, while the receive is under way, completes neither: a
// message that was lost here would be one of the next Wait.
func TestIsendrecvGivesUpOnReceive(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		peer := 1 - c.Rank()
		out, in := make([]int, 1<<17), make([]int, 1<<17)
		if c.Rank() == 1 {
			out[len(out)-1] = 8
			answerOnSignal(t, c, out, in)
			return
		}
		r := mpi.Isendrecv(c, out, peer, 1, in, peer, 1)
		for ways := range 3 {
			// The send completes at some time during these attempts; the receive does not.
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			var err error
			switch ways {
			case 0:
				_, err = r.WaitContext(ctx)
			case 1:
				for _, err = range mpi.Completions(ctx, []mpi.Request{r}) {
					break
				}
			default:
				_, err = r.WaitContext(ctx)
			}
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("attempt %d: Wait with a context that ends: %v", ways, err)
			}
		}
		noError(t, mpi.Send(c, out[:1], peer, 2), "Send")
		st, err := r.Wait()
		noError(t, err, "Wait")
		if st.Source != peer || in[len(in)-1] != 8 {
			t.Errorf("received %d with %+v", in[len(in)-1], st)
		}
	})
}

// A request that another goroutine waits for is not completed by the wait that is refused.
func TestIsendrecvWaitedForTwice(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		out, in := make([]int, 1<<17), make([]int, 1<<17)
		if c.Rank() == 1 {
			answerOnSignal(t, c, out, in)
			return
		}
		r := mpi.Isendrecv(c, out, 1, 1, in, 1, 1)
		done := make(chan error)
		go func() {
			err := waitErr(r)
			for err != nil && strings.Contains(err.Error(), "another goroutine") {
				err = waitErr(r) // the other one was first
			}
			done <- err
		}()
		refused := mpi.Eventually(20*time.Second, func() bool {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := r.WaitContext(ctx)
			return errors.Is(err, mpi.ErrRequest)
		})
		if !refused {
			t.Error("two goroutines can wait for a request")
		}
		noError(t, mpi.Send(c, out[:1], 1, 2), "Send")
		noError(t, <-done, "Wait")
	})
}
