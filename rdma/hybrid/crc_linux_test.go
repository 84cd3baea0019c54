package hybrid

import (
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// TestEitherEndRequestsCRC checks the negotiation of RFC 5044 section 7.1.1 between two
// devices: frames have a CRC if one end requests it, and none otherwise.
func TestEitherEndRequestsCRC(t *testing.T) {
	for i := range 4 {
		with := [2]bool{i&1 != 0, i&2 != 0}
		t.Run(fmt.Sprint(with), func(t *testing.T) {
			nodes := newNodesEach(t, 2, Config{CountMessages: true, BusyAfter: 4}, func(i int, cfg *Config) { cfg.ConnectionCRC = with[i] })
			exchange(t, "both directions are moved", nodes, 0, 1, func() bool {
				return nodes[0].carriedBy(1) == byConnection && nodes[1].carriedBy(0) == byConnection
			})
			until(t, "all messages have arrived", nodes, arrived(nodes))
			want := uint64(0)
			if with[0] || with[1] {
				want = 1
			}
			for i, n := range nodes {
				if c := n.counters(); c[rdma.ConnectionsCRC] != want || c[rdma.ConnectionsRC] != 1 {
					t.Errorf("node %d has %d connections, %d with a CRC; it should be 1 and %d", i, c[rdma.ConnectionsRC], c[rdma.ConnectionsCRC], want)
				}
			}
		})
	}
}
