package netprobe

import (
	"net/netip"
	"strings"
	"testing"
)

func face(name string, prefixes ...string) Interface {
	i := Interface{Name: name, Up: true, Running: true}
	for _, p := range prefixes {
		i.Prefixes = append(i.Prefixes, netip.MustParsePrefix(p))
	}
	return i
}

// with returns a changed copy.
func (i Interface) with(change func(*Interface)) Interface {
	change(&i)
	return i
}

func TestChoose(t *testing.T) {
	lo := face("lo", "127.0.0.1/8", "::1/128").with(func(i *Interface) { i.Loopback = true })
	eth0 := face("eth0", "fe80::1/64", "10.1.0.2/24").with(func(i *Interface) { i.Speed = 1000 })
	eth1 := face("eth1", "10.2.0.2/24").with(func(i *Interface) { i.Speed = 25000 })
	docker := face("docker0", "172.17.0.1/16")
	bridge := face("lan", "192.168.7.1/24").with(func(i *Interface) { i.Bridge = true })
	tunnel := face("office", "10.8.0.5/24").with(func(i *Interface) { i.PointToPoint = true })
	guard := face("wg0", "10.9.0.5/24")
	for _, v := range []struct {
		name  string
		list  []Interface
		want  []string
		taken string // interfaces, in order
		why   string // of the first that is not selected
	}{
		{"two-rails", []Interface{lo, eth0, eth1}, nil, "eth0 eth1", "it leads to this host alone"},
		{"containers-and-tunnels", []Interface{docker, bridge, tunnel, guard, eth1}, nil, "eth1", "it leads to containers or virtual machines of this host"},
		{"tunnel", []Interface{tunnel, eth1}, nil, "eth1", "it is a tunnel: slow, and not everybody is in it"},
		{"a-tunnel-that-is-named", []Interface{eth0, guard}, []string{"wg0"}, "wg0", "others are named"},
		{"named-by-network", []Interface{eth0, eth1}, []string{"10.2.0.0/16"}, "eth1", "others are named"},
		{"down", []Interface{eth0.with(func(i *Interface) { i.Up = false }), eth1}, nil, "eth1", "it is down"},
		{"unplugged", []Interface{eth0.with(func(i *Interface) { i.Running = false }), eth1}, nil, "eth1", "it has no carrier"},
		{"unplugged-container-bridge", []Interface{docker.with(func(i *Interface) { i.Running = false }), eth1}, nil, "eth1", "it is down"},
		{"no-address", []Interface{face("eth2", "fe80::2/64"), eth1}, nil, "eth1", "it has no address that other hosts could use"},
		{"same-network", []Interface{eth0, face("eth3", "10.1.0.9/24")}, nil, "eth0", "it is on the network of eth0, over which the system would send"},
		{"version-six", []Interface{face("eth4", "fe80::4/64", "fd00:1::4/64")}, nil, "eth4", ""},
		{"a-laptop-without-network", []Interface{lo, docker}, nil, "lo", "it leads to containers or virtual machines of this host"},
		{"nothing", nil, nil, "", ""},
	} {
		got, err := Choose(v.list, v.want)
		if err != nil {
			t.Errorf("%s: %v", v.name, err)
			continue
		}
		var taken []string
		why := ""
		for _, c := range got {
			if c.Taken {
				taken = append(taken, c.Name)
			} else if why == "" {
				why = c.Why
			}
		}
		if s := strings.Join(taken, " "); s != v.taken || why != v.why {
			t.Errorf("%s: selects %q with reason %q for the first other, want %q and %q", v.name, s, why, v.taken, v.why)
		}
	}
	if _, err := Choose([]Interface{eth0}, []string{"ib0"}); err == nil || !strings.Contains(err.Error(), "ib0") || !strings.Contains(err.Error(), "eth0") {
		t.Errorf("a missing interface returns the error %v", err)
	}
}

func TestSummaryAndTable(t *testing.T) {
	list, err := Choose([]Interface{
		face("eth0", "10.1.0.2/24").with(func(i *Interface) { i.Speed = 1000 }),
		face("eth1", "10.2.0.2/24").with(func(i *Interface) { i.Speed = 2500 }),
		face("docker0", "172.17.0.1/16"),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := Summary(list), "2 rails: eth0 (10.1.0.2/24, 1 Gbit/s), eth1 (10.2.0.2/24, 2500 Mbit/s)"; got != want {
		t.Errorf("the summary is %q, expected %q", got, want)
	}
	var b strings.Builder
	if err := Table(&b, list); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"   interface  address        speed        why\n" +
		"*  eth0       10.1.0.2/24    1 Gbit/s     it leads to other hosts\n" +
		"*  eth1       10.2.0.2/24    2500 Mbit/s  it leads to other hosts\n" +
		"   docker0    172.17.0.1/16  -            it leads to containers or virtual machines of this host\n"
	if b.String() != want {
		t.Errorf("the table is\n%s\nexpected\n%s", b.String(), want)
	}
	if list[0].Network() != "10.1.0.0/24" {
		t.Errorf("eth0 is on the network %s", list[0].Network())
	}
	if got := Summary(nil); got != "no rail: no interface leads to other hosts" {
		t.Errorf("without interfaces the summary is %q", got)
	}
}

// TestInterfaces checks that at least a loopback interface is listed.
func TestInterfaces(t *testing.T) {
	list, err := Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		if i.Loopback {
			return
		}
	}
	t.Errorf("%d interfaces are listed and none is the loopback", len(list))
}
