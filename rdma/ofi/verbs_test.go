//go:build ofi && cgo && linux

package ofi

import (
	"slices"
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// The verbs provider needs an RDMA device. tests/verbsvm runs these where there
// is one.

const overVerbs = "verbs;ofi_rxm"

func TestVerbsConforms(t *testing.T) {
	offers, _, err := Survey(Config{Provider: overVerbs, Peers: 16})
	if err != nil {
		t.Fatal(err)
	}
	taken := slices.IndexFunc(offers, func(o Offer) bool { return o.Taken })
	if taken < 0 {
		t.Skip("there is no RDMA device on this host")
	}
	const first = "the connection is made when the first work for a peer is posted, which takes the peer's polling; later the peer need not"
	exclude := map[string]string{
		"read-alone":                first,
		"write-alone":               first,
		"refuse-read-missing-right": "ofi_rxm lets peers read all memory that may be sent, for a rendezvous of its own",
		"close-ends-access":         "a connection to a peer that is gone is tried for two minutes, longer than the suite waits",
	}
	rdmatest.Run(t, rdmatest.Fixture{Name: overVerbs, Exclude: exclude, Open: func(t testing.TB, n int) []rdma.Device {
		return openAll(t, n, Config{Provider: overVerbs, Interface: offers[taken].Address})
	}})
}

// Beside its IP addresses an adapter has one of InfiniBand's own kind, which leads
// nowhere if the network is Ethernet.
func TestAnIPAddressIsTakenBeforeOneOfAnotherKind(t *testing.T) {
	adapter := offered{provider: overVerbs, domain: "mlx5_0", transport: rdma.RD}
	v4, v6 := adapter, adapter
	v4.address, v4.family = "10.0.0.1", 4
	v6.address, v6.family = "2001:db8::1", 6
	h := host{interfaces: map[string]string{"10.0.0.1": "veth0", "2001:db8::1": "veth0"}}
	for _, v := range []struct {
		list []offered
		want int
	}{
		{[]offered{adapter, v6, v4}, 2},
		{[]offered{v6, adapter}, 0},
		{[]offered{adapter}, 0},
	} {
		if got, err := choose(v.list, Config{}, h); err != nil || got != v.want {
			t.Errorf("of %+v number %d was taken (%v); want %d", v.list, got, err, v.want)
		}
	}
}
