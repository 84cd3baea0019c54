package soft

import (
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// TestPeerTable looks up peers in changing order: the one that was looked up last is remembered,
// and must not be returned for another.
func TestPeerTable(t *testing.T) {
	peers := peerTable{known: map[uint64]rdma.PeerID{}}
	var from rawAddress
	if _, ok := peers.find(0, 0); ok {
		t.Error("an empty table finds a peer")
	}
	zero := peers.id(0, 0, 7, &from)
	one := peers.id(1, 0, 8, &from)
	other := peers.id(1, 1, 9, &from)
	for range 2 {
		for _, v := range []struct {
			from incarnation
			pair uint16
			want rdma.PeerID
		}{{0, 0, zero}, {1, 0, one}, {1, 0, one}, {1, 1, other}, {0, 0, zero}} {
			if got, ok := peers.find(v.from, v.pair); !ok || got != v.want {
				t.Errorf("queue pair %d of process %d is found as peer %d (%v), want %d", v.pair, v.from, got, ok, v.want)
			}
			if got := peers.id(v.from, v.pair, 0, &from); got != v.want {
				t.Errorf("queue pair %d of process %d becomes peer %d, want %d", v.pair, v.from, got, v.want)
			}
		}
	}
	if _, ok := peers.find(2, 0); ok || len(peers.list) != 3 {
		t.Errorf("the table has %d peers, and finds one that it lacks: %v", len(peers.list), ok)
	}
}

// TestClockTicksOnce checks that one call reads the time at most once.
func TestClockTicksOnce(t *testing.T) {
	c := clock{start: time.Now().Add(-time.Hour)}
	c.tick()
	if c.now < time.Hour {
		t.Errorf("the clock shows %v after an hour", c.now)
	}
	c.now = 1
	if c.tick(); c.now != 1 {
		t.Errorf("a second tick of the same call reads the time: %v", c.now)
	}
	c.fresh = false
	if c.tick(); c.now < time.Hour {
		t.Errorf("the next call keeps the time %v", c.now)
	}
}
