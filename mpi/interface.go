package mpi

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Which address of this host messages between hosts leave from. It is published to
// the other ranks as it is, so it must be one that they reach: a real interface wins over
// one of containers and tunnels, and loopback serves only a job on one host.

// hostAddress is an address that this host has.
type hostAddress struct {
	addr     netip.Addr
	name     string // of its interface
	loopback bool
}

// networkAddress is the address to use. asked, if not empty, is an interface or an
// address; apart says that there are ranks on other hosts.
func networkAddress(asked string, apart bool) (netip.Addr, error) {
	list, err := net.Interfaces()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("list the network interfaces: %w", err)
	}
	var have []hostAddress
	for _, i := range list {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // it has gone since
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				have = append(have, hostAddress{p.Addr().Unmap(), i.Name, i.Flags&net.FlagLoopback != 0})
			}
		}
	}
	return chooseAddress(have, asked, apart)
}

func chooseAddress(have []hostAddress, asked string, apart bool) (netip.Addr, error) {
	if asked == "" && !apart {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	fit := slices.DeleteFunc(slices.Clone(have), func(h hostAddress) bool {
		return h.addr.IsLinkLocalUnicast() || asked != "" && asked != h.name && asked != h.addr.String()
	})
	if len(fit) == 0 {
		var names []string
		for _, h := range have {
			names = append(names, h.name+" "+h.addr.String())
		}
		return netip.Addr{}, fmt.Errorf("no interface that is up is or has %q; set MUSTER_INTERFACE to one of: %s", asked, strings.Join(names, ", "))
	}
	best := slices.MinFunc(fit, func(a, b hostAddress) int {
		return cmp.Or(
			cmp.Compare(a.badness(), b.badness()),
			a.addr.Compare(b.addr), // IPv4 first
		)
	})
	if best.loopback && asked == "" {
		return netip.Addr{}, fmt.Errorf("this host has no interface but loopback, and ranks run on other hosts; see ip addr")
	}
	return best.addr, nil
}

// badness orders interfaces by how likely other hosts are behind them.
func (h hostAddress) badness() int {
	switch {
	case h.loopback:
		return 2
	case slices.ContainsFunc(virtualInterfaces, func(prefix string) bool { return strings.HasPrefix(h.name, prefix) }):
		return 1
	}
	return 0
}

// virtualInterfaces are how the interfaces of containers, hypervisors and tunnels are
// called.
var virtualInterfaces = []string{"docker", "br-", "virbr", "veth", "tun", "tap", "wg", "cni", "flannel", "cali", "vmnet"}
