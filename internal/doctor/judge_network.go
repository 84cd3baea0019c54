package doctor

// Checks of one host's network.

import (
	"fmt"
	"net/netip"
	"strings"
)

const (
	minMTU   = 1280
	minSpeed = 1000 // Mbit/s
)

func judgeInterfaces(f *Facts, many bool) Finding {
	var usable, all, dead, slow, small []string
	for _, i := range f.Interfaces {
		line := fmt.Sprintf("%s: %s, MTU %d", i.Name, strings.Join(i.Networks, " "), i.MTU)
		if i.Speed > 0 {
			line += fmt.Sprintf(", %d Mbit/s", i.Speed)
		}
		all = append(all, line)
		if i.Loopback || len(addresses(i)) == 0 {
			continue
		}
		if !i.Carrier {
			dead = append(dead, i.Name)
			continue
		}
		usable = append(usable, i.Name+" "+addresses(i)[0].Addr().String())
		if i.Speed > 0 && i.Speed < minSpeed {
			slow = append(slow, fmt.Sprintf("%s (%d Mbit/s)", i.Name, i.Speed))
		}
		if i.MTU < minMTU {
			small = append(small, fmt.Sprintf("%s (%d)", i.Name, i.MTU))
		}
	}
	finding := fine("%s", strings.Join(usable, ", "))
	switch {
	case len(usable) == 0 && len(dead) > 0:
		finding = hostOnly(many, "plug in the cable, or check the switch", "no carrier on "+strings.Join(dead, ", "))
	case len(usable) == 0 && many:
		finding = problem("give an interface an address: ip addr, or the network settings of the container", "no interface but loopback has an address")
	case len(usable) == 0:
		finding = fine("only loopback, which is enough for one host")
	case len(dead) > 0:
		finding = warn("plug in the cable, or select the interface: MUSTER_INTERFACE="+name(usable[0]), "no carrier on %s; %s works", strings.Join(dead, ", "), usable[0])
	case len(slow) > 0:
		finding = warn("check cable, switch port and ethtool, or select a faster interface with MUSTER_INTERFACE", "slow: %s", strings.Join(slow, ", "))
	case len(small) > 0:
		finding = warn("ip link set DEVICE mtu 1500, unless a tunnel needs it", "small MTU: %s", strings.Join(small, ", "))
	}
	return finding.addLines(all...)
}

// hostOnly returns a problem for a job on several hosts, and a warning for one host.
func hostOnly(many bool, advice, detail string) Finding {
	if many {
		return problem(advice, "%s", detail)
	}
	return warn(advice, "%s", detail)
}

func name(usable string) string {
	word, _, _ := strings.Cut(usable, " ")
	return word
}

// addresses returns the addresses that other hosts can use.
func addresses(i Interface) (list []netip.Prefix) {
	for _, n := range i.Networks {
		p, err := netip.ParsePrefix(n)
		if err == nil && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
			list = append(list, p)
		}
	}
	return list
}

// judgeRoutes finds networks with two interfaces. The kernel sends through the first, so
// packets that arrive at the second are answered by the first.
func judgeRoutes(f *Facts, _ bool) Finding {
	var lines, double []string
	for _, r := range f.Routes {
		line := r.To + " through " + r.Interface
		if r.Via != "" {
			line += " by " + r.Via
		}
		lines = append(lines, line)
	}
	for i, a := range f.Interfaces {
		for _, b := range f.Interfaces[i+1:] {
			if a.Loopback || b.Loopback || !a.Carrier || !b.Carrier {
				continue
			}
			if network, both := overlap(a, b); both {
				double = append(double, fmt.Sprintf("%s and %s are both in %s", a.Name, b.Name, network))
			}
		}
	}
	if len(double) > 0 {
		return warn("give each interface a separate network, or take one of them down; MUSTER_INTERFACE selects one for a job",
			"%s", strings.Join(double, "; ")).addLines(lines...)
	}
	if len(f.Routes) == 0 {
		return fine("none but loopback")
	}
	return fine("%d, no duplicates", len(f.Routes)).addLines(lines...)
}

func overlap(a, b Interface) (netip.Prefix, bool) {
	for _, p := range addresses(a) {
		for _, q := range addresses(b) {
			if p.Masked().Overlaps(q.Masked()) {
				return p.Masked(), true
			}
		}
	}
	return netip.Prefix{}, false
}

const minPorts = 4096

func judgePorts(f *Facts, _ bool) Finding {
	n := f.Ports.High - f.Ports.Low + 1
	switch {
	case f.Ports.Error != "":
		return problem("check for a firewall or sandbox that forbids sockets on loopback, and that lo is up (ip link set lo up)", "cannot listen and connect on this host: %s", f.Ports.Error)
	case f.Ports.High == 0:
		return fine("range unknown")
	case n < minPorts:
		return warn("sysctl net.ipv4.ip_local_port_range='32768 60999'", "the kernel has only %d ephemeral ports (%d to %d)", n, f.Ports.Low, f.Ports.High)
	}
	return fine("%d to %d", f.Ports.Low, f.Ports.High)
}

func judgeFabric(f *Facts, many bool) Finding {
	b := f.Fabric
	build := "build muster and the program with: CGO_ENABLED=1 go build -tags ofi (needs libfabric-dev and a C compiler)"
	install := "install libfabric (Debian: apt install libfabric1; Red Hat: dnf install libfabric)"
	switch {
	case !b.Built && len(f.Limits.Adapters) > 0:
		return warn(build, "this muster was built without libfabric, which would use %s", strings.Join(f.Limits.Adapters, ", "))
	case !b.Built:
		return fine("this muster was built without it and uses software iWARP between hosts")
	case b.Error != "":
		return hostOnly(many, install, b.Error)
	case b.Taken == "":
		return hostOnly(many, "see muster explain network and fi_info for the reason", "libfabric "+b.Version+" offers nothing that can carry messages between hosts").addLines(b.Offers...)
	case len(f.Limits.Adapters) > 0 && !strings.Contains(b.Taken, "verbs") && plainTCP(b.Taken):
		return warn("install the user-space driver of the adapter (Debian: ibverbs-providers) and see fi_info -p verbs",
			"%s, although there are RDMA adapters (%s)", b.Taken, strings.Join(f.Limits.Adapters, ", ")).addLines(b.Offers...)
	}
	return fine("%s: %s", b.Version, b.Taken).addLines(append([]string{"used: " + b.Reason}, b.Offers...)...)
}

// plainTCP reports whether an offer needs no adapter.
func plainTCP(taken string) bool {
	for _, p := range []string{"tcp", "net", "udp", "sockets"} {
		if strings.HasPrefix(taken, p) {
			return true
		}
	}
	return false
}
