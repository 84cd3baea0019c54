package engine

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
)

func withThread(_ int, c *Config) { c.Async = true }

const largeSize = 1 << 20

// large returns a message that travels by rendezvous.
func large() []byte { return bytes.Repeat([]byte("0123456789abcdef"), largeSize/16) }

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
			data, buf := large(), make([]byte, largeSize)
			var ops [2]Op
			steps := []func(){
				func() { ops[1] = w.ranks[1].Isend(&w.comms[1], 0, 0, data, p2p.Standard) },
				func() { ops[0] = w.ranks[0].Irecv(&w.comms[0], 1, 1, 0, buf) },
			}
			if receiverFirst {
				steps[0], steps[1] = steps[1], steps[0]
			}
			steps[0]()
			pass(soon)
			steps[1]()
			pass(soon)
			if !w.ranks[0].Done(ops[0]) {
				t.Errorf("receiver first %v: the receive is pending", receiverFirst)
			}
			if s := w.ranks[0].ProgressStats(); s.Duties == 0 || s.Wakes == 0 || s.Served == 0 {
				t.Errorf("receiver first %v: the progress thread of the receiver counts %+v", receiverFirst, s)
			}
			w.locked(0, func(e *Engine) {
				if e.driver != nil || e.thread.active.Load() {
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
			w.locked(0, func(e *Engine) {
				if got := e.threadDrives(); got != want || e.thread.active.Load() != want || e.driver == nil {
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

// An open window keeps the progress thread active, also without Config.Async.
func TestWindowKeepsThreadActive(t *testing.T) {
	testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
		for _, n := range []int{1, 1, -1, -1} {
			w.locked(0, func(e *Engine) {
				e.countWindow(n)
				if got, want := e.threadDrives(), e.thread.windows > 0; got != want {
					t.Errorf("%d windows: the progress thread drives: %v", e.thread.windows, got)
				}
			})
			pass(soon)
		}
		if s := w.ranks[0].ProgressStats(); s.Duties != 1 {
			t.Errorf("the progress thread was activated %d times, want 1", s.Duties)
		}
	})
}

// Leaving and Close stop the progress thread, also while an operation is pending.
func TestThreadStops(t *testing.T) {
	testWorld(t, 2, nil, withThread, func(t *testing.T, w *world) {
		e := w.ranks[0]
		e.Irecv(&w.comms[0], 1, 1, 0, make([]byte, largeSize))
		synctest.Wait()
		done := e.thread.done
		for range 2 {
			e.Leaving()
			select {
			case <-done:
			default:
				t.Fatal("the progress thread runs after Leaving")
			}
		}
		e.Irecv(&w.comms[0], 1, 1, 1, make([]byte, largeSize))
		w.locked(0, func(e *Engine) {
			if e.threadDrives() {
				t.Error("a stopped progress thread drives")
			}
		})
	})
}
