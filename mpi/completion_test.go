package mpi_test

// Wait and Test: one, any, some, all (MPI-4.1 section 3.7), with contexts, Cancel, and
// invalid uses of requests.

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// Each way to complete n receives returns every index once, with its status and data, and
// sets the request to Request{}.
func TestEveryWayToComplete(t *testing.T) {
	const n = 12
	type result struct {
		index int
		st    mpi.Status
	}
	one := func(i int, st mpi.Status) []result { return []result{{i, st}} }
	several := func(done []mpi.Completed) (out []result) {
		for _, d := range done {
			out = append(out, result{d.Index, d.Status})
		}
		return out
	}
	all := func(reqs []mpi.Request) (out []result) { // of calls that give no statuses
		for i := range reqs {
			out = append(out, result{i, mpi.Status{Tag: mpi.AnyTag}})
		}
		return out
	}
	ctx := context.Background()
	ways := []struct {
		name string
		step func(reqs []mpi.Request) ([]result, error)
	}{
		{"WaitAny", func(r []mpi.Request) ([]result, error) { i, st, err := mpi.WaitAny(r...); return one(i, st), err }},
		{"one of Completions", func(r []mpi.Request) ([]result, error) {
			for done, err := range mpi.Completions(ctx, r) {
				return one(done.Index, done.Status), err
			}
			return nil, nil
		}},
		{"WaitSome", func(r []mpi.Request) ([]result, error) { d, err := mpi.WaitSome(r...); return several(d), err }},
		{"Completions", func(r []mpi.Request) (out []result, err error) {
			for done, e := range mpi.Completions(ctx, r) {
				out, err = append(out, result{done.Index, done.Status}), errors.Join(err, e)
			}
			return out, err
		}},
		{"WaitAll", func(r []mpi.Request) ([]result, error) { err := mpi.WaitAll(r...); return all(r), err }},
		{"TestAny", func(r []mpi.Request) ([]result, error) {
			i, st, ok, err := mpi.TestAny(r...)
			if !ok {
				return nil, err
			}
			return one(i, st), err
		}},
		{"TestSome", func(r []mpi.Request) ([]result, error) { d, err := mpi.TestSome(r...); return several(d), err }},
		{"TestAll", func(r []mpi.Request) ([]result, error) {
			ok, err := mpi.TestAll(r...)
			if !ok {
				return nil, err
			}
			return all(r), err
		}},
		{"Test", func(r []mpi.Request) (out []result, err error) {
			for i := range r {
				if !r[i].Active() {
					continue
				}
				if st, ok, e := r[i].Test(); ok {
					out, err = append(out, result{i, st}), errors.Join(err, e)
					r[i] = mpi.Request{}
				}
			}
			return out, err
		}},
		{"Done, then Wait", func(r []mpi.Request) (out []result, err error) {
			for i := range r {
				if r[i].Active() && r[i].Done() {
					st, e := r[i].Wait()
					out, err = append(out, result{i, st}), errors.Join(err, e)
					r[i] = mpi.Request{}
				}
			}
			return out, err
		}},
	}
	mpitest.Sizes(t, []int{1, 2, 3}, func(t *testing.T, c *mpi.Comm) {
		next, prev := neighbors(c)
		for _, way := range ways {
			bufs, reqs := make([][]byte, n), make([]mpi.Request, 2*n)
			size := func(i int) int { return []int{8, 0, 3000, 100000}[i%4] }
			for i := range n {
				bufs[i] = make([]byte, size(i))
				reqs[i] = mpi.Irecv(c, bufs[i], prev, i)
			}
			for i := range n { // sends take part too; short ones have ended already
				reqs[n+i] = mpi.Isend(c, pattern(size(n-1-i), n-1-i), next, n-1-i)
			}
			seen := make([]int, 2*n)
			deadline := time.Now().Add(20 * time.Second)
			for active := 2 * n; active > 0; {
				done, err := way.step(reqs)
				noError(t, err, way.name)
				for _, d := range done {
					if d.index < 0 || d.index >= 2*n {
						t.Fatalf("%s gives index %d with %d requests to go", way.name, d.index, active)
					}
					seen[d.index]++
					active--
					if i := d.index; i < n {
						if d.st.Tag != mpi.AnyTag && (d.st.Tag != i || d.st.Source != prev || d.st.Bytes != size(i)) {
							t.Fatalf("%s: status of receive %d is %+v", way.name, i, d.st)
						}
						wantPattern(t, bufs[i], i, fmt.Sprintf("%s: receive %d", way.name, i))
					}
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s has not completed %d requests after 20 s", way.name, active)
				}
			}
			if slices.Min(seen) != 1 || slices.Max(seen) != 1 {
				t.Fatalf("%s completed the requests %v times each, want once", way.name, seen)
			}
			for i, r := range reqs {
				if r != (mpi.Request{}) {
					t.Fatalf("%s left request %d in the slice", way.name, i)
				}
			}
			barrier(t, c)
		}
	})
}

// Without active requests, the calls return at once and report it.
func TestNothingToWaitFor(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		none := make([]mpi.Request, 3)
		for _, reqs := range [][]mpi.Request{nil, none} {
			if i, _, err := mpi.WaitAny(reqs...); i != mpi.Undefined || err != nil {
				t.Errorf("WaitAny of nothing gives %d, %v", i, err)
			}
			if i, _, ok, err := mpi.TestAny(reqs...); i != mpi.Undefined || !ok || err != nil {
				t.Errorf("TestAny of nothing gives %d, %v, %v", i, ok, err)
			}
			if d, err := mpi.WaitSome(reqs...); len(d) != 0 || err != nil {
				t.Errorf("WaitSome of nothing gives %v, %v", d, err)
			}
			if d, err := mpi.TestSome(reqs...); len(d) != 0 || err != nil {
				t.Errorf("TestSome of nothing gives %v, %v", d, err)
			}
			if err := mpi.WaitAll(reqs...); err != nil {
				t.Errorf("WaitAll of nothing gives %v", err)
			}
			if ok, err := mpi.TestAll(reqs...); !ok || err != nil {
				t.Errorf("TestAll of nothing gives %v, %v", ok, err)
			}
		}
		if st, err := (mpi.Request{}).Wait(); err != nil || st.Source != mpi.ProcNull {
			t.Errorf("Wait of nothing gives %+v, %v", st, err)
		}
	})
}

// A wait whose context ends does not affect the operation.
func TestWaitContextGivesUp(t *testing.T) {
	cause := errors.New("the user is tired")
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		if c.Rank() == 0 {
			barrier(t, c)
			for _, size := range []int{8, 200000} {
				noError(t, mpi.Send(c, pattern(size, 1), 1, size), "Send")
			}
			return
		}
		small, large := make([]byte, 8), make([]byte, 200000)
		r1, r2 := mpi.Irecv(c, small, 0, 8), mpi.Irecv(c, large, 0, 200000)
		reqs := []mpi.Request{r1, r2}

		late, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		begin := time.Now()
		_, err := r1.WaitContext(late)
		wantClass(t, err, mpi.ErrPending, "WaitContext with a deadline")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v does not say that the deadline passed", err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("WaitContext with a deadline of 20 ms took %v", took)
		}
		tired, quit := context.WithCancelCause(context.Background())
		time.AfterFunc(20*time.Millisecond, func() { quit(cause) })
		_, err = r2.WaitContext(tired)
		wantClass(t, err, mpi.ErrPending, "WaitContext cancelled with a cause")
		if !errors.Is(err, cause) {
			t.Errorf("error %v does not hold the cause of the context", err)
		}
		rounds := 0
		for done, err := range mpi.Completions(tired, reqs) {
			if rounds++; done.Index != mpi.Undefined || !errors.Is(err, mpi.ErrPending) {
				t.Errorf("Completions after the context ended give %d, %v", done.Index, err)
			}
		}
		if rounds != 1 {
			t.Errorf("Completions after the context ended give %d errors", rounds)
		}
		barrier(t, c)
		err = mpi.WaitAll(reqs...)
		noError(t, err, "WaitAll after giving up several times")
		wantPattern(t, small, 1, "short message")
		wantPattern(t, large, 1, "long message")
	})
}

// A WaitOrCancel whose context ends has not received: the message goes to the next receive,
// whenever it arrived.
func TestWaitOrCancelLosesNothing(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		const n = 300
		size := func(i int) int { return []int{8, 200, 20000, 150000}[i%4] }
		if c.Rank() == 0 {
			for i := range n {
				noError(t, mpi.Send(c, pattern(size(i), i), 1, 1), "Send")
				if i%7 == 0 {
					time.Sleep(300 * time.Microsecond) // lets the receiver's deadline pass at times
				}
			}
			return
		}
		gaveUp := 0
		buf := make([]byte, 150000)
		for i := 0; i < n; {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%5)*50*time.Microsecond)
			st, err := mpi.Irecv(c, buf, 0, 1).WaitOrCancel(ctx)
			cancel()
			if err != nil {
				wantClass(t, err, mpi.ErrPending, "WaitOrCancel")
				gaveUp++
				continue
			}
			if st.Bytes != size(i) {
				t.Fatalf("message %d has %d bytes, want %d: one was lost", i, st.Bytes, size(i))
			}
			wantPattern(t, buf[:st.Bytes], i, "message")
			i++
		}
		t.Logf("gave up %d times", gaveUp)
		if gaveUp == 0 {
			t.Error("no WaitOrCancel gave up; the test shows nothing")
		}
	})
}

func TestSendContext(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		large := pattern(1<<20, 3)
		if c.Rank() == 0 {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			long, synchronous := mpi.Isend(c, large, 1, 1), mpi.Issend(c, large[:8], 1, 2)
			wantClass(t, second(long.WaitContext(ctx)), mpi.ErrPending, "Isend without a receiver")
			wantClass(t, second(synchronous.WaitContext(ctx)), mpi.ErrPending, "Issend without a receiver")
			barrier(t, c)
			// The messages are still under way and are received.
			noError(t, second(mpi.Isend(c, large, 1, 3).WaitContext(context.Background())), "Isend")
			noError(t, mpi.WaitAll(long, synchronous), "WaitAll after giving up")
			return
		}
		barrier(t, c)
		in := make([]byte, 1<<20)
		for _, tag := range []int{1, 2, 3} {
			st, err := mpi.Recv(c, in, 0, tag)
			noError(t, err, "Recv")
			wantPattern(t, in[:st.Bytes], 3, fmt.Sprintf("message with tag %d", tag))
		}
	})
}

// Cancel cancels unmatched receives, and nothing else (MPI-4.1 section 3.8.4).
func TestCancel(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2}, func(t *testing.T, c *mpi.Comm) {
		peer := c.Size() - 1 - c.Rank()
		for _, from := range []int{peer, mpi.AnySource} {
			r := mpi.Irecv(c, make([]byte, 8), from, 1)
			if !r.Cancel() {
				t.Fatal("Cancel of a receive without a message says no")
			}
			st, err := r.Wait()
			noError(t, err, "Wait after Cancel")
			if !st.Cancelled {
				t.Errorf("status after Cancel is %+v, want Cancelled", st)
			}
			if r.Cancel() {
				t.Error("Cancel of a completed request says yes")
			}
		}
		// The message that comes later goes to the next receive.
		keep := make([]byte, 8)
		gone := mpi.Irecv(c, make([]byte, 8), peer, 1)
		stay := mpi.Irecv(c, keep, peer, 1)
		if !gone.Cancel() {
			t.Fatal("Cancel of the first of two receives says no")
		}
		barrier(t, c)
		s := mpi.Isend(c, pattern(8, 1), peer, 1)
		if s.Cancel() {
			t.Error("Cancel of a send says yes")
		}
		_, err := stay.Wait()
		noError(t, err, "the receive behind the cancelled one")
		wantPattern(t, keep, 1, "message behind a cancelled receive")
		if st, err := gone.Wait(); err != nil || !st.Cancelled {
			t.Errorf("cancelled receive gives %+v, %v", st, err)
		}
		noError(t, waitErr(s), "Isend")
		// A matched receive is not cancelled.
		s = mpi.Isend(c, pattern(100000, 2), peer, 2)
		in := make([]byte, 100000)
		_, err = c.Probe(peer, 2)
		noError(t, err, "Probe")
		r := mpi.Irecv(c, in, peer, 2)
		if r.Cancel() {
			t.Error("Cancel of a receive that has met its message says yes")
		}
		st, err := r.Wait()
		noError(t, err, "Wait after a Cancel in vain")
		if st.Cancelled {
			t.Error("status says Cancelled though the message came")
		}
		wantPattern(t, in, 2, "message after a Cancel in vain")
		noError(t, waitErr(s), "Isend")
	})
}

// The use of a completed request is an error, also when its slot has been reused by another
// operation.
func TestStaleRequest(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		buf := make([]byte, 8)
		r := mpi.Irecv(c, buf, 0, 1)
		noError(t, mpi.Send(c, buf, 0, 1), "Send to oneself")
		noError(t, waitErr(r), "first Wait")
		wantClass(t, waitErr(r), mpi.ErrRequest, "second Wait")
		other := mpi.Irecv(c, buf, 0, 2)
		wantClass(t, waitErr(r), mpi.ErrRequest, "Wait of a request whose place serves another")
		_, done, err := r.Test()
		wantClass(t, err, mpi.ErrRequest, "Test of a completed request")
		if !done || !r.Done() {
			t.Error("a completed request counts as not done")
		}
		if i, _, err := mpi.WaitAny(r, other); i != 0 || !errors.Is(err, mpi.ErrRequest) {
			t.Errorf("WaitAny with a completed request gives %d, %v", i, err)
		}
		if !other.Cancel() {
			t.Error("the other operation was disturbed")
		}
		noError(t, waitErr(other), "Wait of the other operation")
	})
}

// Two goroutines must not wait for one request; the second gets an error instead of
// hanging.
func TestTwoWaitersForOneRequest(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		for range 20 {
			buf := make([]byte, 8)
			r := mpi.Irecv(c, buf, 0, 1)
			errs := make(chan error, 2)
			for range 2 {
				go func() { errs <- waitErr(r) }()
			}
			first := <-errs
			wantClass(t, first, mpi.ErrRequest, "the second of two waiters")
			noError(t, mpi.Send(c, buf, 0, 1), "Send to oneself")
			noError(t, <-errs, "the first of two waiters")
		}
		// One waits and the other tests: one of them gets it.
		for range 20 {
			r := mpi.Irecv(c, make([]byte, 8), 0, 1)
			waited := make(chan error, 1)
			go func() { waited <- waitErr(r) }()
			runtime.Gosched()
			noError(t, mpi.Send(c, make([]byte, 8), 0, 1), "Send to oneself")
			_, done, err := r.Test()
			for !done {
				_, done, err = r.Test()
			}
			other := <-waited
			if (err == nil) == (other == nil) {
				t.Fatalf("Test gives %v and Wait %v; want one success and one ErrRequest", err, other)
			}
			wantClass(t, errors.Join(err, other), mpi.ErrRequest, "the loser of Test and Wait")
		}
	})
}

// WaitAll reports errors of single requests with their index, and the others complete.
func TestWaitAllJoinsErrors(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		in := make([]byte, 4)
		reqs := []mpi.Request{
			mpi.Irecv(c, in, 0, 1),
			mpi.Irecv(c, make([]byte, 1), 0, 2),
			mpi.Isend(c, in, 99, 1),
			mpi.Isend(c, []byte{1, 2, 3, 4}, 0, 1),
			mpi.Isend(c, []byte{1, 2}, 0, 2),
		}
		err := mpi.WaitAll(reqs...)
		wantClass(t, err, mpi.ErrTruncate, "WaitAll with a receive that is too short")
		if !errors.Is(err, mpi.ErrRank) {
			t.Errorf("error %v does not tell of the wrong rank", err)
		}
		if in[3] != 4 {
			t.Error("the receive beside the failed ones did not complete")
		}
	})
}
