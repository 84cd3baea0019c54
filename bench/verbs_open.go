package bench

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/muster-mpi/muster/internal/devices"
	"github.com/muster-mpi/muster/rdma"
)

// VerbsDevices lists the devices of verbs benchmarks: plain sockets, for comparison, and the
// devices of this library with their variants. docs are their descriptions.
func VerbsDevices() (names, docs []string) {
	names, docs = devices.VerbsNames()
	return append([]string{BareTCP, BareUDP}, names...), append([]string{"a plain socket that both ends poll", "the same of UDP"}, docs...)
}

// CheckVerbsDevice returns an error if there is no device of a name.
func CheckVerbsDevice(name string) error {
	if _, _, ok := devices.FindVerbs(name, netip.Addr{}); ok || name == BareTCP || name == BareUDP {
		return nil
	}
	names, _ := VerbsDevices()
	return fmt.Errorf("unknown device; use one of %s", strings.Join(names, ", "))
}

// OpenVerbsDevice implements OpenVerbs.
func OpenVerbsDevice(name string, at VerbsEndpoint) (rdma.Device, rdma.Transport, error) {
	ip, err := netip.ParseAddr(at.Address)
	if err != nil {
		return nil, 0, fmt.Errorf("address %q: %w", at.Address, err)
	}
	d, c, ok := devices.FindVerbs(name, ip)
	if !ok {
		return nil, 0, CheckVerbsDevice(name)
	}
	c.Index, c.Key, c.Fabric.Job = at.Side, at.Key, string(at.Key)
	dev, err := d.Open(&c)
	return dev, d.Type, err
}
