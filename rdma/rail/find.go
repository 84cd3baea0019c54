package rail

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Which interfaces of a host should be rails: Interfaces lists them, Choose selects
// some with reasons, and Summary and Table format the result. Names and kinds are only
// the starting point of the proof (prove.go).

// Interface is a network interface of this host.
type Interface struct {
	Name         string
	Up           bool
	Loopback     bool
	PointToPoint bool
	Bridge       bool // the system reports a bridge
	Tunnel       bool // a program is at its other end
	Prefixes     []netip.Prefix
	MTU          int
	Speed        int // Mbit/s; 0: unknown
}

// Kind is the kind of an interface, by its name and by what the system reports.
type Kind uint8

const (
	Ordinary Kind = iota // it leads to other hosts, as far as is known locally
	Inward               // a bridge, or what programs make for containers and virtual machines
	Tunnel               // a program is at its other end
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

// Interfaces returns the interfaces of this host.
func Interfaces() ([]Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("rail: list the network interfaces of this host: %w", err)
	}
	var list []Interface
	for _, i := range all {
		one := Interface{
			Name: i.Name, MTU: i.MTU, Up: i.Flags&net.FlagUp != 0 && i.Flags&net.FlagRunning != 0,
			Loopback: i.Flags&net.FlagLoopback != 0, PointToPoint: i.Flags&net.FlagPointToPoint != 0,
		}
		addrs, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("rail: list the addresses of %s: %w", i.Name, err)
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				one.Prefixes = append(one.Prefixes, p)
			}
		}
		// Without this directory only the name is known.
		about := filepath.Join("/sys/class/net", i.Name)
		one.Bridge = exists(filepath.Join(about, "bridge"))
		one.Tunnel = exists(filepath.Join(about, "tun_flags"))
		if text, err := os.ReadFile(filepath.Join(about, "speed")); err == nil {
			if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && n > 0 {
				one.Speed = n
			}
		}
		list = append(list, one)
	}
	return list, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

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
		c := Candidate{Interface: i}
		c.Address, c.Why = c.usable(), ""
		out = append(out, c)
	}
	for _, w := range want {
		if !slices.ContainsFunc(out, func(c Candidate) bool { return c.is(w) }) {
			return out, fmt.Errorf("rail: this host has no interface %s that is up and has an address; it has %s", w, names(out))
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
		switch {
		case !c.Up:
			c.Why = "it is down"
		case !c.Address.IsValid():
			c.Why = "it has no address that other hosts could use"
		case wanted:
			take(c, "it is named")
		case len(want) > 0:
			c.Why = "others are named"
		case c.Loopback:
			c.Why = "it leads to this host alone"
		case c.Bridge || named(c.Name, inwardNames[:]):
			doubt(c, Inward, "it leads to containers or virtual machines of this host")
		case c.Tunnel || c.PointToPoint || named(c.Name, tunnelNames[:]):
			doubt(c, Tunnel, "it is a tunnel: slow, and not everybody is in it")
		default:
			take(c, "it leads to other hosts")
		}
	}
	for k := range out { // a host without a network uses loopback
		if c := &out[k]; taken == 0 && len(want) == 0 && c.Up && c.Loopback && c.Address.IsValid() {
			take(c, "nothing leads to other hosts")
		}
	}
	return out, nil
}

// usable returns the address to use: IPv4 if there is one, and never a link-local one.
func (c *Candidate) usable() (best netip.Prefix) {
	for _, p := range c.Prefixes {
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

// is reports whether a word names the interface: by its name, its address, or a network
// that contains the address.
func (c *Candidate) is(word string) bool {
	if !c.Up || !c.Address.IsValid() {
		return false
	}
	if c.Name == word || c.Address.Addr().String() == word {
		return true
	}
	network, err := netip.ParsePrefix(word)
	return err == nil && network.Contains(c.Address.Addr())
}

func names(list []Candidate) string {
	var words []string
	for _, c := range list {
		words = append(words, c.Name)
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// Summary describes in one line what was selected.
func Summary(list []Candidate) string {
	var words []string
	for _, c := range list {
		if c.Taken {
			words = append(words, fmt.Sprintf("%s (%v%s)", c.Name, c.Address, c.speed()))
		}
	}
	switch len(words) {
	case 0:
		return "no rail: no interface leads to other hosts"
	case 1:
		return "1 rail: " + words[0]
	}
	return fmt.Sprintf("%d rails: %s", len(words), strings.Join(words, ", "))
}

func (c *Candidate) speed() string {
	switch {
	case c.Speed == 0:
		return ""
	case c.Speed%1000 == 0:
		return fmt.Sprintf(", %d Gbit/s", c.Speed/1000)
	}
	return fmt.Sprintf(", %d Mbit/s", c.Speed)
}

// Table prints each interface with its rating.
func Table(w io.Writer, list []Candidate) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, " \tinterface\taddress\tspeed\twhy")
	for _, c := range list {
		mark, address, speed := " ", "-", "-"
		if c.Taken {
			mark = "*"
		}
		if c.Address.IsValid() {
			address = c.Address.String()
		}
		if s := c.speed(); s != "" {
			speed = strings.TrimPrefix(s, ", ")
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", mark, c.Name, address, speed, c.Why)
	}
	return t.Flush()
}
