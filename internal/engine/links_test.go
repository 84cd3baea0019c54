package engine

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
)

// slowClient delays Get for the card of one rank.
type slowClient struct {
	pmi.Client
	rank    int
	release chan struct{} // closed when Get may return
	err     error         // that Get returns then
}

func (c *slowClient) Get(ctx context.Context, rank int, key string) ([]byte, error) {
	if rank == c.rank && key == cardKey {
		<-c.release
		if c.err != nil {
			return nil, c.err
		}
	}
	return c.Client.Get(ctx, rank, key)
}

// slowCard configures rank 0 so that the card of rank 2 takes until release.
func slowCard(err error) (slow *slowClient, configure func(int, *Config)) {
	slow = &slowClient{rank: 2, err: err}
	return slow, func(rank int, c *Config) {
		if rank == 0 {
			slow.release = make(chan struct{}) // in the bubble
			slow.Client, c.Client = c.Client, slow
		}
	}
}

// isend starts a send in a goroutine and waits for it. The channel gets its error.
func (w *world) isend(rank, to int, tag int32, data []byte) <-chan error {
	ended := make(chan error, 1)
	go func() {
		e, c := w.ranks[rank], &w.comms[rank]
		_, err := e.Wait(NoContext, c, "Wait", e.Isend(c, to, tag, data, p2p.Standard))
		ended <- err
	}()
	return ended
}

// While a rank waits for the card of a peer, its other goroutines exchange messages with
// peers that are connected. The messages to the new peer follow in order.
func TestSlowCardBlocksOnlyItsLink(t *testing.T) {
	slow, configure := slowCard(nil)
	testWorld(t, 3, nil, configure, func(t *testing.T, w *world) {
		w.send(0, 1, 0, "connect")
		e, c := w.ranks[0], &w.comms[0]
		first := w.isend(0, 2, 0, []byte("1"))
		synctest.Wait()
		ended := make(chan error, 1)
		go func() { ended <- e.Send(c, "Send", 2, 0, []byte("2"), p2p.Standard) }()
		mustWait(t, "the send to a peer without a card", ended)

		other := make(chan error, 1)
		go func() {
			if err := e.Send(c, "Send", 1, 1, []byte("x"), p2p.Standard); err != nil {
				other <- err
				return
			}
			_, err := e.Recv(c, "Recv", 1, 1, 1, make([]byte, 1))
			other <- err
		}()
		w.send(1, 0, 1, "x")
		if err := mustEnd(t, "the exchange with a connected peer", other); err != nil {
			t.Error(err)
		}
		mustWait(t, "the first send", first)

		began := time.Now()
		close(slow.release)
		for what, ended := range map[string]<-chan error{"the first send": first, "the second send": ended} {
			if err := mustEnd(t, what, ended); err != nil {
				t.Error(err)
			}
		}
		for _, want := range []string{"1", "2"} {
			var buf [1]byte
			if err := mustEnd(t, "the receive", w.recv(2, 0, 0, buf[:])); err != nil || string(buf[:]) != want {
				t.Errorf("received %q, %v; want %q", buf, err, want)
			}
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("the packets went after %v", d)
		}
		if n := e.CardsFetched(); n != 2 {
			t.Errorf("%d cards fetched", n)
		}
	})
}

// A message from the peer arrives while this rank waits for the peer's card.
func TestArrivalBeforeCard(t *testing.T) {
	slow, configure := slowCard(nil)
	testWorld(t, 3, nil, configure, func(t *testing.T, w *world) {
		sent := w.isend(0, 2, 0, large())
		synctest.Wait()
		w.send(2, 0, 0, "x")
		if err := mustEnd(t, "the receive", w.recv(0, 2, 0, make([]byte, 1))); err != nil {
			t.Error(err)
		}
		close(slow.release)
		ended := w.recv(2, 0, 0, make([]byte, largeSize))
		for what, ended := range map[string]<-chan error{"the send": sent, "the receive": ended} {
			if err := mustEnd(t, what, ended); err != nil {
				t.Error(err)
			}
		}
	})
}

// The end of a context ends a wait while another goroutine waits for a card.
func TestContextEndsWaitForCard(t *testing.T) {
	slow, configure := slowCard(nil)
	testWorld(t, 3, nil, configure, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		sent := w.isend(0, 2, 0, []byte("x"))
		mustWait(t, "the send", sent)
		ended := make(chan error, 1)
		go func() {
			e, c := w.ranks[0], &w.comms[0]
			_, err := e.Wait(ctx, c, "Wait", e.Irecv(c, 1, 1, 0, make([]byte, 1)))
			ended <- err
		}()
		mustWait(t, "the receive", ended)
		pass(time.Second)
		if err := mustEnd(t, "the receive", ended); !errors.Is(err, ErrGaveUp) {
			t.Errorf("the receive returns %v", err)
		}
		close(slow.release)
		if err := mustEnd(t, "the send", sent); err != nil {
			t.Error(err)
		}
	})
}

// Packets that no call of the application has posted go without one: here the reply of a
// progress thread.
func TestReplyOpensLink(t *testing.T) {
	testWorld(t, 2, nil, withThread, func(t *testing.T, w *world) {
		buf := make([]byte, largeSize)
		got := w.ranks[0].Irecv(&w.comms[0], 1, 1, 0, buf)
		sent := w.isend(1, 0, 0, large())
		pass(soon)
		if err := mustEnd(t, "the send", sent); err != nil {
			t.Error(err)
		}
		if _, err := w.ranks[0].Wait(NoContext, &w.comms[0], "Wait", got); err != nil {
			t.Error(err)
		}
	})
}

// A card that cannot be fetched fails the operations with that peer only.
func TestCardFails(t *testing.T) {
	slow, configure := slowCard(errors.New("no such value"))
	testWorld(t, 3, nil, configure, func(t *testing.T, w *world) {
		e, c := w.ranks[0], &w.comms[0]
		ended := make(chan error, 1)
		go func() { ended <- e.Send(c, "Send", 2, 0, []byte("x"), p2p.Standard) }()
		mustWait(t, "the send", ended)
		close(slow.release)
		if err := mustEnd(t, "the send", ended); err == nil || !strings.Contains(err.Error(), "fetch the address of rank 2: no such value") {
			t.Errorf("the send returns %v", err)
		}
		if err := e.Send(c, "Send", 2, 0, []byte("x"), p2p.Standard); err == nil {
			t.Error("a later send to the rank succeeds")
		}
		w.send(0, 1, 0, "x")
	})
}

// Close waits for the opener, and packets that wait for a card do not survive a failure.
func TestCloseWhileOpening(t *testing.T) {
	slow, configure := slowCard(nil)
	testWorld(t, 3, nil, configure, func(t *testing.T, w *world) {
		e := w.ranks[0]
		sent := w.isend(0, 2, 0, []byte("x"))
		synctest.Wait()
		cause := errors.New("lost")
		e.Fail(cause)
		closed := make(chan error, 1)
		go func() { closed <- e.Close() }()
		mustWait(t, "Close", closed)
		close(slow.release)
		if err := mustEnd(t, "Close", closed); err != nil {
			t.Error(err)
		}
		if err := mustEnd(t, "the send", sent); !errors.Is(err, cause) {
			t.Errorf("the send returns %v", err)
		}
		if l := e.held.links.byRank[2]; l.Open || len(l.Wait) != 0 {
			t.Errorf("open %v, %d packets wait", l.Open, len(l.Wait))
		}
	})
}

// closingDevice counts Close and can refuse completion queues.
type closingDevice struct {
	rdma.Device
	closed *atomic.Int32
	refuse bool
}

func (d *closingDevice) Close() error {
	d.closed.Add(1)
	return d.Device.Close()
}

func (d *closingDevice) NewCQ(depth int) (rdma.CQ, error) {
	if d.refuse {
		return nil, errors.New("no queue")
	}
	return d.Device.NewCQ(depth)
}

// failingClient has a launcher that fails.
type failingClient struct{ pmi.Client }

func (failingClient) Fence(context.Context) error { return errors.New("no fence") }

// New closes all devices if it fails: with the first or second lane, or with the launcher.
func TestNewClosesDevices(t *testing.T) {
	for _, bad := range []int{0, 1, 2} {
		synctest.Test(t, func(t *testing.T) {
			var closed atomic.Int32
			configure := func(_ int, c *Config) {
				for i := range c.Lanes {
					c.Lanes[i].Device = &closingDevice{Device: c.Lanes[i].Device, closed: &closed, refuse: i == bad}
				}
				c.Client = failingClient{c.Client}
			}
			newWorld(t, 2, []int{0, 1}, configure, func(rank int, err error) {
				if want := map[bool]string{true: "no queue", false: "no fence"}[bad < 2]; !strings.Contains(err.Error(), want) {
					t.Errorf("rank %d: New returns %v", rank, err)
				}
			})
			if n := closed.Load(); n != 4 {
				t.Errorf("lane %d fails: %d of 4 devices are closed", bad, n)
			}
		})
	}
}
