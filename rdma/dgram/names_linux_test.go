package dgram

import (
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// TestNameOfAPeerHeardFirst has a process send to one that never resolved it, over both
// kinds of queue pair.
func TestNameOfAPeerHeardFirst(t *testing.T) {
	const ours, theirs = 7, 4_000_000_000
	for name, kind := range map[string]rdma.Transport{"RD": rdma.RD, "UD": rdma.UD} {
		t.Run(name, func(t *testing.T) {
			a, b := newStationOf(t, Config{Name: theirs}, kind), newStationOf(t, Config{Name: ours}, kind)
			to := a.resolve(t, b)
			if who, ok := a.NameOf(to); !ok || who != ours {
				t.Errorf("the peer behind %s is called %d, %v; it is %d", b.qp.Addr(), who, ok, ours)
			}
			if who, ok := b.NameOf(0); ok {
				t.Errorf("nobody was heard, and the first handle is of %d", who)
			}
			a.send(t, to, "it is me")
			c, ok := b.poll(time.Second)
			if !ok {
				t.Fatal("the message does not come")
			}
			if who, ok := b.NameOf(c.Peer); !ok || who != theirs {
				t.Errorf("the sender is called %d, %v; it is %d", who, ok, uint32(theirs))
			}
			if later := b.resolve(t, a); later != c.Peer {
				t.Errorf("resolved, the sender has the handle %d; in the completion it was %d", later, c.Peer)
			}
		})
	}
}
