package devices

import (
	"errors"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/ofi"
)

// Device is a row of the table.
type Device struct {
	Name string // by which users select it
	Doc  string
	Use  Use
	// Option, if not empty, is what may follow the name after a colon: "PROVIDER".
	Option string
	// Type is the kind of queue pairs that benchmarks of the device alone measure. Package
	// mpi uses RD.
	Type rdma.Transport
	// Rails reports whether the device uses several interfaces together. If Probes, hosts
	// dial each other over all interfaces before it uses one, by datagrams.
	Rails, Probes bool
	// Probe returns why this program cannot use the device, if it cannot.
	Probe func() error
	// Open opens the device.
	Open func(*Config) (rdma.Device, error)
	// Verbs are the variants for benchmarks of the device alone, Jobs those for jobs.
	Verbs []Variant
	Jobs  []Job
}

// Use is where package mpi uses a device.
type Use uint8

const (
	Host    Use = iota // between ranks of one host
	Channel            // between hosts: a channel of network iwarp, which Config.Channel selects
	Network            // between hosts, which Config.Network selects
)

// Variant is another way to open a device.
type Variant struct {
	Suffix, Doc string
	Set         func(*Config)
}

// Job is another way to use a device in a job: a setting of package mpi.
type Job struct{ Suffix, Setting string }

// All returns the table. The first device of a Use is its default.
func All() []Device {
	posted, rings, few := Job{"posted", "MUSTER_EAGER=posted"}, Job{"rings", "MUSTER_EAGER=rings"}, Job{"few", "MUSTER_EAGER=few"}
	strict, encrypted := Job{"strict", "MUSTER_STRICT=true"}, Job{"encrypted", "MUSTER_ENCRYPT=on"}
	noCRC, encrypt := func(c *Config) { c.NoCRC = true }, func(c *Config) { c.Encrypt = true }
	return []Device{
		{Name: "shm", Doc: "shared memory", Type: rdma.RD, Probe: needsLinux, Open: openShared},
		{Name: "hybrid", Doc: "rd for all peers and rc for busy ones", Use: Channel, Type: rdma.RD, Rails: true, Probes: true,
			Probe: needsLinux, Open: openHybrid, Jobs: []Job{rings}},
		{Name: "rd", Doc: "reliable datagrams over UDP", Use: Channel, Type: rdma.RD, Rails: true, Probes: true,
			Probe: needsLinux, Open: openDatagrams, Jobs: []Job{posted, rings, strict, encrypted},
			Verbs: []Variant{{"nocrc", "the same with a CRC of the headers alone", noCRC}, {"aead", "rd, encrypted", encrypt}}},
		{Name: "rc", Doc: "iWARP over TCP", Use: Channel, Type: rdma.RC,
			Open: openConnections, Jobs: []Job{posted, rings, few, strict, encrypted},
			Verbs: []Variant{{"nocrc", "the same without a CRC", noCRC}, {"tls", "the same under TLS", encrypt}}},
		{Name: "ud", Doc: "datagrams over UDP that may be lost", Use: Channel, Type: rdma.UD, Probes: true,
			Probe: needsLinux, Open: openUnreliable,
			Verbs: []Variant{{"nocrc", "the same with a CRC of the headers alone", noCRC}}},
		{Name: "ofi", Doc: "a provider of libfabric", Use: Network, Option: "PROVIDER", Type: rdma.RD, Probe: needsLibfabric, Open: openFabric},
	}
}

// Find returns the device of a name and use; of "" the default.
func Find(use Use, name string) (Device, bool) {
	list := All()
	i := slices.IndexFunc(list, func(d Device) bool { return d.Use == use && (name == "" || d.Name == name) })
	if i < 0 {
		return Device{}, false
	}
	return list[i], true
}

// Names returns the names of the devices of a use.
func Names(use Use) (names []string) {
	for _, d := range All() {
		if d.Use == use {
			names = append(names, d.Name)
		}
	}
	return names
}

// Available returns why this program cannot use the device, nil if it can.
func (d *Device) Available() error {
	if d.Probe == nil {
		return nil
	}
	return d.Probe()
}

func needsLinux() error {
	if portable {
		return errors.New("needs Linux")
	}
	return nil
}

func needsLibfabric() error {
	if !ofi.Built {
		return errors.New("build with -tags ofi")
	}
	return nil
}

// JobNames lists the devices and their variants in jobs.
func JobNames() (names []string) {
	for _, d := range All() {
		names = append(names, d.Name)
		for _, j := range d.Jobs {
			names = append(names, d.Name+"-"+j.Suffix)
		}
	}
	return names
}

// JobSettings returns the settings that make a job use a device or a variant of it, also
// between ranks of one host. All other settings stay as configured.
func JobSettings(name string) (settings []string, ok bool) {
	name, suffix, varied := strings.Cut(name, "-")
	for _, d := range All() {
		i := slices.IndexFunc(d.Jobs, func(j Job) bool { return j.Suffix == suffix })
		if d.Name != name || varied && i < 0 {
			continue
		}
		switch d.Use {
		case Channel:
			settings = []string{"MUSTER_NETWORK=iwarp", "MUSTER_NO_SHARED_MEMORY=true", "MUSTER_CHANNEL=" + name, "MUSTER_EAGER=srq"}
		case Network:
			settings = []string{"MUSTER_NETWORK=" + name, "MUSTER_NO_SHARED_MEMORY=true"}
		}
		if varied {
			settings = append(settings, d.Jobs[i].Setting) // the last one of a name counts
		}
		return settings, true
	}
	return nil, false
}
