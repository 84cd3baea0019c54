//go:build ofi && cgo && linux

package ofi

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

func TestCount(t *testing.T) {
	list := openAll(t, 2, Config{Provider: "tcp;ofi_rxm"})
	count := func(d rdma.Device) map[rdma.Counter]uint64 {
		got := map[rdma.Counter]uint64{}
		d.Caps().Count(func(name rdma.Counter, value uint64) { got[name] += value })
		return got
	}
	if got := count(list[0]); got[rdma.MemoryReceive]+got[rdma.MemorySend]+got[rdma.PeersKnown] != 0 {
		t.Errorf("before there is a queue: %v", got)
	}
	var addrs []rdma.Addr
	for _, d := range list {
		cq, err := d.NewCQ(0)
		if err != nil {
			t.Fatal(err)
		}
		srq, err := d.NewSRQ(rdma.SRQConfig{Lend: true, Depth: 10})
		if err != nil {
			t.Fatal(err)
		}
		qp, err := d.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: cq, RecvCQ: cq, SRQ: srq})
		if err != nil {
			t.Fatal(err)
		}
		addrs = append(addrs, qp.Addr())
	}
	if _, err := list[0].Resolve(addrs[1]); err != nil {
		t.Fatal(err)
	}
	buffer := uint64(list[0].(*device).sizes.buffer)
	got := count(list[0])
	if got[rdma.MemoryReceive] != 10*buffer || got[rdma.MemorySend] == 0 || got[rdma.PeersKnown] != 1 || got[rdma.MemoryPeers] == 0 {
		t.Errorf("with 10 receive buffers of %d bytes and a peer: %v", buffer, got)
	}
}
