package engine

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/pmi"
)

// A receive without a message parks in the device and is shown on the board as waiting.
// The message ends the wait without a timeout.
func TestRecvParks(t *testing.T) {
	testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
		var buf [4]byte
		began := time.Now()
		ended := w.recv(0, 1, 7, buf[:])
		mustWait(t, "the receive", ended)
		w.locked(0, func(e *Held) {
			if e.waits.driver == nil || !e.waits.parked {
				t.Errorf("driver %v, parked %v", e.waits.driver != nil, e.waits.parked)
			}
		})
		board := w.ranks[0].held.board
		row := board.Row(0)
		if row.State != pmi.RowWaiting || row.Wait.Op != "Recv" || row.Wait.Peer != 1 || row.Wait.Tag != 7 || row.Wait.Sending {
			t.Errorf("the board shows %+v", row)
		}
		w.send(1, 0, 7, "data")
		if err := mustEnd(t, "the receive", ended); err != nil || string(buf[:]) != "data" {
			t.Errorf("received %q, %v", buf, err)
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("the message was noticed after %v", d)
		}
		if state := board.Row(0).State; state != pmi.RowRunning {
			t.Errorf("after the receive the board shows %v", state)
		}
		w.locked(0, func(e *Held) {
			if e.waits.driver != nil || e.waits.parked {
				t.Error("there is still a driver")
			}
		})
	})
}

// Of several waiting goroutines one drives and the others sleep. Whichever operation
// completes, one of the remaining goroutines drives.
func TestOneDriver(t *testing.T) {
	for _, order := range [][]int32{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
			var bufs [3][1]byte
			var ended [3]<-chan error
			for tag := range bufs {
				ended[tag] = w.recv(0, 1, int32(tag), bufs[tag][:])
				synctest.Wait()
			}
			for i, tag := range order {
				left := len(order) - i
				w.locked(0, func(e *Held) {
					if e.waits.driver == nil || e.countSleepers() != left-1 {
						t.Errorf("order %v: %d receives wait: driver %v, %d sleepers", order, left, e.waits.driver != nil, e.countSleepers())
					}
				})
				w.send(1, 0, tag, "x")
				if err := mustEnd(t, "the receive", ended[tag]); err != nil {
					t.Error(err)
				}
			}
			w.locked(0, func(e *Held) {
				if e.waits.driver != nil || e.waits.sleepers != nil {
					t.Errorf("order %v: driver %v, %d sleepers after the last receive", order, e.waits.driver != nil, e.countSleepers())
				}
			})
		})
	}
}

// A context ends the wait of the driver and of a sleeper at its deadline, and takes no
// message away from a later receive.
func TestWaitContext(t *testing.T) {
	testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
		began := time.Now()
		var ended []<-chan error
		for i := range 2 {
			ch := make(chan error, 1)
			ended = append(ended, ch)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*time.Second)
				defer cancel()
				e, c := w.ranks[0], &w.comms[0]
				op := e.Irecv(c, 1, 1, int32(i), make([]byte, 1))
				_, err := e.Wait(ctx, c, "Wait", op)
				e.Cancel(op)
				if st, end := e.Wait(NoContext, c, "Wait", op); !st.Cancelled || end != nil {
					t.Errorf("receive %d: cancelled, it ends with %+v, %v", i, st, end)
				}
				ch <- err
			}()
			synctest.Wait()
		}
		for i, ch := range ended {
			mustWait(t, "the receive", ch)
			pass(time.Second)
			err := mustEnd(t, "the receive", ch)
			if !errors.Is(err, ErrGaveUp) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("receive %d: %v", i, err)
			}
		}
		if d := time.Since(began); d != 2*time.Second {
			t.Errorf("the waits took %v", d)
		}
		var buf [1]byte
		w.send(1, 0, 0, "x")
		if err := mustEnd(t, "the second receive", w.recv(0, 1, 0, buf[:])); err != nil || buf[0] != 'x' {
			t.Errorf("received %q, %v", buf, err)
		}
	})
}

// A context that has ended still sees a message that has arrived.
func TestWaitEndedContext(t *testing.T) {
	testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
		w.send(1, 0, 0, "x")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e, c := w.ranks[0], &w.comms[0]
		if _, err := e.Wait(ctx, c, "Wait", e.Irecv(c, 1, 1, 0, make([]byte, 1))); err != nil {
			t.Error(err)
		}
	})
}

func TestWaitSome(t *testing.T) {
	testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
		e, c := w.ranks[0], &w.comms[0]
		ops := []Op{{}}
		for tag := range int32(3) {
			ops = append(ops, e.Irecv(c, 1, 1, tag, make([]byte, 1)))
		}
		ended := make(chan error, 1)
		go func() { ended <- e.WaitSome(NoContext, c, "Waitsome", ops, 3) }()
		mustWait(t, "WaitSome", ended)
		w.send(1, 0, 2, "x")
		mustWait(t, "WaitSome for 3 of 2", ended)
		w.send(1, 0, 0, "x")
		if err := mustEnd(t, "WaitSome", ended); err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{true, true, false, true} {
			if _, done, err := e.Test(ops[i]); done != want || err != nil {
				t.Errorf("operation %d: done %v, %v; want %v", i, done, err, want)
			}
		}
		w.send(1, 0, 1, "x")
		if _, err := e.Wait(NoContext, c, "Wait", ops[2]); err != nil {
			t.Error(err)
		}
	})
}

// An operation has one waiter and completes once.
func TestWaitOnce(t *testing.T) {
	testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
		e, c := w.ranks[0], &w.comms[0]
		op := e.Irecv(c, 1, 1, 0, make([]byte, 1))
		ended := make(chan error, 1)
		go func() {
			_, err := e.Wait(NoContext, c, "Wait", op)
			ended <- err
		}()
		mustWait(t, "Wait", ended)
		if _, err := e.Wait(NoContext, c, "Wait", op); !errors.Is(err, ErrShared) {
			t.Errorf("a second waiter gets %v", err)
		}
		w.send(1, 0, 0, "x")
		if err := mustEnd(t, "Wait", ended); err != nil {
			t.Error(err)
		}
		if _, err := e.Wait(NoContext, c, "Wait", op); !errors.Is(err, ErrStale) {
			t.Errorf("a second Wait returns %v", err)
		}
		if _, done, err := e.Test(op); !done || !errors.Is(err, ErrStale) {
			t.Errorf("Test after Wait returns %v, %v", done, err)
		}
	})
}

// A driver parks for long while only a message can end the wait, and briefly while
// packets wait for room in the device.
func TestParkTimeout(t *testing.T) {
	testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
		ended := w.recv(0, 1, 0, make([]byte, 1))
		mustWait(t, "the receive", ended)
		home := w.cqs[0][0]
		if !slices.Equal(home.waits, []time.Duration{parkIdle}) {
			t.Errorf("an idle driver parks for %v", home.waits)
		}
		w.send(1, 0, 0, "x")
		if err := mustEnd(t, "the receive", ended); err != nil {
			t.Fatal(err)
		}
		var ops []Op
		for len(w.ranks[0].held.links.blocked) == 0 && len(ops) < 1000 {
			if op := w.ranks[0].Isend(&w.comms[0], 1, 5, make([]byte, 8), p2p.Standard); op.Active() {
				ops = append(ops, op)
			}
		}
		home.waits = nil
		ended = w.recv(0, 1, 0, make([]byte, 1))
		mustWait(t, "the receive", ended)
		if len(home.waits) == 0 || home.waits[0] != parkBlocked {
			t.Errorf("with blocked packets the driver parks for %v", home.waits)
		}
		w.send(1, 0, 0, "x")
		if err := mustEnd(t, "the receive", ended); err != nil {
			t.Fatal(err)
		}
	})
}

// A death on the board ends a wait within one park.
func TestDeathEndsWait(t *testing.T) {
	testWorld(t, 3, nil, nil, func(t *testing.T, w *world) {
		driver := w.recv(0, 1, 0, make([]byte, 1))
		synctest.Wait()
		sleeper := w.recv(0, 1, 1, make([]byte, 1))
		synctest.Wait()
		w.ranks[0].held.board.MarkDead(pmi.Death{Rank: 2, Host: "host", Status: "killed"})
		pass(parkIdle)
		for _, ended := range []<-chan error{driver, sleeper} {
			var dead *PeerDeadError
			if err := mustEnd(t, "the receive", ended); !errors.As(err, &dead) || dead.Rank != 2 {
				t.Errorf("the receive returns %v", err)
			}
		}
	})
}

// A goroutine that probes wakes up for any message, as the driver and beside one.
func TestProbeWakes(t *testing.T) {
	for _, beside := range []bool{false, true} {
		testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
			e, c := w.ranks[0], &w.comms[0]
			if beside {
				other := w.recv(0, 1, 9, make([]byte, 1))
				mustWait(t, "the receive", other)
				defer func() {
					w.send(1, 0, 9, "x")
					if err := mustEnd(t, "the receive", other); err != nil {
						t.Error(err)
					}
				}()
			}
			ended := make(chan error, 1)
			go func() {
				_, _, err := e.AwaitProbe(NoContext, c, "Probe", 1, 1, 3, false)
				ended <- err
			}()
			mustWait(t, "the probe", ended)
			w.send(1, 0, 2, "another tag")
			mustWait(t, "the probe", ended)
			w.send(1, 0, 3, "x")
			if err := mustEnd(t, "the probe", ended); err != nil {
				t.Error(err)
			}
			for _, tag := range []int32{2, 3} {
				if err := mustEnd(t, "the receive", w.recv(0, 1, tag, make([]byte, 16))); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A context ends a probe, as the driver and beside one.
func TestProbeContext(t *testing.T) {
	testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
		var ended []<-chan error
		for i := range 2 {
			ch := make(chan error, 1)
			ended = append(ended, ch)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*time.Second)
				defer cancel()
				_, _, err := w.ranks[0].AwaitProbe(ctx, &w.comms[0], "Probe", 1, 1, 3, false)
				ch <- err
			}()
			synctest.Wait()
		}
		if row := w.ranks[0].held.board.Row(0); row.State != pmi.RowWaiting || row.Wait.Op != "Probe" || row.Wait.Peer != 1 || row.Wait.Tag != 3 {
			t.Errorf("the board shows %+v", row)
		}
		for i, ch := range ended {
			mustWait(t, "the probe", ch)
			pass(time.Second)
			if err := mustEnd(t, "the probe", ch); !errors.Is(err, ErrGaveUp) {
				t.Errorf("probe %d: %v", i, err)
			}
		}
	})
}

// PollOnce tells its caller to sleep after it has spun and yielded, and reports failures.
func TestPollOnce(t *testing.T) {
	testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
		e := w.ranks[0]
		spin := e.held.pollsPerYield()
		for n, want := range map[int]bool{0: false, spin: false, spin + e.held.yields - 1: false, spin + e.held.yields: true} {
			if idle, err := e.PollOnce(&w.comms[0], "Barrier", n); idle != want || err != nil {
				t.Errorf("call %d: idle %v, %v; want %v", n, idle, err, want)
			}
		}
		var waited, later time.Duration
		var times uint64
		w.locked(0, func(e *Held) { waited = e.waits.stats.totalAt(e.clock()) })
		pass(time.Second)
		w.locked(0, func(e *Held) { later, times = e.waits.stats.totalAt(e.clock()), e.waits.stats.times })
		if later != waited || times != 1 {
			t.Errorf("outside of calls the time of waiting goes from %v to %v, of %d waits; want no change, of one wait", waited, later, times)
		}
		op := e.Irecv(&w.comms[0], 1, 1, 0, make([]byte, 1))
		w.send(1, 0, 0, "x")
		if _, err := e.PollOnce(&w.comms[0], "Barrier", 0); err != nil || !e.Done(op) {
			t.Errorf("the message is not received: %v", err)
		}
		cause := errors.New("broken")
		e.Fail(cause)
		if _, err := e.PollOnce(&w.comms[0], "Barrier", 0); !errors.Is(err, cause) {
			t.Errorf("after Fail: %v", err)
		}
	})
}

// With ShowWaits the board shows a wait that yields and does not park.
func TestShowWaits(t *testing.T) {
	config := func(_ int, c *Config) { c.ShowWaits, c.Spin, c.Yield = true, 2, 1<<30 }
	testWorld(t, 2, nil, config, func(t *testing.T, w *world) {
		board := w.ranks[0].held.board
		ended := w.recv(0, 1, 7, make([]byte, 1))
		for range 1_000_000 {
			if board.Row(0).State == pmi.RowWaiting {
				break
			}
			runtime.Gosched()
		}
		if row := board.Row(0); row.State != pmi.RowWaiting || row.Wait.Op != "Recv" || row.Wait.Peer != 1 || row.Wait.Tag != 7 {
			t.Errorf("the board shows %+v, want a Recv from 1 with tag 7", row)
		}
		w.send(1, 0, 7, "x")
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if row := board.Row(0); row.State != pmi.RowRunning {
			t.Errorf("after the wait the board shows %+v", row)
		}
		e := w.ranks[0]
		if _, err := e.PollOnce(&w.comms[0], "Barrier", e.held.pollsPerYield()); err != nil {
			t.Error(err)
		}
		if row := board.Row(0); row.State != pmi.RowWaiting || row.Wait.Op != "Barrier" {
			t.Errorf("after the first yield of PollOnce the board shows %+v, want Barrier", row)
		}
		e.ShowRunning()
	})
}
