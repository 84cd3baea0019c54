package main

// The devices of the verbs benchmarks, by name. A new device, or a new way to open one,
// is added only here.

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/hybrid"
	"github.com/muster-mpi/muster/rdma/iwarp"
	"github.com/muster-mpi/muster/rdma/ofi"
	"github.com/muster-mpi/muster/rdma/shm"
	"github.com/muster-mpi/muster/rdma/soft"
)

// verbsDevice is one way to open a device.
type verbsDevice struct {
	name, doc string
	kind      rdma.Transport
	open      func(bench.VerbsEndpoint) (rdma.Device, error)
}

func verbsDevices() []verbsDevice {
	return []verbsDevice{
		{"rc", "iWARP over TCP", rdma.RC, openIWARP(iwarp.Config{})},
		{"rc-nocrc", "the same without a CRC", rdma.RC, openIWARP(iwarp.Config{NoCRC: true})},
		{"rc-tls", "the same under TLS", rdma.RC, openIWARP(iwarp.Config{Encrypt: true})},
		{"rd", "reliable datagrams over UDP", rdma.RD, openDgram(soft.Config{})},
		{"rd-nocrc", "the same with a CRC of the headers alone", rdma.RD, openDgram(soft.Config{NoCRC: true})},
		{"rd-aead", "rd, encrypted", rdma.RD, openDgram(soft.Config{Encrypt: true})},
		{"ud", "datagrams over UDP that may be lost", rdma.UD, openDgram(soft.Config{})},
		{"ud-nocrc", "the same with a CRC of the headers alone", rdma.UD, openDgram(soft.Config{NoCRC: true})},
		{"hybrid", "rd for all peers and rc for busy ones", rdma.RD, openHybrid},
		{"shm", "shared memory", rdma.RD, func(at bench.VerbsEndpoint) (rdma.Device, error) {
			return shm.Open(shm.Config{Index: at.Side, Peers: 2})
		}},
	}
}

// ofiPrefix precedes the name of a libfabric provider.
const ofiPrefix = "ofi:"

func verbsDeviceNames() string {
	names := []string{bench.BareTCP, bench.BareUDP}
	for _, d := range verbsDevices() {
		names = append(names, d.name)
	}
	return strings.Join(names, ", ") + ", ofi:PROVIDER"
}

func checkVerbsDevice(name string) error {
	known := name == bench.BareTCP || name == bench.BareUDP || strings.HasPrefix(name, ofiPrefix) ||
		slices.ContainsFunc(verbsDevices(), func(d verbsDevice) bool { return d.name == name })
	if !known {
		return fmt.Errorf("--device %s: unknown device; use one of %s", name, verbsDeviceNames())
	}
	return nil
}

// openVerbsDevice implements bench.OpenVerbs.
func openVerbsDevice(name string, at bench.VerbsEndpoint) (rdma.Device, rdma.Transport, error) {
	if provider, ok := strings.CutPrefix(name, ofiPrefix); ok {
		d, err := ofi.Open(ofi.Config{Provider: provider, Interface: at.Address, Index: at.Side, Peers: 2, Job: string(at.Key)})
		if errors.Is(err, ofi.ErrMissing) {
			err = fmt.Errorf("%w: %w", rdma.ErrUnsupported, err)
		}
		return d, rdma.RD, err
	}
	for _, d := range verbsDevices() {
		if d.name == name {
			dev, err := d.open(at)
			return dev, d.kind, err
		}
	}
	return nil, 0, checkVerbsDevice(name)
}

func openIWARP(cfg iwarp.Config) func(bench.VerbsEndpoint) (rdma.Device, error) {
	return func(at bench.VerbsEndpoint) (rdma.Device, error) {
		cfg.Address, cfg.Key = at.Address, at.Key
		return iwarp.Open(cfg)
	}
}

func openDgram(cfg soft.Config) func(bench.VerbsEndpoint) (rdma.Device, error) {
	return func(at bench.VerbsEndpoint) (rdma.Device, error) {
		ip, err := netip.ParseAddr(at.Address)
		if err != nil {
			return nil, fmt.Errorf("--address %q: %w", at.Address, err)
		}
		cfg.Bind, cfg.JobKey = netip.AddrPortFrom(ip, 0), at.Key
		return soft.Open(cfg)
	}
}

func openHybrid(at bench.VerbsEndpoint) (rdma.Device, error) {
	ip, err := netip.ParseAddr(at.Address)
	if err != nil {
		return nil, fmt.Errorf("--address %q: %w", at.Address, err)
	}
	return hybrid.Open(hybrid.Config{Name: uint32(at.Side), Address: ip, JobKey: at.Key})
}
