package engine

import (
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
)

// waitEarly configures a rank whose network device wants waiters to sleep at once, and whose
// other lane carries only messages to itself, as on the portable path.
func waitEarly(_ int, c *Config) {
	c.Lanes[0], c.Lanes[1] = c.Lanes[1], c.Lanes[0]
	c.Lanes[0].Device.Attr().WaitEarly = true
	c.Spin, c.Yield = 0, 0
}

func TestPollsBeforeParking(t *testing.T) {
	testWorld(t, 1, []int{0}, nil, func(t *testing.T, w *world) {
		lanes := w.ranks[0].held.cfg.Lanes
		for _, v := range []struct {
			early, shared      bool
			setSpin, setYields int
			spin, yields       int
		}{
			{spin: 1000, yields: 500},
			{shared: true, spin: 2, yields: 500},
			{early: true, spin: 1, yields: 0},
			{early: true, shared: true, spin: 1, yields: 0},
			{early: true, setSpin: 7, setYields: 9, spin: 7, yields: 9},
			{shared: true, setSpin: 7, setYields: 9, spin: 7, yields: 9},
		} {
			lanes[1].Device.Attr().WaitEarly = v.early
			cfg := Config{Lanes: lanes, Oversubscribed: v.shared, Spin: v.setSpin, Yield: v.setYields}
			if spin, yields := cfg.polls(); spin != v.spin || yields != v.yields {
				t.Errorf("%+v: %d polls and %d yields", v, spin, yields)
			}
		}
	})
}

// A wait that parks without yielding counts as a long one, so that it asks its peers.
func TestParkedAtOnce(t *testing.T) {
	testWorld(t, 2, []int{0, 1}, waitEarly, func(t *testing.T, w *world) {
		ended := w.recv(0, 1, 0, make([]byte, 1))
		mustWait(t, "the receive", ended)
		time.Sleep(parkIdle / 2)
		w.send(1, 0, 0, "x")
		if err := mustEnd(t, "the receive", ended); err != nil {
			t.Fatal(err)
		}
		w.locked(0, func(e *Held) {
			if s := e.waits.stats; s.times != 1 || s.total != parkIdle/2 || s.yields != 0 || s.parks == 0 {
				t.Errorf("after one receive: %+v", s)
			}
		})
	})
}

// A message to itself does not wait for the end of a park: not if the rank parks after few
// polls, most of which leave out a silent lane, nor if another goroutine is parked.
func TestMessageToItselfEndsPark(t *testing.T) {
	testWorld(t, 2, []int{0, 1}, waitEarly, func(t *testing.T, w *world) {
		e, c := w.ranks[0], &w.comms[0]
		if !e.held.lanes[1].alone {
			t.Fatal("the second lane must be one to the rank itself")
		}
		began := time.Now()
		for range 2 { // the first message connects the link, which ends a park too
			ended := w.recv(0, 0, 0, make([]byte, 1))
			mustWait(t, "the receive", ended)
			w.send(0, 0, 0, "x")
			if err := mustEnd(t, "the receive", ended); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 2 * silentEvery {
			op := e.Isend(c, 0, 0, []byte("x"), p2p.Synchronous)
			w.locked(0, func(e *Held) { e.lanes[1].silence = silentAfter + uint32(i) })
			if _, err := e.Recv(c, "Recv", Anyone, -1, 0, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Wait(NoContext, c, "Wait", op); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("messages of a rank to itself took %v", d)
		}
	})
}
