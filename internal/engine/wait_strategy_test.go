package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// strategyHeld returns a rank with one lane whose waits poll spin times and yield twice.
func strategyHeld(spin int, shared bool) *Held {
	e := &Held{setup: setup{yields: 2, cfg: Config{Oversubscribed: shared}}}
	e.home.spin = spin
	e.lanes = []*lane{&e.home}
	return e
}

// A wait that polls a software network yields after few polls, unless nothing has come from
// there for long or the user has set the number of polls.
func TestPollsOfNetworkAreFew(t *testing.T) {
	served, memory := &rdma.Attr{Served: true}, &rdma.Attr{}
	for _, c := range []struct {
		cfg           Config
		memory, lanes int
	}{
		{Config{}, 1000, spinNetwork},
		{Config{Oversubscribed: true}, 2, 2},
		{Config{Spin: 70}, 70, 70},
	} {
		e := strategyHeld(c.cfg.pollsOf(memory), false)
		if got := e.pollsPerYield(); got != c.memory {
			t.Errorf("%+v: %d polls of shared memory alone, want %d", c.cfg, got, c.memory)
		}
		network := &lane{spin: c.cfg.pollsOf(served)}
		e.lanes = append(e.lanes, network)
		if got := e.pollsPerYield(); got != c.lanes {
			t.Errorf("%+v: %d polls with a network, want %d", c.cfg, got, c.lanes)
		}
		network.silence = silentAfter
		if got := e.pollsPerYield(); got != c.memory {
			t.Errorf("%+v: %d polls with a silent network, want %d", c.cfg, got, c.memory)
		}
	}
}

// The steps of a wait, poll by poll: f a poll with a result, - one without, w one without
// while another goroutine wants the lock. The steps are p to poll again, u to unlock, y to
// yield and s to sleep.
func TestStrategySteps(t *testing.T) {
	for _, c := range []struct {
		name        string
		shared      bool
		polls, want string
	}{
		{"nothing comes", false, "-------", "pppyyss"},
		{"a result restarts the wait", false, "-----f------", "pppyyppppyys"},
		{"with shared cores the waiter yields at once", true, "---f---", "ppppyys"},
		{"and polls on while something comes", true, "---fff--", "ppppppyy"},
		{"another goroutine gets the lock", false, "-w-f-", "puppp"},
		{"also while something comes", true, "fWWf-", "puupy"},
		{"also instead of sleep", false, "-----sw", "pppyysu"},
	} {
		e := strategyHeld(3, c.shared)
		s := e.newStrategy()
		var got []byte
		for _, p := range c.polls {
			got = append(got, "puys"[s.next(p == 'f' || p == 'W', p == 'w' || p == 'W')])
		}
		if string(got) != c.want {
			t.Errorf("%s: %s gives %s, want %s", c.name, c.polls, got, c.want)
		}
	}
}

// A waiter whose yield took long parks next, unless ranks share cores; a result makes it poll
// again.
func TestWaiterParksBesideComputation(t *testing.T) {
	for _, c := range []struct {
		shared bool
		yield  time.Duration
		want   waitStep
	}{
		{false, busyCore / 2, stepYield},
		{false, 2 * busyCore, stepPark},
		{true, 2 * busyCore, stepYield},
	} {
		testWorld(t, 1, nil, func(_ int, cfg *Config) { cfg.Oversubscribed = c.shared }, func(t *testing.T, w *world) {
			pass(time.Second)
			w.locked(0, func(e *Held) {
				s := e.newStrategy()
				s.idle = s.spin
				e.waitsLong(&s)
				s.polled = e.clock() - c.yield
				e.pause(&s, stepYield)
				if got := s.next(false, false); got != c.want {
					t.Errorf("shared cores %v: step %d after a yield of %v, want %d", c.shared, got, c.yield, c.want)
				}
				if got := s.next(true, false); got != stepPoll {
					t.Errorf("step %d after a result, want a poll", got)
				}
				e.endWait(&s)
			})
		})
	}
}

// A wait yields after drainPolls polls with a result, where ranks share cores.
func TestStrategyBoundsDrain(t *testing.T) {
	for _, shared := range []bool{false, true} {
		e := strategyHeld(3, shared)
		s := e.newStrategy()
		yields := 0
		for range 10 * drainPolls {
			if s.next(true, false) == stepYield {
				yields++
			}
		}
		if want := map[bool]int{false: 0, true: 10}[shared]; yields != want {
			t.Errorf("shared cores %v: %d yields in %d polls, want %d", shared, yields, 10*drainPolls, want)
		}
	}
}

// The counters of a wait: its time, its yields and parks, parks with blocked packets, and
// parks whose timeout found something to do.
func TestWaitCounters(t *testing.T) {
	testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
		stats := func() (s waitStats) {
			w.locked(0, func(e *Held) { s = e.waits.stats })
			return s
		}
		ended := w.recv(0, 1, 0, make([]byte, 1))
		mustWait(t, "the receive", ended)
		pass(parkIdle + parkIdle/2)
		w.send(1, 0, 0, "x")
		if err := mustEnd(t, "the receive", ended); err != nil {
			t.Fatal(err)
		}
		s := stats()
		if s.times != 1 || s.total != parkIdle+parkIdle/2 || s.yields == 0 || s.parks != 2 || s.late+s.blocked+s.stalls != 0 {
			t.Errorf("after one receive: %+v", s)
		}

		// A device that does not announce a message: the wait ends with the park.
		w.cqs[0][0].deaf = true
		ended = w.recv(0, 1, 0, make([]byte, 1))
		mustWait(t, "the receive", ended)
		w.send(1, 0, 0, "x")
		mustWait(t, "the receive", ended)
		pass(parkIdle)
		if err := mustEnd(t, "the receive", ended); err != nil {
			t.Fatal(err)
		}
		if n := stats().late; n != 1 {
			t.Errorf("%d late parks", n)
		}
		w.cqs[0][0].deaf = false

		w.connect(0, 1)
		for len(w.ranks[0].held.links.blocked) == 0 {
			w.ranks[0].Isend(&w.comms[0], 1, 5, make([]byte, 8), 0)
		}
		ended = w.recv(0, 1, 0, make([]byte, 1))
		mustWait(t, "the receive", ended)
		w.send(1, 0, 0, "x")
		if err := mustEnd(t, "the receive", ended); err != nil {
			t.Fatal(err)
		}
		if stats().blocked == 0 {
			t.Error("no park with blocked packets")
		}
	})
}

// The longest time between two polls, and those that are stalls.
func TestWaitGaps(t *testing.T) {
	var s waitStats
	for _, ms := range []time.Duration{1, 7, 5, 6} {
		s.gap(ms * time.Millisecond)
	}
	if s.longest != 7*time.Millisecond || s.stalls != 2 {
		t.Errorf("%+v", s)
	}
}

// Flushes of several goroutines end when nothing is pending at their rank.
func TestFlushedByRank(t *testing.T) {
	testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
		win := &heldWindow{e: &w.ranks[0].held}
		var ranks []int
		w.locked(0, func(e *Held) {
			for _, rank := range []int{1, 0, 1} {
				win.flushes = append(win.flushes, windowFlush{rank, e.m.New()})
			}
			all := slices.Clone(win.flushes)
			win.completeFlushes(1)
			for _, f := range all {
				if f.x.Done() {
					ranks = append(ranks, f.rank)
				}
				e.m.Free(f.x)
			}
		})
		if !slices.Equal(ranks, []int{1, 1}) || len(win.flushes) != 1 || win.flushes[0].rank != 0 {
			t.Errorf("flushes of ranks %v ended, %v are left", ranks, win.flushes)
		}
	})
}
