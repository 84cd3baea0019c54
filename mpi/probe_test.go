package mpi_test

// Probe and matched probe (MPI-4.1 section 3.8).

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// Probe reports the message that Recv receives, for every protocol and kind of wildcard.
func TestProbeMatchesRecv(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		next, prev := neighbors(c)
		for round, size := range thresholds {
			tag := 11 + round
			s := mpi.Isend(c, pattern(size, 4), next, tag)
			for _, look := range []struct{ src, tag int }{
				{prev, tag}, {mpi.AnySource, tag}, {prev, mpi.AnyTag}, {mpi.AnySource, mpi.AnyTag},
			} {
				st, err := c.Probe(look.src, look.tag)
				noError(t, err, "Probe")
				if st.Source != prev || st.Tag != tag || st.Bytes != size {
					t.Fatalf("Probe(%d, %d) of a message of %d bytes tells %+v", look.src, look.tag, size, st)
				}
			}
			in := make([]byte, size)
			_, err := mpi.Recv(c, in, prev, tag)
			noError(t, err, "Recv after Probe")
			wantPattern(t, in, 4, fmt.Sprintf("probed message of %d bytes", size))
			noError(t, waitErr(s), "Isend")
			if _, ok, err := c.Iprobe(prev, tag); ok || err != nil {
				t.Fatalf("Iprobe after the message was received: %v, %v; want no message", ok, err)
			}
		}
	})
}

// A message matched by Mprobe is not visible to other receives and probes.
func TestMprobeSetsAside(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		next, prev := neighbors(c)
		for _, size := range thresholds {
			reqs := []mpi.Request{
				mpi.Isend(c, pattern(size, 1), next, 2),
				mpi.Isend(c, pattern(size, 2), next, 2),
				mpi.Isend(c, pattern(size, 3), next, 2),
			}
			m1, st, err := c.Mprobe(prev, mpi.AnyTag)
			noError(t, err, "Mprobe")
			if st.Bytes != size || st.Source != prev || st.Tag != 2 {
				t.Fatalf("Mprobe of %d bytes tells %+v", size, st)
			}
			m2 := improbe(t, c, mpi.AnySource, 2)
			in := make([]byte, size)
			_, err = mpi.Recv(c, in, prev, 2)
			noError(t, err, "Recv beside messages that were set aside")
			wantPattern(t, in, 3, "the message that nobody had set aside")
			_, err = mpi.Imrecv(m2, in).Wait()
			noError(t, err, "Imrecv")
			wantPattern(t, in, 2, "the message that was set aside second")
			st, err = mpi.Mrecv(m1, in)
			noError(t, err, "Mrecv")
			wantPattern(t, in, 1, "the message that was set aside first")
			if st.Bytes != size || st.Source != prev || st.Tag != 2 {
				t.Fatalf("Mrecv of %d bytes tells %+v", size, st)
			}
			_, err = mpi.Mrecv(m1, in)
			wantClass(t, err, mpi.ErrRequest, "Mrecv of a message that was received")
			err = mpi.WaitAll(reqs...)
			noError(t, err, "WaitAll of the sends")
		}
	})
}

func improbe(t *testing.T, c *mpi.Comm, src, tag int) *mpi.Message {
	t.Helper()
	for range 1_000_000 {
		m, _, ok, err := c.Improbe(src, tag)
		noError(t, err, "Improbe")
		if ok {
			return m
		}
	}
	t.Fatal("Improbe never sees a message that was sent")
	return nil
}

// Mrecv into a buffer that is too short.
func TestMrecvTruncates(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		for _, size := range []int{8, 5000, 100000} {
			s := mpi.Isend(c, pattern(size, 1), 0, 2)
			m, _, err := c.Mprobe(0, 2)
			noError(t, err, "Mprobe")
			whole, in := guarded(size / 2)
			_, err = mpi.Mrecv(m, in)
			wantClass(t, err, mpi.ErrTruncate, "Mrecv into half a buffer")
			wantPattern(t, in, 1, "first half")
			wantGuards(t, whole, size/2, "Mrecv into half a buffer")
			noError(t, waitErr(s), "Isend")
		}
	})
}

// Many goroutines probe and receive: each receives the message that it has probed, and no
// message is lost or received twice.
func TestManyGoroutinesMprobe(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 3}, func(t *testing.T, c *mpi.Comm) {
		const workers, messages = 8, 200
		total := messages * c.Size()
		var sends []mpi.Request
		for i := range messages {
			for dst := range c.Size() {
				size := 8 + []int{0, 100, 9000, 80000}[i%4] + i
				buf := pattern(size, i)
				sends = append(sends, mpi.Isend(c, buf, dst, i))
			}
		}
		var (
			mu   sync.Mutex
			seen = map[[2]int]int{}
			wg   sync.WaitGroup
			left = make(chan struct{}, total)
		)
		for range total {
			left <- struct{}{}
		}
		close(left)
		for range workers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range left {
					m, st, err := c.Mprobe(mpi.AnySource, mpi.AnyTag)
					if err != nil {
						t.Errorf("Mprobe: %v", err)
						return
					}
					in := make([]byte, st.Bytes)
					got, err := mpi.Mrecv(m, in)
					if err != nil || got != st {
						t.Errorf("Mrecv: %+v, %v; Mprobe had found %+v", got, err, st)
						return
					}
					want := pattern(st.Bytes, st.Tag)
					if string(want) != string(in) {
						t.Errorf("message of %d bytes with tag %d is damaged", st.Bytes, st.Tag)
					}
					mu.Lock()
					seen[[2]int{st.Source, st.Tag}]++
					mu.Unlock()
				}
			}()
		}
		wg.Wait()
		if len(seen) != total {
			t.Errorf("%d different messages were received, want %d", len(seen), total)
		}
		noError(t, mpi.WaitAll(sends...), "WaitAll of the sends")
	})
}

// Probe and a receive of another goroutine wait at the same time; each gets its message,
// whichever of them drives progress.
func TestProbeBesideReceive(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		for round := range 20 {
			if c.Rank() == 0 {
				// Real time, so that the waiting rank polls in some rounds and sleeps in others.
				time.Sleep(time.Duration(round%3) * 10 * time.Millisecond)
				noError(t, mpi.Send(c, []byte{1}, 1, 1+round%2), "first message")
				time.Sleep(time.Duration(round%4) * 5 * time.Millisecond)
				noError(t, mpi.Send(c, []byte{1}, 1, 2-round%2), "second message")
				continue
			}
			done := make(chan error, 1)
			go func() {
				_, err := mpi.Recv(c, make([]byte, 1), 0, 1)
				done <- err
			}()
			_, err := c.Probe(0, 2)
			noError(t, err, "Probe beside a receive")
			_, err = mpi.Recv(c, make([]byte, 1), 0, 2)
			noError(t, err, "Recv of what Probe found")
			noError(t, <-done, "Recv beside a probe")
		}
	})
}

func TestMessages(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2}, func(t *testing.T, c *mpi.Comm) {
		peer := c.Size() - 1 - c.Rank()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
		defer cancel()
		for _, err := range c.Messages(ctx, peer, 1) {
			wantClass(t, err, mpi.ErrPending, "Messages without a message")
		}
		barrier(t, c)
		s := mpi.Isend(c, []byte{9}, peer, 1)
		st, err := c.Probe(peer, 1)
		noError(t, err, "Probe")
		m, _, err := c.Mprobe(peer, 1)
		noError(t, err, "Mprobe")
		in := []byte{0}
		_, err = mpi.Mrecv(m, in)
		noError(t, err, "Mrecv")
		if in[0] != 9 || st.Bytes != 1 {
			t.Errorf("got %d and %+v", in[0], st)
		}
		noError(t, waitErr(s), "Isend")
		noError(t, mpi.Send(c, []int{1, 2, 3}, peer, 2), "Send")
		noError(t, mpi.SendValue(c, "end", peer, 3), "SendValue")
		for m, err := range c.Messages(t.Context(), peer, mpi.AnyTag) {
			noError(t, err, "Messages")
			if m.Status().Tag == 2 {
				got, st, err := mpi.MrecvSlice[int](m)
				noError(t, err, "MrecvSlice")
				if !slices.Equal(got, []int{1, 2, 3}) || st.Source != peer || st.Bytes != 24 {
					t.Errorf("got %v and %+v", got, st)
				}
				continue
			}
			v, _, err := mpi.MrecvValue[string](m)
			noError(t, err, "MrecvValue")
			if v != "end" {
				t.Errorf("got %q", v)
			}
			break
		}
	})
}

// A message of any length is received whole, and one of a part of an element reported.
func TestRecvSlice(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2}, func(t *testing.T, c *mpi.Comm) {
		next, prev := neighbors(c)
		for _, n := range thresholds {
			s := mpi.Isend(c, pattern(n, 1), next, 1)
			got, st, err := mpi.RecvSlice[byte](c, prev, 1)
			noError(t, err, "RecvSlice")
			if len(got) != n || st.Bytes != n || st.Source != prev || st.Tag != 1 {
				t.Fatalf("%d elements of %d, and %+v", len(got), n, st)
			}
			wantPattern(t, got, 1, "RecvSlice")
			noError(t, waitErr(s), "Isend")
		}
		if got, st, err := mpi.RecvSlice[int](c, mpi.ProcNull, 1); len(got) != 0 || st.Source != mpi.ProcNull || err != nil {
			t.Errorf("from ProcNull: %v, %+v, %v", got, st, err)
		}
		_, _, err := mpi.RecvSlice[string](c, prev, 1)
		wantClass(t, err, mpi.ErrType, "strings")
		if os.Getenv("MUSTER_CHECK") != "" {
			return // check mode reports the types first
		}
		s := mpi.Isend(c, make([]byte, 12), next, 2)
		_, st, err := mpi.RecvSlice[int64](c, prev, 2)
		wantClass(t, err, mpi.ErrType, "a message of one and a half elements")
		if st.Bytes != 12 {
			t.Errorf("the message has %d bytes, want 12", st.Bytes)
		}
		noError(t, waitErr(s), "Isend")
	})
}
