package p2p

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// Offers are the default where data can arrive while the receiver computes.
func TestSpeculateDefault(t *testing.T) {
	adapter := rdma.Attr{MaxSend: 4096, MaxInline: 4096, Ops: rdma.Ops(rdma.OpSend, rdma.OpRead, rdma.OpWrite)}
	sockets, memory := adapter, adapter
	sockets.RemoteCPU = true
	memory.Ops |= rdma.Ops(rdma.OpPull, rdma.OpPush)
	for _, c := range []struct {
		name  string
		attr  rdma.Attr
		set   string
		offer bool
	}{
		{"adapter", adapter, "", true}, {"sockets", sockets, "", false}, {"shared memory", memory, "", true},
		{"shared memory, auto", memory, "auto", true}, {"sockets, always", sockets, "always", true}, {"adapter, never", adapter, "never", false},
	} {
		tw := newTwins(Config{EagerLimit: -1, Speculate: c.set}, 8, 4096)
		tw.link[1].Attr = &c.attr
		x := tw.m[1].New()
		x.Buf, x.Link = make([]byte, 100), tw.link[1]
		tw.m[1].Recv(x)
		tw.m[1].Offer(x)
		if got := tw.link[1].Stats.RTRSent == 1; got != c.offer {
			t.Errorf("%s: an offer is made: %v, want %v", c.name, got, c.offer)
		}
	}
}
