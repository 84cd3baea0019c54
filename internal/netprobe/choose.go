package netprobe

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Which interfaces of a host should be rails, by names and kinds. This is only the starting
// point of the proof (prove.go).

// maxRails is the number of rails that a device can use.
const maxRails = 8

// Kind is the kind of an interface, by its name and by what the system reports.
type Kind uint8

const (
	Ordinary  Kind = iota // it leads to other hosts, as far as is known locally
	Inward                // a bridge, or what programs make for containers and virtual machines
	Tunnel                // a program is at its other end
	NoCarrier             // an ordinary one without a carrier: unplugged, or it came up less than a second ago
)

// Candidate is an interface and its rating.
type Candidate struct {
	Interface
	Address netip.Prefix // the one to use, if there is one
	Taken   bool
	Kind    Kind
	// Possible reports whether it may be a rail if a host responds over it.
	Possible bool
	Why      string
}

// Network names the network of the address, for Rail.Network.
func (c *Candidate) Network() string { return c.Address.Masked().String() }

// Name prefixes of interfaces that programs create for containers, virtual machines and
// private networks. Such an interface is up, has an address and leads to no other host.
var (
	inwardNames = [...]string{"docker", "br-", "virbr", "veth", "cni", "cbr", "flannel", "cali", "cilium", "lxc", "lxd", "podman", "vmnet", "vboxnet", "vnet", "dummy", "ifb"}
	tunnelNames = [...]string{"tun", "tap", "wg", "tailscale", "zt", "ppp", "ipsec", "gre", "sit", "ip6tnl", "vxlan", "geneve", "utun"}
)

func named(name string, like []string) bool {
	return slices.ContainsFunc(like, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Choose selects the interfaces that should be rails, with a reason for each interface.
// want names the ones to select, by name, address or a network such as 10.1.0.0/16;
// empty: those that seem to lead to other hosts. A name that matches no interface is an
// error.
func Choose(list []Interface, want []string) ([]Candidate, error) {
	var out []Candidate
	for _, i := range list {
		out = append(out, Candidate{Interface: i, Address: i.usable()})
	}
	for _, w := range want {
		if !slices.ContainsFunc(out, func(c Candidate) bool { return c.is(w) }) {
			return out, fmt.Errorf("netprobe: this host has no interface %s that is up and has an address; it has %s", w, names(out))
		}
	}
	taken := 0
	take := func(c *Candidate, why string) {
		for k := range out {
			if o := &out[k]; o.Taken && o.Network() == c.Network() {
				c.Why = "it is on the network of " + o.Name + ", over which the system would send"
				return
			}
		}
		if taken == maxRails {
			c.Why = fmt.Sprintf("there are %d rails without it", maxRails)
			return
		}
		taken++
		c.Taken, c.Possible, c.Why = true, !c.Loopback, why
	}
	doubt := func(c *Candidate, k Kind, why string) { c.Kind, c.Possible, c.Why = k, true, why }
	for k := range out {
		c := &out[k]
		wanted := slices.ContainsFunc(want, c.is)
		inward, tunnel := c.Bridge || named(c.Name, inwardNames[:]), c.Tunnel || c.PointToPoint || named(c.Name, tunnelNames[:])
		switch {
		case c.Up && !c.Running && c.Address.IsValid() && len(want) == 0 && !c.Loopback && !inward && !tunnel:
			doubt(c, NoCarrier, "it has no carrier")
		case !c.Up || !c.Running:
			c.Why = "it is down"
		case !c.Address.IsValid():
			c.Why = "it has no address that other hosts could use"
		case wanted:
			take(c, "it is named")
		case len(want) > 0:
			c.Why = "others are named"
		case c.Loopback:
			c.Why = "it leads to this host alone"
		case inward:
			doubt(c, Inward, "it leads to containers or virtual machines of this host")
		case tunnel:
			doubt(c, Tunnel, "it is a tunnel: slow, and not everybody is in it")
		default:
			take(c, "it leads to other hosts")
		}
	}
	for k := range out { // a host without a network uses loopback
		if c := &out[k]; taken == 0 && len(want) == 0 && c.Loopback && c.ready() {
			take(c, "nothing leads to other hosts")
		}
	}
	return out, nil
}

// usable returns the address to use: IPv4 if there is one, and never a link-local one.
func (i *Interface) usable() (best netip.Prefix) {
	for _, p := range i.Prefixes {
		a := p.Addr()
		if a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() {
			continue
		}
		if !best.IsValid() || a.Is4() && !best.Addr().Is4() {
			best = p
		}
	}
	return best
}

// ready reports whether datagrams can be sent from it.
func (c *Candidate) ready() bool { return c.Up && c.Running && c.Address.IsValid() }

// is reports whether a word names the interface: by its name, its address, or a network
// that contains the address.
func (c *Candidate) is(word string) bool {
	if !c.ready() {
		return false
	}
	if c.Name == word || c.Address.Addr().String() == word {
		return true
	}
	network, err := netip.ParsePrefix(word)
	return err == nil && network.Contains(c.Address.Addr())
}

func names(list []Candidate) string {
	words := make([]string, len(list))
	for i := range list {
		words[i] = list[i].Name
	}
	return cmp.Or(strings.Join(words, ", "), "none")
}
