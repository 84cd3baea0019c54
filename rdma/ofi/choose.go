package ofi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/rdma"
)

// Which of libfabric's offers to use. The provider comes first: a fabric with its own
// adapter before TCP, and never a provider that makes this package slower than without
// libfabric. Among the interfaces of one provider it is the one that leads to other hosts:
// silently using one that does not is how jobs hang.

// offered is one entry of the result of fi_getinfo.
type offered struct {
	provider, fabric, domain, address string
	family                            int // of the address: 4, 6 or 0
	transport                         rdma.Transport
	speed, maxMessage                 uint64 // speed in bits per second
	localKeys, providerKeys           bool
	perEndpoint                       bool // registrations belong to an endpoint
	keySize, receives                 int
	prefix                            bool // it requires room before messages
}

// host holds the properties of this host that the choice depends on.
type host struct {
	interfaces map[string]string // address to interface
	loopback   map[string]bool
	gateway    map[string]bool   // the default route uses it
	speed      map[string]uint64 // in bits per second
}

// The providers in order of preference, by the part before the semicolon.
var (
	adapters = []string{"cxi", "efa", "psm3", "psm2", "opx", "verbs"}
	overTCP  = []string{"tcp", "net", "tcp;ofi_rxm"}
	avoided  = map[string]string{
		"sockets":     "it is slow and no longer maintained",
		"shm":         "it uses signals; ranks of one host use Muster's shared memory",
		"sm2":         "ranks of one host use Muster's shared memory",
		"udp;ofi_rxd": "it has no wait object and is slow; TCP is better",
		"psm":         "its hardware is obsolete",
	}
)

// rating orders offers; less is better.
type rating struct {
	provider   int
	nature     int // of the interface
	route      int // the default route does not use it
	slowness   uint64
	family     int
	where      string
	why        string
	impossible bool
}

const (
	natureReal = iota
	natureVirtual
	natureLoopback
	natureLinkLocal
)

var natures = [...]string{"", "a virtual interface, as of containers and tunnels", "the loopback interface, which reaches only this host", "an address that is valid on one link only"}

// notIP is the family of other addresses; it is larger than all others.
const notIP = 16

// rate rates an offer.
func (h host) rate(o offered, cfg Config) rating {
	name := h.interfaceOf(o)
	r := rating{where: name, slowness: ^h.speedOf(o), route: 1, family: o.family}
	if h.gateway[name] {
		r.route = 0
	}
	if r.family == 0 {
		r.family = notIP // verbs also offers its own kind of address, which needs InfiniBand
	}
	base, layer, _ := strings.Cut(o.provider, ";")
	if i := slices.Index(overTCP, o.provider); i >= 0 {
		r.provider = len(adapters) + i
	} else if i := slices.Index(adapters, base); i >= 0 && (layer == "" || layer == "ofi_rxm") {
		r.provider = i
	} else {
		r.provider = len(adapters) + len(overTCP)
		if cfg.Provider == "" {
			r.impossible = true
			r.why = "it is used only if it is requested"
			if why := avoided[o.provider]; why != "" {
				r.why += ": " + why
			}
		}
	}
	switch {
	case strings.HasPrefix(strings.ToLower(o.address), "fe80:"):
		r.nature = natureLinkLocal
	case h.loopback[name]:
		r.nature = natureLoopback
	case virtualInterface(name):
		r.nature = natureVirtual
	}
	switch {
	case o.prefix:
		r.impossible, r.why = true, "it requires room before each message, which is not supported"
	case cfg.Provider != "" && !asked(o.provider, cfg.Provider):
		r.impossible, r.why = true, "the provider "+cfg.Provider+" was requested"
	case cfg.Interface != "" && !h.matches(o, cfg.Interface):
		r.impossible, r.why = true, "the interface "+cfg.Interface+" was requested"
	}
	return r
}

// asked reports whether a provider is the requested one. For a provider without reliable
// datagrams, libfabric offers those of a layer above it.
func asked(provider, want string) bool {
	return provider == want || provider == want+";ofi_rxm" || provider == want+";ofi_rxd"
}

func (h host) interfaceOf(o offered) string {
	if name := h.interfaces[o.address]; name != "" {
		return name
	}
	return o.domain
}

func (h host) speedOf(o offered) uint64 {
	if o.speed > 0 {
		return o.speed
	}
	return h.speed[h.interfaceOf(o)]
}

func (h host) matches(o offered, name string) bool {
	return name == o.domain || name == o.address || name == h.interfaceOf(o)
}

// virtualInterface reports whether an interface, by its name, was created by a container
// runtime, a hypervisor or a tunnel.
func virtualInterface(name string) bool {
	for _, prefix := range []string{"docker", "br-", "virbr", "veth", "tun", "tap", "wg", "cni", "flannel", "cali", "vmnet"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// compare orders two offers, both of which are possible.
func (r rating) compare(s rating) int {
	return cmp.Or(
		cmp.Compare(r.nature/natureLoopback, s.nature/natureLoopback), // interfaces that reach other hosts come first
		cmp.Compare(r.provider, s.provider),
		cmp.Compare(r.family/notIP, s.family/notIP),
		cmp.Compare(r.nature, s.nature),
		cmp.Compare(r.route, s.route),
		cmp.Compare(r.slowness, s.slowness),
		cmp.Compare(r.family, s.family),
		cmp.Compare(r.where, s.where),
	)
}

// reason returns in which respect an offer is worse than the chosen one.
func (r rating) reason(best rating) string {
	switch {
	case r.impossible:
		return r.why
	case r.nature > best.nature:
		return natures[r.nature]
	case r.provider > best.provider:
		return "a better provider is available"
	case r.route > best.route:
		return "the default route uses " + best.where
	case r.slowness > best.slowness:
		return best.where + " is faster"
	case r.family > best.family:
		return "IPv4 is available as well"
	}
	return "equal to the chosen one, which comes first by name"
}

// choose returns the index of the best offer.
func choose(list []offered, cfg Config, h host) (int, error) {
	best, rated := -1, make([]rating, len(list))
	for i, o := range list {
		rated[i] = h.rate(o, cfg)
		if !rated[i].impossible && (best < 0 || rated[i].compare(rated[best]) < 0) {
			best = i
		}
	}
	if best < 0 {
		return -1, nothing(list, cfg, h)
	}
	return best, nil
}

// nothing returns the error for a request that no offer matches, with the list of offers.
func nothing(list []offered, cfg Config, h host) error {
	what := "libfabric offers no " + endpointWord(cfg.Transport) + " endpoints"
	if cfg.Provider != "" {
		what += " of provider " + cfg.Provider
	}
	if cfg.Interface != "" {
		what += " on " + cfg.Interface
	}
	var have []string
	for _, o := range list {
		line := fmt.Sprintf("%s on %s", o.provider, h.interfaceOf(o))
		if o.address != "" {
			line += " (" + o.address + ")"
		}
		if !slices.Contains(have, line) {
			have = append(have, line)
		}
	}
	if len(have) == 0 {
		return fmt.Errorf("ofi: %s; fi_info lists the available ones", what)
	}
	return fmt.Errorf("ofi: %s; available: %s", what, strings.Join(have, ", "))
}

// explain describes the offers of one kind of endpoint for people. libfabric repeats
// itself; every offer is listed once.
func explain(list []offered, kind rdma.Transport, cfg Config, h host) []Offer {
	best := -1
	if kind == cfg.Transport {
		best, _ = choose(list, cfg, h)
	}
	var out []Offer
	seen := map[[4]string]bool{}
	for i, o := range list {
		key := [4]string{o.provider, o.fabric, o.domain, o.address}
		if seen[key] {
			continue
		}
		seen[key] = true
		e := Offer{
			Provider: o.provider, Fabric: o.fabric, Domain: o.domain, Interface: h.interfaceOf(o), Address: o.address,
			Endpoint: endpointWord(kind), Speed: h.speedOf(o), Wait: waitOf(o.provider),
			MaxSend: int(min(o.maxMessage, 1<<62)), Registers: pinning(o.provider),
		}
		switch {
		case kind != cfg.Transport:
			e.Reason = "another kind of endpoint: messages go over " + endpointWord(cfg.Transport)
		case i == best:
			e.Taken = true
			e.Reason = h.rate(o, cfg).merits(cfg)
		case best < 0:
			e.Reason = h.rate(o, cfg).why
		default:
			e.Reason = h.rate(o, cfg).reason(h.rate(list[best], cfg))
		}
		out = append(out, e)
	}
	return out
}

// merits returns why an offer was chosen.
func (r rating) merits(cfg Config) string {
	var list []string
	switch {
	case cfg.Provider != "":
		list = append(list, "the provider was requested")
	case r.provider < len(adapters):
		list = append(list, "a fabric with its own adapter")
	default:
		list = append(list, "the best of the providers over TCP")
	}
	switch {
	case cfg.Interface != "":
		list = append(list, "the interface was requested")
	case r.nature == natureLoopback:
		list = append(list, "there is only the loopback interface: other hosts cannot be reached")
	case r.route == 0:
		list = append(list, "the default route uses it")
	}
	return strings.Join(list, "; ")
}

// waitOf returns how a provider waits.
func waitOf(provider string) string {
	if strings.HasSuffix(provider, "ofi_rxd") || provider == "shm" {
		return "sleeping in steps of 50 µs to 2 ms: the provider has no wait object"
	}
	return "fd"
}
