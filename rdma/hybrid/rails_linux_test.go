package hybrid

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/soft"
)

// TestRails has datagrams on two interfaces and connections on one of them. A peer that
// follows accepts a connection, and two of them make none.
func TestRails(t *testing.T) {
	var paths []soft.Path
	for i := 1; i <= 2; i++ {
		at := netip.MustParseAddr(fmt.Sprintf("127.0.0.%d", i))
		paths = append(paths, soft.Path{Name: fmt.Sprintf("rail%d", i), Bind: netip.AddrPortFrom(at, 0), Network: netip.PrefixFrom(at, 32)})
	}
	const begins, follows, alsoFollows = 0, 1, 2
	nodes := newNodesEach(t, 3, Config{CountMessages: true, BusyAfter: 40, Paths: paths}, func(i int, c *Config) {
		c.Address, c.Follow = paths[i%len(paths)].Bind.Addr(), i != begins
	})
	if n := nodes[begins].dev.Caps().Rails; n != len(paths) {
		t.Errorf("the device has %d rails, want %d", n, len(paths))
	}
	exchange(t, "both directions are moved", nodes, begins, follows, func() bool {
		return nodes[begins].carriedBy(follows) == byConnection && nodes[follows].carriedBy(begins) == byConnection
	})
	exchange(t, "peers that follow have exchanged messages", nodes, follows, alsoFollows, func() bool { return nodes[follows].sent[alsoFollows] == 500 })
	until(t, "all messages have arrived", nodes, arrived(nodes))
	for i, want := range []uint64{begins: 1, follows: 1, alsoFollows: 0} {
		if n := nodes[i].counters()[rdma.ConnectionsMade]; n != want {
			t.Errorf("node %d has made %d connections, want %d", i, n, want)
		}
	}
}
