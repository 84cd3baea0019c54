package rail

import (
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

func TestCountersAndPaths(t *testing.T) {
	wires := []*wire{{latency: 20 * time.Microsecond, speed: 1}, {latency: 20 * time.Microsecond, speed: 1}}
	w := newWorld(t, 2, wires...)
	a, b := newParty(t, w, 0, 5), newParty(t, w, 1, 5)
	resolveParties(t, a, b)
	a.want = 200
	run(t, w, wires, time.Second, "messages have arrived", func() bool { return b.came == a.want && len(a.ended) == int(a.posted) }, a, b)
	wires[1].cut = true
	a.want += 50
	run(t, w, wires, time.Second, "more messages have arrived", func() bool { return b.came == a.want }, a, b)
	got := map[rdma.Counter]uint64{}
	a.dev.Count(func(name rdma.Counter, value uint64) { got[name] += value })
	for _, name := range []rdma.Counter{"rail-bytes.wire0", "rail-bytes.wire1", "rails.left", "rails.again", rdma.PeersKnown, rdma.MemoryPeers, rdma.MemorySend, rdma.MemoryTables} {
		if got[name] == 0 {
			t.Errorf("%s is 0", name)
		}
	}
	if line := a.dev.Paths(a.peer); !strings.HasPrefix(line, "peer 1 over wire0 (good") || !strings.Contains(line, "wire1 (left") {
		t.Errorf("Paths returns %q", line)
	}
	if name, ok := a.dev.NameOf(a.peer); !ok || name != 1 {
		t.Errorf("NameOf returns %d, %v", name, ok)
	}
	if _, ok := a.dev.NameOf(99); ok {
		t.Error("an unknown peer has a name")
	}
}

// TestIdlePeersAreSmall bounds the memory of an idle peer.
func TestIdlePeersAreSmall(t *testing.T) {
	if n := sizeOf[flow]() + 2*sizeOf[path]() + sizeOf[peer](); n > 640 {
		t.Errorf("an idle peer on two rails costs %d bytes, expected at most 640", n)
	}
}
