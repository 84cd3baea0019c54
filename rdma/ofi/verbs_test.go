//go:build ofi && cgo && linux

package ofi

import (
	"bytes"
	"slices"
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// The verbs provider needs an RDMA device. tests/verbsvm runs these tests where there is
// one.

const overVerbs = "verbs;ofi_rxm"

// adapter returns the address of an RDMA device. The test is skipped where there is none.
func adapter(t *testing.T) string {
	offers, _, err := Survey(Config{Provider: overVerbs, Peers: 16})
	if err != nil {
		t.Fatal(err)
	}
	taken := slices.IndexFunc(offers, func(o Offer) bool { return o.Taken })
	if taken < 0 {
		t.Skip("there is no RDMA device on this host")
	}
	return offers[taken].Address
}

func TestVerbsConforms(t *testing.T) {
	const first = "the first request to a peer establishes the connection, for which the peer must poll; later requests do not need that; until ofi_rxm connects by a thread of its own"
	exclude := refusals("a refused access breaks the connection, so that only the first is reported; TestVerbsReportsRefusedAccess tries them one by one")
	for _, alone := range []string{"read-alone", "write-alone", "assisted-write-alone", "assisted-write-again"} {
		exclude[alone] = first
	}
	exclude["close-ends-access"] = "a connection to a peer that is gone is tried for two minutes, longer than the suite waits, until ofi_rxm has a shorter limit"
	address := adapter(t)
	rdmatest.Run(t, rdmatest.Fixture{Name: overVerbs, Exclude: exclude, Unconnected: "libfabric hides its connections: nothing outside can reset them", Open: func(t testing.TB, n int) []rdma.Device {
		return openAll(t, n, Config{Provider: overVerbs, Interface: address})
	}})
}

func TestVerbsReportsRefusedAccess(t *testing.T) {
	address := adapter(t)
	for _, op := range []rdma.Op{rdma.OpRead, rdma.OpWrite} {
		for _, f := range forgeries(op) {
			t.Run(op.String()+" "+f.name, func(t *testing.T) {
				if op == rdma.OpRead && f.acc != rdma.RemoteRead {
					t.Skip("ofi_rxm lets peers read all memory that may be sent, until its rendezvous registers for itself (libfabric 1.17)")
				}
				refusedOverVerbs(t, address, op, f)
			})
		}
	}
}

func refusedOverVerbs(t *testing.T, address string, op rdma.Op, f forged) {
	cfg := Config{Provider: overVerbs, Interface: address, Job: t.Name(), Peers: 2}
	a := mustRank(t, cfg)
	cfg.Index = 1
	b := mustRank(t, cfg)
	toB, err := a.meet(b)
	if err != nil {
		t.Fatal(err)
	}
	region, here := bytes.Repeat([]byte{1}, regionSize), bytes.Repeat([]byte{2}, pieceSize)
	there, err := b.dev.Register(region, f.acc)
	if err != nil {
		t.Fatal(err)
	}
	local, err := a.dev.Register(here, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = a.post(rdma.SendWR{ID: 5, Op: op, Peer: toB, Body: rdma.MemOf(here), LKey: local.LKey, Remote: f.remote(there), RKey: f.rkey(there)})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := a.next(b); err != nil || c.ID != 5 || c.Status != rdma.StatusRemoteAccess {
		t.Fatalf("the access completes with %+v, %v; it should fail with %v", c, err, rdma.StatusRemoteAccess)
	}
	if !bytes.Equal(region, bytes.Repeat([]byte{1}, regionSize)) || !bytes.Equal(here, bytes.Repeat([]byte{2}, pieceSize)) {
		t.Fatal("memory has changed")
	}
}

// Besides its IP addresses an adapter has one of InfiniBand's own kind, which is useless
// if the network is Ethernet.
func TestIPAddressIsPreferred(t *testing.T) {
	other := offered{provider: overVerbs, domain: "mlx5_0", transport: rdma.RD}
	v4, v6 := other, other
	v4.address, v4.family = "10.0.0.1", 4
	v6.address, v6.family = "2001:db8::1", 6
	h := host{interfaces: map[string]string{"10.0.0.1": "veth0", "2001:db8::1": "veth0"}}
	for _, v := range []struct {
		list []offered
		want int
	}{
		{[]offered{other, v6, v4}, 2},
		{[]offered{v6, other}, 0},
		{[]offered{other}, 0},
	} {
		if got, err := choose(v.list, Config{}, h); err != nil || got != v.want {
			t.Errorf("of %+v number %d was chosen (%v); want %d", v.list, got, err, v.want)
		}
	}
}
