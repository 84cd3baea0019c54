package engine

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

func TestCard(t *testing.T) {
	testWorld(t, 2, []int{0, 1}, nil, func(t *testing.T, w *world) {
		e := w.ranks[0]
		card := string(e.held.card())
		for i, other := range []string{"net", "local"} {
			d := e.held.lanes[i]
			host, addr, others := readCard(card, d.attr.Name)
			if host != e.held.client.Host() || addr != d.qp.Addr() || !slices.Equal(others, []string{other}) {
				t.Errorf("%s on the card %q: host %q, address %q, others %q", d.attr.Name, card, host, addr, others)
			}
		}
		if _, addr, others := readCard(card, "verbs"); addr != "" || len(others) != 2 {
			t.Errorf("a device that is not on the card: address %q, others %q", addr, others)
		}
	})
}

// Ranks of the node are reached over the local lane, all others over the network.
func TestLaneTo(t *testing.T) {
	nodes := []int{0, 1, 0, 1, 0}
	testWorld(t, len(nodes), nodes, nil, func(t *testing.T, w *world) {
		for r, e := range w.ranks {
			for q := range nodes {
				want := e.held.lanes[1]
				if nodes[q] == nodes[r] {
					want = e.held.lanes[0]
				}
				if got := e.held.laneTo(q); got != want || e.Attr(q) != want.attr {
					t.Errorf("rank %d reaches rank %d over %s, want %s", r, q, got.attr.Name, want.attr.Name)
				}
			}
			for i, q := range ranksOn(nodes, nodes[r]) {
				if e.held.peerOf(q) != rdma.PeerID(i) || e.held.rankOf(rdma.PeerID(i)) != q {
					t.Errorf("rank %d: rank %d is peer %d, and peer %d is rank %d", r, q, e.held.peerOf(q), i, e.held.rankOf(rdma.PeerID(i)))
				}
			}
			if q := e.held.rankOf(3); q != -1 {
				t.Errorf("rank %d: peer 3 of the node is rank %d", r, q)
			}
		}
	})
}

// A receive from any source takes messages of both lanes.
func TestMessagesOverBothLanes(t *testing.T) {
	nodes := []int{0, 0, 1}
	testWorld(t, len(nodes), nodes, nil, func(t *testing.T, w *world) {
		for from := 1; from <= 2; from++ {
			var buf [8]byte
			ended := make(chan error, 1)
			go func() {
				st, err := w.ranks[0].Recv(&w.comms[0], "Recv", Anyone, -1, 0, buf[:])
				if st.Source != from {
					t.Errorf("the source is %d, want %d", st.Source, from)
				}
				ended <- err
			}()
			mustWait(t, "the receive", ended)
			began := time.Now()
			w.send(from, 0, 0, "message")
			if err := mustEnd(t, "the receive", ended); err != nil {
				t.Error(err)
			}
			if d := time.Since(began); d != 0 {
				t.Errorf("a message over %s wakes the rank after %v", w.ranks[0].held.lanes[from-1].attr.Name, d)
			}
			w.locked(0, func(e *Held) {
				if l := e.links.byRank[from]; l == nil || l.Dev != from-1 || l.Stats.Received != 1 {
					t.Errorf("the link to rank %d is %+v", from, l)
				}
			})
		}
		if n := w.ranks[0].CardsFetched(); n != 0 {
			t.Errorf("a rank that only receives has fetched %d cards", n)
		}
	})
}

// A rank on another host needs a network device that both ranks have.
func TestUnreachableRank(t *testing.T) {
	send := func(w *world) string {
		err := w.ranks[0].Send(&w.comms[0], "Send", 1, 0, []byte("x"), 0)
		if err == nil {
			return ""
		}
		return err.Error()
	}
	localOnly := func(_ int, c *Config) { c.Lanes = c.Lanes[:1] }
	testWorldWithoutResolve(t, []int{0, 1}, localOnly, func(t *testing.T, w *world) {
		if err := send(w); !strings.Contains(err, "no network device") {
			t.Errorf("without a network device: %q", err)
		}
	})
	oneNetwork := func(rank int, c *Config) {
		if rank == 1 {
			c.Lanes = c.Lanes[:1]
		}
	}
	testWorldWithoutResolve(t, []int{0, 1}, oneNetwork, func(t *testing.T, w *world) {
		if err := send(w); !strings.Contains(err, "it has no such device, only local") {
			t.Errorf("to a rank without the device: %q", err)
		}
	})
}

func testWorldWithoutResolve(t *testing.T, nodes []int, configure func(int, *Config), fn func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, len(nodes), nodes, configure)
		defer w.close()
		fn(t, w)
	})
}

// A lane without traffic is polled seldom, until something is sent over it or the rank
// wakes up.
func TestSilentLane(t *testing.T) {
	testWorld(t, 4, []int{0, 0, 1, 1}, nil, func(t *testing.T, w *world) {
		net := w.cqs[0][1]
		polls := func(n int) int {
			before := net.polls
			w.locked(0, func(e *Held) {
				for range n {
					e.pollWaiting()
				}
			})
			return net.polls - before
		}
		if n := polls(silentAfter); n != silentAfter {
			t.Errorf("a new lane was polled %d times, want %d", n, silentAfter)
		}
		if n := polls(10 * silentEvery); n != 10 {
			t.Errorf("a silent lane was polled %d times, want 10", n)
		}
		polls(1)
		w.locked(0, func(e *Held) { e.pollAllNext() })
		if n := polls(1); n != 1 {
			t.Error("the lane is not polled after a wake-up")
		}
		for _, link := range []string{"new", "connected"} {
			w.send(0, 2, 0, "x")
			if n := polls(silentAfter); n != silentAfter {
				t.Errorf("after a send over a %s link the lane was polled %d times, want %d", link, n, silentAfter)
			}
		}
	})
}

func TestArmLanes(t *testing.T) {
	testWorld(t, 3, []int{0, 0, 1}, nil, func(t *testing.T, w *world) {
		arm := func() (timeout time.Duration) {
			e := w.ranks[0].lock()
			defer e.unlock()
			return e.armLanes(parkIdle)
		}
		if got := arm(); got != parkIdle {
			t.Errorf("with idle lanes home may sleep for %v", got)
		}
		if !w.ranks[0].held.lanes[1].waiting.Load() {
			t.Error("no goroutine waits for the network lane")
		}
		w.send(2, 0, 0, "x")
		synctest.Wait()
		if w.ranks[0].held.lanes[1].waiting.Load() {
			t.Error("a message does not end the wait for the network lane")
		}
		if got := arm(); got != 0 {
			t.Errorf("with a message on the network lane home may sleep for %v", got)
		}
		w.locked(0, func(e *Held) {
			e.poll()
			e.lanes[1].armed = nil
		})
		if got := arm(); got != unwatchedPark {
			t.Errorf("with a lane that cannot be waited for home may sleep for %v", got)
		}
		w.locked(0, func(e *Held) { e.lanes[1].alone = true })
		if got := arm(); got != parkIdle {
			t.Errorf("with a lane to itself only home may sleep for %v", got)
		}
	})
}

// Packets that the device does not accept wait in order, and go when it has room.
func TestBlockedPacketsKeepOrder(t *testing.T) {
	testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
		const n = 300
		w.connect(1, 0)
		var ops []Op
		for i := range n {
			ops = append(ops, w.ranks[1].Isend(&w.comms[1], 0, 0, []byte{byte(i), byte(i >> 8)}, 0))
		}
		if len(w.ranks[1].held.links.blocked) != 1 {
			t.Fatal("the device accepts everything: the test needs more messages")
		}
		ended := make(chan error, 1)
		go func() {
			for _, op := range ops {
				if _, err := w.ranks[1].Wait(NoContext, &w.comms[1], "Wait", op); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
		for i := range n {
			var buf [2]byte
			if _, err := w.ranks[0].Recv(&w.comms[0], "Recv", 1, 1, 0, buf[:]); err != nil {
				t.Fatal(err)
			}
			if got := int(buf[0]) | int(buf[1])<<8; got != i {
				t.Fatalf("message %d came as number %d", got, i)
			}
		}
		if err := mustEnd(t, "the sends", ended); err != nil {
			t.Error(err)
		}
		if len(w.ranks[1].held.links.blocked) != 0 || len(w.ranks[1].held.links.byRank[0].Wait) != 0 {
			t.Error("packets still wait")
		}
	})
}
