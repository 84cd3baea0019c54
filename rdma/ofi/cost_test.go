package ofi

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

func TestBuffersOfSmallJob(t *testing.T) {
	for _, provider := range []string{"net", "tcp;ofi_rxm", "verbs;ofi_rxm", "cxi"} {
		s := sizesOf(offer(provider, "", "", 0), Config{Transport: rdma.RD})
		if all := s.buffer * (s.receives + s.sends); all > 4<<20 {
			t.Errorf("%s: all buffers together have %d bytes", provider, all)
		}
	}
	tight := offer("udp", "lo", "127.0.0.1", 4)
	tight.maxMessage, tight.receives = 1472, 16
	if s := sizesOf(tight, Config{Transport: rdma.UD}); s.buffer != 1472 || s.receives != 16 {
		t.Errorf("a provider with messages of 1472 bytes and room for 16 receives gets %+v", s)
	}
}

func TestAttrDescribesProvider(t *testing.T) {
	net := attrOf(offer("net", "lo", "127.0.0.1", 4), sizes{buffer: 32 << 10}, true)
	if !net.RemoteCPU || net.Pins || net.LocalKeys || !net.Ops.Has(rdma.OpWrite) || net.MaxInline != net.MaxSend {
		t.Errorf("net: %+v", net)
	}
	cxi := offer("cxi", "cxi0", "", 0)
	cxi.localKeys, cxi.providerKeys, cxi.perEndpoint = true, true, true
	a := attrOf(cxi, sizes{buffer: 32 << 10}, false)
	if a.RemoteCPU || !a.Pins || !a.LocalKeys || a.Ops.Has(rdma.OpWrite) || !a.Ops.Has(rdma.OpRead) {
		t.Errorf("cxi without writes that complete at the target: %+v", a)
	}
	dgram := offer("udp", "lo", "127.0.0.1", 4)
	dgram.transport = rdma.UD
	if a := attrOf(dgram, sizes{buffer: 1472}, true); a.Ops != rdma.Ops(rdma.OpSend) {
		t.Errorf("datagrams: %+v", a)
	}
}
