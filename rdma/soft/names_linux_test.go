package soft

import (
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// TestNameOfUnresolvedPeer sends to a process that has not resolved the sender, over
// both kinds of queue pair.
func TestNameOfUnresolvedPeer(t *testing.T) {
	const ours, theirs = 7, 4_000_000_000
	for name, kind := range map[string]rdma.Transport{"RD": rdma.RD, "UD": rdma.UD} {
		t.Run(name, func(t *testing.T) {
			a, b := newTestNodeOf(t, Config{Name: theirs}, kind), newTestNodeOf(t, Config{Name: ours}, kind)
			to := a.resolve(t, b)
			if who, ok := a.NameOf(to); !ok || who != ours {
				t.Errorf("NameOf the peer at %s returns %d, %v, want %d", b.qp.Addr(), who, ok, ours)
			}
			if who, ok := b.NameOf(0); ok {
				t.Errorf("there is no peer yet, and the first handle has the name %d", who)
			}
			a.send(t, to, "it is me")
			c, ok := b.poll(time.Second)
			if !ok {
				t.Fatal("the message did not arrive")
			}
			if who, ok := b.NameOf(c.Peer); !ok || who != theirs {
				t.Errorf("NameOf the sender returns %d, %v, want %d", who, ok, uint32(theirs))
			}
			if later := b.resolve(t, a); later != c.Peer {
				t.Errorf("Resolve returns the handle %d; the completion had %d", later, c.Peer)
			}
		})
	}
}

// The attributes of a device do not change after Open, so the name is part of its Config.
func TestLabelIsTheNameOfTheDevice(t *testing.T) {
	for label, want := range map[string]string{"": "dgram", "rd": "rd"} {
		if got := newTestNodeOf(t, Config{Label: label}, rdma.RD).Attr().Name; got != want {
			t.Errorf("a device with the label %q is called %q, want %q", label, got, want)
		}
	}
}
