package ofi

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// testHost has an Ethernet interface with the default route, a faster one
// without, a bridge of a container runtime, and the loopback interface.
func testHost() host {
	return host{
		interfaces: map[string]string{"10.0.0.5": "eth0", "fd00::5": "eth0", "10.1.0.5": "eth1", "172.17.0.1": "docker0", "127.0.0.1": "lo", "10.2.0.5": "ib0"},
		loopback:   map[string]bool{"lo": true},
		gateway:    map[string]bool{"eth0": true},
		speed:      map[string]uint64{"eth0": 1e9, "eth1": 100e9, "docker0": 10e9},
	}
}

func offer(provider, domain, address string, family int) offered {
	return offered{provider: provider, domain: domain, address: address, family: family, transport: rdma.RD, maxMessage: 1 << 30, keySize: 8}
}

// onAll returns the offers of a provider over TCP on the host.
func onAll(provider string) []offered {
	return []offered{
		offer(provider, "lo", "127.0.0.1", 4), offer(provider, "docker0", "172.17.0.1", 4), offer(provider, "eth1", "10.1.0.5", 4),
		offer(provider, "eth0", "fe80::1", 6), offer(provider, "eth0", "fd00::5", 6), offer(provider, "eth0", "10.0.0.5", 4),
	}
}

func TestChoiceOfProviderAndInterface(t *testing.T) {
	tcp := slices.Concat(onAll("tcp;ofi_rxm"), onAll("net"), onAll("udp;ofi_rxd"))
	verbs := offer("verbs;ofi_rxm", "mlx5_0", "10.2.0.5", 4)
	for _, v := range []struct {
		name string
		list []offered
		cfg  Config
		want string // provider, interface, address
	}{
		{"the default route decides among interfaces, net among providers over TCP", tcp, Config{}, "net eth0 10.0.0.5"},
		{"native reliable datagrams of tcp are better than those of net", slices.Concat(onAll("tcp"), tcp), Config{}, "tcp eth0 10.0.0.5"},
		{"an adapter is better than TCP", slices.Concat(tcp, []offered{verbs}), Config{}, "verbs;ofi_rxm ib0 10.2.0.5"},
		{"Slingshot without an interface", slices.Concat(tcp, []offered{verbs, offer("cxi", "cxi0", "", 0)}), Config{}, "cxi cxi0 "},
		{"an adapter on loopback alone does not win", slices.Concat(tcp, []offered{offer("psm3", "lo", "127.0.0.1", 4)}), Config{}, "net eth0 10.0.0.5"},
		{"a requested provider", tcp, Config{Provider: "udp;ofi_rxd"}, "udp;ofi_rxd eth0 10.0.0.5"},
		{"a requested provider without its layer", tcp, Config{Provider: "tcp"}, "tcp;ofi_rxm eth0 10.0.0.5"},
		{"a requested interface", tcp, Config{Interface: "lo"}, "net lo 127.0.0.1"},
		{"a requested address", tcp, Config{Interface: "fd00::5"}, "net eth0 fd00::5"},
		{"a requested domain", slices.Concat(tcp, []offered{verbs}), Config{Interface: "mlx5_0"}, "verbs;ofi_rxm ib0 10.2.0.5"},
		{"the interface of a domain", slices.Concat(tcp, []offered{verbs}), Config{Interface: "ib0"}, "verbs;ofi_rxm ib0 10.2.0.5"},
		{"a virtual interface before loopback", onAll("net")[:2], Config{}, "net docker0 172.17.0.1"},
		{"loopback if there is nothing else", onAll("net")[:1], Config{}, "net lo 127.0.0.1"},
	} {
		h := testHost()
		i, err := choose(v.list, v.cfg, h)
		if err != nil {
			t.Errorf("%s: %v", v.name, err)
			continue
		}
		o := v.list[i]
		if got := o.provider + " " + h.interfaceOf(o) + " " + o.address; got != v.want {
			t.Errorf("%s: got %q, it should be %q", v.name, got, v.want)
		}
	}
}

func TestFailedChoiceListsOffers(t *testing.T) {
	cfg := Config{Provider: "net", Interface: "eth7", Transport: rdma.RD}
	_, err := choose(onAll("net"), cfg, testHost())
	for _, word := range []string{"RDM", "net", "eth7", "eth0 (10.0.0.5)", "lo (127.0.0.1)"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the error should name %q: %v", word, err)
		}
	}
	// Some providers are never chosen by default.
	if _, err := choose(onAll("sockets"), Config{Transport: rdma.RD}, testHost()); err == nil {
		t.Error("sockets was chosen without being requested")
	}
}

func TestOfferReasons(t *testing.T) {
	list := slices.Concat(onAll("net"), onAll("net"), onAll("tcp;ofi_rxm"), onAll("shm"))
	got := explain(list, rdma.RD, Config{Transport: rdma.RD}, testHost())
	if len(got) != 18 {
		t.Errorf("%d offers are listed; without repetitions there are 18", len(got))
	}
	taken := 0
	for _, o := range got {
		if o.Reason == "" {
			t.Errorf("no reason for %s on %s (%s)", o.Provider, o.Interface, o.Address)
		}
		if o.Taken {
			taken++
			if o.Provider != "net" || o.Address != "10.0.0.5" || !strings.Contains(o.Reason, "default route") {
				t.Errorf("taken: %+v", o)
			}
		}
	}
	if taken != 1 {
		t.Errorf("%d offers are chosen", taken)
	}
	for _, o := range explain(onAll("net"), rdma.RC, Config{Transport: rdma.RD}, testHost()) {
		if o.Taken || !strings.Contains(o.Reason, "RDM") {
			t.Errorf("an endpoint of another kind: %+v", o)
		}
	}
}
