package engine

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
)

func withThread(_ int, c *Config) { c.Async = true }

// served makes the rank serve its network lane.
func served(_ int, c *Config) {
	for _, l := range c.Lanes {
		if !l.Local {
			l.Device.Attr().Served = true
		}
	}
}

const largeSize = 1 << 20

// large returns a message that travels by rendezvous.
func large() []byte { return bytes.Repeat([]byte("0123456789abcdef"), largeSize/16) }

// crossLarge sends a large message from rank 1 to rank 0 while neither application is in a
// call, and checks that it arrives.
func (w *world) crossLarge(receiverFirst bool) (data, buf []byte, ops [2]Op) {
	w.t.Helper()
	data, buf = large(), make([]byte, largeSize)
	steps := []func(){
		func() { ops[1] = w.ranks[1].Isend(&w.comms[1], 0, 0, data, p2p.Standard) },
		func() { ops[0] = w.ranks[0].Irecv(&w.comms[0], 1, 1, 0, buf) },
	}
	if receiverFirst {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		step()
		pass(soon)
	}
	if !w.ranks[0].Done(ops[0]) {
		w.t.Errorf("receiver first %v: the receive is pending", receiverFirst)
	}
	return data, buf, ops
}

// soon is more than the progress threads need for a large message in virtual time.
const soon = time.Second

// Short messages do not activate the progress thread.
func TestThreadIgnoresShortMessages(t *testing.T) {
	testWorld(t, 2, nil, withThread, func(t *testing.T, w *world) {
		op := w.ranks[0].Irecv(&w.comms[0], 1, 1, 0, make([]byte, 64))
		w.send(1, 0, 0, "short")
		pass(soon)
		if w.ranks[0].Done(op) {
			t.Error("the progress thread has received a short message")
		}
		if _, err := w.ranks[0].Wait(NoContext, &w.comms[0], "Wait", op); err != nil {
			t.Error(err)
		}
		for r, e := range w.ranks {
			if s := e.ProgressStats(); s != (ProgressStats{}) {
				t.Errorf("rank %d: the progress thread counts %+v", r, s)
			}
		}
	})
}

// A large message arrives while neither application calls the library, whichever side
// was first. The progress thread of the receiver is inactive afterwards. The sender sees
// the completion with its next poll: no peer waits for it.
func TestThreadCompletesLargeMessage(t *testing.T) {
	for _, receiverFirst := range []bool{false, true} {
		testWorld(t, 2, nil, withThread, func(t *testing.T, w *world) {
			data, buf, ops := w.crossLarge(receiverFirst)
			if s := w.ranks[0].ProgressStats(); s.Duties == 0 || s.Wakes == 0 || s.Served == 0 {
				t.Errorf("receiver first %v: the progress thread of the receiver counts %+v", receiverFirst, s)
			}
			w.locked(0, func(e *Held) {
				if e.waits.driver != nil || e.thread.serving.Load() {
					t.Error("the progress thread of the receiver is still active")
				}
			})
			for r, e := range w.ranks {
				if _, done, err := e.Test(ops[r]); !done || err != nil {
					t.Errorf("receiver first %v: rank %d: done %v, %v", receiverFirst, r, done, err)
				}
			}
			if !bytes.Equal(data, buf) {
				t.Error("the data differs")
			}
		})
	}
}

// Without a progress thread a large message needs calls of both applications.
func TestLargeMessageWithoutThread(t *testing.T) {
	testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
		data, buf := large(), make([]byte, largeSize)
		send := w.ranks[1].Isend(&w.comms[1], 0, 0, data, p2p.Standard)
		recv := w.ranks[0].Irecv(&w.comms[0], 1, 1, 0, buf)
		pass(soon)
		if w.ranks[0].Done(recv) && w.ranks[1].Done(send) {
			t.Error("the message has arrived without a call")
		}
		for i := 0; i < 1000 && !(w.ranks[0].Done(recv) && w.ranks[1].Done(send)); i++ {
			w.ranks[0].Progress()
			w.ranks[1].Progress()
		}
		if !w.ranks[0].Done(recv) || !w.ranks[1].Done(send) || !bytes.Equal(data, buf) {
			t.Error("Progress does not complete the message")
		}
	})
}

// A blocking call takes over from the progress thread, which resumes afterwards.
func TestBlockingCallTakesOver(t *testing.T) {
	testWorld(t, 2, nil, withThread, func(t *testing.T, w *world) {
		buf := make([]byte, largeSize)
		op := w.ranks[0].Irecv(&w.comms[0], 1, 1, 0, buf)
		synctest.Wait()
		driving := func(want bool, when string) {
			t.Helper()
			w.locked(0, func(e *Held) {
				if got := e.waits.driver == nil; got != want {
					t.Errorf("%s: the progress thread drives: %v, want %v", when, got, want)
				}
			})
		}
		driving(true, "with a large receive pending")
		ended := w.recv(0, 1, 1, make([]byte, 1))
		mustWait(t, "the short receive", ended)
		driving(false, "during a blocking call")
		w.send(1, 0, 1, "x")
		if err := mustEnd(t, "the short receive", ended); err != nil {
			t.Error(err)
		}
		driving(true, "after the blocking call")
		send := w.ranks[1].Isend(&w.comms[1], 0, 0, large(), p2p.Standard)
		pass(soon)
		if !w.ranks[0].Done(op) {
			t.Error("the resumed progress thread does not complete the large message")
		}
		if _, done, err := w.ranks[1].Test(send); !done || err != nil {
			t.Errorf("the send: done %v, %v", done, err)
		}
	})
}

// An open window keeps the thread ready, also without Config.Async: it serves what arrives
// while the application computes.
func TestWindowNeedsThread(t *testing.T) {
	testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
		for _, n := range []int{1, 1, -1, -1} {
			w.locked(0, func(e *Held) { e.countWindow(n) })
			w.locked(0, func(e *Held) {
				if got, want := e.awayTime() > 0, e.thread.windows > 0; got != want {
					t.Errorf("%d windows: the progress thread is needed: %v", e.thread.windows, got)
				}
			})
			pass(soon)
		}
	})
}

// Close stops the progress thread, also while an operation is pending.
func TestThreadStops(t *testing.T) {
	for _, configure := range []func(int, *Config){withThread, served} {
		testWorld(t, 2, nil, configure, func(t *testing.T, w *world) {
			e := w.ranks[0]
			e.Irecv(&w.comms[0], 1, 1, 0, make([]byte, largeSize))
			pass(soon)
			for range 2 {
				e.StopThread()
				select {
				case <-e.held.thread.done:
				default:
					t.Fatal("the progress thread runs after it was stopped")
				}
			}
			e.Irecv(&w.comms[0], 1, 1, 1, make([]byte, largeSize))
		})
	}
}

// On a device that the rank serves, a large message arrives while both applications compute,
// whichever side was first, and the thread does not wake up while the application keeps
// calling or has nothing to be served.
func TestThreadServes(t *testing.T) {
	for _, receiverFirst := range []bool{false, true} {
		testWorld(t, 2, nil, served, func(t *testing.T, w *world) {
			data, buf, ops := w.crossLarge(receiverFirst)
			for r, e := range w.ranks {
				if _, done, err := e.Test(ops[r]); !done || err != nil {
					t.Errorf("receiver first %v: rank %d: done %v, %v", receiverFirst, r, done, err)
				}
			}
			if !bytes.Equal(data, buf) {
				t.Error("the data differs")
			}
			pass(soon)
			before := w.ranks[0].ProgressStats()
			pass(time.Minute) // both compute
			for range 20 {    // and call blocking operations
				ended := w.recv(0, 1, 1, make([]byte, 1))
				w.send(1, 0, 1, "x")
				if err := mustEnd(t, "a short receive", ended); err != nil {
					t.Fatal(err)
				}
				pass(awayLater / 4)
			}
			if after := w.ranks[0].ProgressStats(); after.Wakes > before.Wakes+1 {
				t.Errorf("the thread woke up %d times while the application computed or called", after.Wakes-before.Wakes)
			}
		})
	}
}

// A thread that finds the application in a call leaves it alone: a call that waits ends its
// duty, and the end of another call decides when it begins.
func TestThreadLeavesCallsAlone(t *testing.T) {
	testWorld(t, 2, nil, served, func(t *testing.T, w *world) {
		e := w.ranks[0]
		e.Irecv(&w.comms[0], 1, 1, 0, make([]byte, largeSize))
		e.lock()
		pass(2 * awaySoon) // the alarm is due
		e.held.unlock()
		if s := e.ProgressStats(); s.Duties != 0 {
			t.Errorf("the thread has begun during a call: %+v", s)
		}
		pass(soon)
		if !e.held.thread.serving.Load() {
			t.Fatal("the thread does not serve an application that is away")
		}
		ended := w.recv(0, 1, 1, make([]byte, 1))
		mustWait(t, "the short receive", ended)
		if e.held.thread.serving.Load() {
			t.Error("the thread serves beside a call that waits")
		}
		w.send(1, 0, 1, "x")
		if err := mustEnd(t, "the short receive", ended); err != nil {
			t.Error(err)
		}
		pass(soon)
		if !e.held.thread.serving.Load() {
			t.Error("the thread does not serve after the call")
		}
	})
}

// The thread of a program that calls all the time and never polls, because its sends complete
// at once, polls in its place: acks, timers and connections of the device need it.
func TestThreadServesCallsThatDoNotPoll(t *testing.T) {
	testWorld(t, 2, nil, served, func(t *testing.T, w *world) {
		const sends = 40
		for range sends {
			w.send(1, 0, 1, "x")
			pass(awayLater / 4)
		}
		if s := w.ranks[1].ProgressStats(); s.Wakes < sends/8 || s.Wakes > sends {
			t.Errorf("in %v of short sends the thread polled %d times; it should every %v or so", sends*awayLater/4, s.Wakes, awayLater)
		}
	})
}

// Messages for an application that is away with nothing under way are taken a few at a time,
// and calls that find theirs put the thread off.
func TestThreadTakesArrivalsTogether(t *testing.T) {
	const messages, periods = 16, 10
	const apart, period = 75 * time.Microsecond, 6 * time.Millisecond
	testWorld(t, 2, nil, served, func(t *testing.T, w *world) {
		e := w.ranks[0]
		arrive := func() {
			for range messages {
				w.send(1, 0, 1, "x")
				pass(apart)
			}
		}
		pass(2 * awayLater)
		before := e.ProgressStats()
		arrive()
		pass(2 * awayLater)
		if wakes := e.ProgressStats().Wakes - before.Wakes; wakes == 0 || wakes > 5 {
			t.Errorf("the thread woke up %d times for %d messages within %v", wakes, messages, messages*apart)
		}
		before = e.ProgressStats()
		for range periods {
			for range messages {
				op := e.Irecv(&w.comms[0], 1, 1, 1, make([]byte, 8<<10))
				if _, done, err := e.Test(op); !done || err != nil {
					t.Fatalf("a message that has arrived: done %v, %v", done, err)
				}
			}
			arrive()
			pass(period - messages*apart)
		}
		if wakes := e.ProgressStats().Wakes - before.Wakes; wakes > 3 {
			t.Errorf("the thread woke up %d times while the application received every %v", wakes, period)
		}
	})
}

// A pause ends when a device needs its next poll, for example to retransmit.
func TestPauseHeedsTimers(t *testing.T) {
	testWorld(t, 2, nil, served, func(t *testing.T, w *world) {
		pass(soon)
		for _, timeout := range []time.Duration{arrivalPause / 4, time.Minute} {
			w.locked(0, func(e *Held) {
				if !e.pauseServing(timeout) {
					t.Fatal("no pause, though nothing is under way")
				}
				if got, want := time.Duration(e.thread.deadline.Load())-e.clock(), min(timeout, arrivalPause); got != want {
					t.Errorf("the next poll is due in %v: pause of %v, want %v", timeout, got, want)
				}
			})
		}
	})
}

// A receive that stays posted does not make each of the following calls set an alarm.
func TestPostedReceiveCostsCallsNothing(t *testing.T) {
	testWorld(t, 2, nil, served, func(t *testing.T, w *world) {
		w.ranks[0].Irecv(&w.comms[0], 1, 1, 0, make([]byte, largeSize))
		soon := func() (is bool) {
			w.locked(0, func(e *Held) { is = e.thread.soon })
			return is
		}
		if !soon() {
			t.Error("the receive has set no alarm")
		}
		for range 2 * soonReturns {
			ended := w.recv(0, 1, 1, make([]byte, 1))
			w.send(1, 0, 1, "x")
			if err := mustEnd(t, "a short receive", ended); err != nil {
				t.Fatal(err)
			}
		}
		if soon() {
			t.Error("each call still sets an alarm that the next one turns off")
		}
		w.ranks[0].Irecv(&w.comms[0], 1, 1, 2, make([]byte, largeSize))
		if !soon() {
			t.Error("another receive has set no alarm")
		}
	})
}

// While a driver is parked in home, the thread of a served network lane waits there for it.
func TestThreadWaitsForHome(t *testing.T) {
	testWorld(t, 3, []int{0, 0, 1}, served, func(t *testing.T, w *world) {
		for range 3 {
			ended := w.recv(0, 2, 1, make([]byte, 1))
			pass(time.Millisecond)
			w.send(2, 0, 1, "x")
			if err := mustEnd(t, "a receive over the network", ended); err != nil {
				t.Fatal(err)
			}
			pass(soon)
		}
	})
}
