package mpi_test

// Early receives of large messages: the receiver offers its buffer to the sender (T1 4.2).

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
)

// large is sent by rendezvous on every device.
const large = 300_000

// speculating is mpitest.Run with two ranks and speculation. A job must have been started
// with speculation.
func speculating(t *testing.T, fn func(t *testing.T, c *mpi.Comm)) {
	t.Helper()
	if !mpitest.Launched() {
		mpitest.RunConfig(t, 2, &mpi.Config{Advanced: mpi.Advanced{Speculate: "auto"}}, fn)
		return
	}
	if s := os.Getenv("MUSTER_SPECULATE"); s != "auto" {
		t.Skip("wants MUSTER_SPECULATE=auto")
	}
	mpitest.Run(t, 2, fn)
}

// meet opens the links between ranks 0 and 1, which early receives need.
func meet(t *testing.T, c *mpi.Comm) {
	t.Helper()
	_, err := mpi.Sendrecv(c, []byte{1}, 1-c.Rank(), 90, make([]byte, 1), 1-c.Rank(), 90)
	noError(t, err, "first contact")
}

func counts(t *testing.T, c *mpi.Comm) inspect.SpeculationStats {
	t.Helper()
	s, err := inspect.Speculation(c, 1-c.Rank())
	noError(t, err, "Speculation")
	return s
}

// The sender's call writes to a receive that was posted first.
func TestEarlyReceiveIsUsed(t *testing.T) {
	speculating(t, func(t *testing.T, c *mpi.Comm) {
		meet(t, c)
		before := counts(t, c)
		const rounds = 20
		word := make([]byte, 1)
		for i := range rounds {
			if c.Rank() == 0 {
				_, err := mpi.Recv(c, word, 1, 92)
				noError(t, err, "the word that the receive is there")
				noError(t, waitErr(mpi.Isend(c, pattern(large-i, i), 1, 91)), "Isend")
				continue
			}
			whole, in := guarded(large)
			r := mpi.Irecv(c, in, 0, 91)
			noError(t, mpi.Send(c, word, 0, 92), "the word")
			st, err := r.Wait()
			noError(t, err, "Wait")
			if st.Bytes != large-i || st.Source != 0 || st.Tag != 91 {
				t.Fatalf("round %d: status %+v", i, st)
			}
			wantPattern(t, in[:st.Bytes], i, fmt.Sprintf("message %d", i))
			wantGuards(t, whole, st.Bytes, "an early receive")
		}
		s := counts(t, c)
		if c.Rank() == 0 && s.Written-before.Written != rounds {
			t.Errorf("%d of %d messages were written at once: %+v", s.Written-before.Written, rounds, s)
		}
		if c.Rank() == 1 && (s.Used-before.Used != rounds || s.Wasted != before.Wasted) {
			t.Errorf("of %d offers, %d were used: %+v", rounds, s.Used-before.Used, s)
		}
	})
}

// Senders that are always first make the receiver stop its offers.
func TestWastedOffersStop(t *testing.T) {
	speculating(t, func(t *testing.T, c *mpi.Comm) {
		meet(t, c)
		before := counts(t, c)
		const rounds = 100
		for i := range rounds { // the receiver has room for more than comes
			if c.Rank() == 0 {
				_, err := mpi.Recv(c, make([]byte, 1), 1, 92)
				noError(t, err, "the word that the receive is there")
				noError(t, mpi.Send(c, pattern(100, i), 1, 93), "Send")
				continue
			}
			in := make([]byte, large)
			r := mpi.Irecv(c, in, 0, 93)
			noError(t, mpi.Send(c, []byte{1}, 0, 92), "the word")
			st, err := r.Wait()
			noError(t, err, "Wait")
			wantPattern(t, in[:st.Bytes], i, "a short message in a large buffer")
		}
		if s := counts(t, c); c.Rank() == 1 && (s.Offered-before.Offered > 4+rounds/32 || s.Withheld == before.Withheld) {
			t.Errorf("after %d wasted chances: %+v, before: %+v", rounds, s, before)
		}
	})
}

// Cancel of an early receive completes although no message arrives, and a later message
// goes to the next receive.
func TestCancelOfEarlyReceives(t *testing.T) {
	speculating(t, func(t *testing.T, c *mpi.Comm) {
		meet(t, c)
		for i := range 10 {
			if c.Rank() == 0 {
				barrier(t, c)
				noError(t, waitErr(mpi.Isend(c, pattern(large, i), 1, 94)), "Isend")
				barrier(t, c)
				continue
			}
			whole, first := guarded(large)
			in := make([]byte, large)
			gone, stay := mpi.Irecv(c, first, 0, 94), mpi.Irecv(c, in, 0, 94)
			if !gone.Cancel() {
				t.Fatal("Cancel of an early receive says no")
			}
			barrier(t, c) // the sender is not sooner
			st, err := gone.Wait()
			noError(t, err, "Wait after Cancel")
			if !st.Cancelled && st.Bytes != large {
				t.Fatalf("the cancelled receive: %+v", st)
			}
			if !st.Cancelled { // the message was sooner than the cancelling
				wantPattern(t, first, i, "the message")
				if !stay.Cancel() {
					t.Fatal("Cancel of the other receive says no")
				}
			} else {
				wantGuards(t, whole, 0, "a cancelled receive")
			}
			st2, err := stay.Wait()
			noError(t, err, "Wait for the other receive")
			if st2.Cancelled == st.Cancelled {
				t.Fatalf("one of two receives gets the message, but: %+v, %+v", st, st2)
			}
			if !st2.Cancelled {
				wantPattern(t, in, i, "the message behind a cancelled receive")
			}
			barrier(t, c)
		}
	})
}

// A receive whose context ends is cancelled in the same way.
func TestContextOfAReceiveBeforeAnEarlyOne(t *testing.T) {
	speculating(t, func(t *testing.T, c *mpi.Comm) {
		meet(t, c)
		if c.Rank() == 0 {
			barrier(t, c)
			noError(t, mpi.Send(c, pattern(large, 3), 1, 95), "Send")
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		in := make([]byte, large)
		behind := make(chan mpi.Request, 1)
		time.AfterFunc(5*time.Millisecond, func() { behind <- mpi.Irecv(c, in, 0, 95) })
		if _, err := mpi.Irecv(c, make([]byte, 10), 0, 95).WaitOrCancel(ctx); err == nil {
			t.Fatal("WaitOrCancel got a message that was not sent")
		}
		barrier(t, c)
		r := <-behind
		_, err := r.Wait()
		noError(t, err, "the receive behind")
		wantPattern(t, in, 3, "the message")
	})
}

// Large and small messages of few tags in both directions, with receives early and late,
// exact and with wildcards: each receive matches by MPI's rules.
func TestEarlyReceivesInAMix(t *testing.T) {
	speculating(t, func(t *testing.T, c *mpi.Comm) {
		meet(t, c)
		for round := range 30 {
			// Both ranks use the same random numbers.
			dice := rand.New(rand.NewPCG(uint64(round), 7))
			const messages = 12
			sizes, kinds := make([]int, messages), make([]int, messages)
			for i := range sizes {
				sizes[i] = []int{10, 5000, 70_000, large}[dice.IntN(4)]
				kinds[i] = dice.IntN(4)
			}
			late := dice.IntN(messages)
			peer := 1 - c.Rank()
			bufs := make([][]byte, messages)
			var recvs, sends []mpi.Request
			recv := func(i int) {
				bufs[i] = make([]byte, large)
				src, tag := peer, 96
				if kinds[i] == 0 {
					src = mpi.AnySource
				} else if kinds[i] == 1 {
					tag = mpi.AnyTag
				}
				recvs = append(recvs, mpi.Irecv(c, bufs[i], src, tag))
			}
			for i := range late {
				recv(i)
			}
			for i, n := range sizes {
				sends = append(sends, mpi.Isend(c, pattern(n, i), peer, 96))
			}
			for i := late; i < messages; i++ {
				recv(i)
			}
			for i, r := range recvs {
				st, err := r.Wait()
				noError(t, err, "receive")
				if st.Bytes != sizes[i] {
					t.Fatalf("round %d: receive %d got %d bytes, want %d", round, i, st.Bytes, sizes[i])
				}
				wantPattern(t, bufs[i][:st.Bytes], i, fmt.Sprintf("round %d, message %d", round, i))
			}
			noError(t, mpi.WaitAll(sends...), "sends")
			barrier(t, c)
		}
	})
}
