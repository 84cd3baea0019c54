package soft

import (
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// exchange lets two nodes alternate in sending messages.
func exchange(t *testing.T, a, b *testNode, rounds int) {
	t.Helper()
	to, back := a.resolve(t, b), b.resolve(t, a)
	for range rounds {
		a.send(t, to, "there")
		if c, ok := b.poll(testTimeout); !ok || string(c.Data.Bytes()) != "there" {
			t.Fatalf("b received %+v", c)
		}
		b.send(t, back, "back")
		if c, ok := a.poll(testTimeout); !ok || string(c.Data.Bytes()) != "back" {
			t.Fatalf("a received %+v", c)
		}
	}
}

func TestShortcutFollowsThePeer(t *testing.T) {
	a, b, c := newTestNode(t, Config{}), newTestNode(t, Config{}), newTestNode(t, Config{})
	exchange(t, a, b, 2*shortcutAfter)
	if a.net.first.short.fd == 0 || a.net.first.short.to != rawOf(b.net.first.local) {
		t.Fatalf("after %d messages in a row the shortcut is %+v", 2*shortcutAfter, a.net.first.short)
	}
	exchange(t, a, c, 2*shortcutAfter)
	if a.net.first.short.to != rawOf(c.net.first.local) {
		t.Error("the shortcut does not follow the destination")
	}
	exchange(t, a, b, 3) // the other peer is still reachable
}

// TestShortcutEndsWithThePeer closes a peer that is reached by a shortcut. Its loss
// must be detected as it is without.
func TestShortcutEndsWithThePeer(t *testing.T) {
	a, b := newTestNode(t, Config{}), newTestNode(t, Config{})
	exchange(t, a, b, 2*shortcutAfter)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	wr := rdma.SendWR{ID: 3, Op: rdma.OpSend, Peer: a.resolve(t, b), Body: rdma.MemOf([]byte("nobody receives it"))}
	if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
		t.Fatal(err)
	}
	if c, ok := a.poll(testTimeout); !ok || c.ID != 3 || c.Status != rdma.StatusPeerGone {
		t.Errorf("the message completes with %+v, %v", c, ok)
	}
	if took := time.Since(start); took > defaultPeerTimeout/2 {
		t.Errorf("that took %v although ICMP reports the port unreachable", took)
	}
	if a.net.first.short.fd != 0 {
		t.Error("there is still a shortcut")
	}
}
