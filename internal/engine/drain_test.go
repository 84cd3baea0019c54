package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/muster-mpi/muster/internal/p2p"
)

// shareCores is the configuration of ranks that outnumber the cores.
func shareCores(_ int, c *Config) { c.Oversubscribed, c.Spin = true, 2 }

// endlessPolls is more than any driver polls before it yields or checks its context.
const endlessPolls = 100 * drainPolls

// yields returns how often waits of a rank have yielded.
func (w *world) yields(rank int) (n uint64) {
	w.locked(rank, func(e *Held) { n = e.waits.stats.yields })
	return n
}

// A driver takes everything that has arrived, on all lanes and with one completion per
// poll, before it yields the core.
func TestDriverDrainsBeforeYield(t *testing.T) {
	const messages = 20 // from each peer
	testWorld(t, 3, []int{0, 0, 1}, shareCores, func(t *testing.T, w *world) {
		e, c := w.ranks[0], &w.comms[0]
		var ops []Op
		for from := 1; from <= 2; from++ {
			w.cqs[0][from-1].most = 1
			for tag := range int32(messages) {
				ops = append(ops, e.Irecv(c, from, int32(from), tag, make([]byte, 1)))
				w.send(from, 0, tag, "x")
			}
		}
		if err := e.WaitSome(NoContext, c, "Waitall", ops, len(ops)); err != nil {
			t.Fatal(err)
		}
		if n := w.yields(0); n != 0 {
			t.Errorf("%d yields while messages were waiting", n)
		}
		if home, net := w.cqs[0][0].polls, w.cqs[0][1].polls; home > messages+1 || net > messages+1 {
			t.Errorf("%d and %d polls for %d messages on each lane", home, net, messages)
		}
	})
}

// Packets that the device has not accepted leave during the drain, as the device gets
// room for them.
func TestDrainSendsBlockedPackets(t *testing.T) {
	testWorld(t, 2, nil, shareCores, func(t *testing.T, w *world) {
		w.connect(0, 1)
		e, c := w.ranks[0], &w.comms[0]
		for len(e.held.links.blocked) == 0 {
			e.Isend(c, 1, 5, make([]byte, 8), p2p.Standard)
		}
		op := e.Irecv(c, 1, 1, 0, make([]byte, 1))
		events := 0
		w.cqs[0][0].script = func() bool {
			if events++; events == 1 {
				w.ranks[1].Progress() // the peer takes what it has: the device has room again
			}
			if events == 3 && len(e.held.links.blocked) > 0 {
				t.Error("the packets are still blocked after two polls")
			}
			return events < drainPolls/2
		}
		w.send(1, 0, 0, "x")
		if err := e.WaitSome(NoContext, c, "Waitall", []Op{op}, 1); err != nil {
			t.Fatal(err)
		}
		if n := w.yields(0); n != 0 {
			t.Errorf("%d yields during the drain", n)
		}
	})
}

// A driver under endless traffic still yields to other ranks now and then.
func TestDrainYieldsNowAndThen(t *testing.T) {
	testWorld(t, 2, nil, shareCores, func(t *testing.T, w *world) {
		e, c := w.ranks[0], &w.comms[0]
		op := e.Irecv(c, 1, 1, 0, make([]byte, 1))
		w.send(1, 0, 0, "x")
		home := w.cqs[0][0]
		home.script = func() bool { return home.polls < endlessPolls }
		if err := e.WaitSome(NoContext, c, "Waitall", []Op{op}, 1); err != nil {
			t.Fatal(err)
		}
		if n := w.yields(0); n < endlessPolls/drainPolls-1 {
			t.Errorf("%d yields in %d polls", n, endlessPolls)
		}
	})
}

// A goroutine that wants the lock gets it during a drain.
func TestDrainGivesUpLock(t *testing.T) {
	testWorld(t, 2, nil, shareCores, func(t *testing.T, w *world) {
		e, c := w.ranks[0], &w.comms[0]
		op := e.Irecv(c, 1, 1, 0, make([]byte, 1))
		home, wanted, got := w.cqs[0][0], 0, 0
		home.script = func() bool {
			if home.polls == 1 {
				go func() {
					e.lock()
					got = home.polls
					e.held.unlock()
				}()
			}
			if wanted == 0 && e.held.mu.wanted.Load() != 0 {
				wanted = home.polls
			}
			return got == 0 && home.polls < 1<<24 // the goroutine may start late
		}
		w.send(1, 0, 0, "x")
		if err := e.WaitSome(NoContext, c, "Waitall", []Op{op}, 1); err != nil {
			t.Fatal(err)
		}
		if got == 0 || wanted != 0 && got > wanted+2 {
			t.Errorf("another goroutine wanted the lock at poll %d and got it at %d", wanted, got)
		}
	})
}

// Endless traffic does not delay the end of a context.
func TestDrainChecksContext(t *testing.T) {
	for _, configure := range []func(int, *Config){nil, shareCores} {
		testWorld(t, 2, nil, configure, func(t *testing.T, w *world) {
			ctx, cancel := context.WithCancel(t.Context())
			home, ends := w.cqs[0][0], 10
			home.script = func() bool {
				if home.polls == ends {
					cancel()
				}
				return home.polls < endlessPolls
			}
			e, c := w.ranks[0], &w.comms[0]
			op := e.Irecv(c, 1, 1, 0, make([]byte, 1))
			if err := e.WaitSome(ctx, c, "Waitall", []Op{op}, 1); !errors.Is(err, ErrGaveUp) {
				t.Fatal(err)
			}
			if home.polls > ends+2 {
				t.Errorf("the context ended at poll %d and the wait at poll %d", ends, home.polls)
			}
			home.script = nil
			w.send(1, 0, 0, "x")
			if _, err := e.Wait(NoContext, c, "Wait", op); err != nil {
				t.Error(err)
			}
		})
	}
}
