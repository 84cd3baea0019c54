package mpi

// The devices that a rank opens, from the table of package devices.

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/internal/devices"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/netprobe"
	"github.com/muster-mpi/muster/internal/nodecoll"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/internal/settings"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/ofi"
	"github.com/muster-mpi/muster/rdma/shm"
)

// localHost is shared by ranks that are goroutines of one process.
type localHost struct {
	shm   *shm.Host
	nodes *nodecoll.Host
}

func newHost() *localHost { return &localHost{shm.NewHost(), nodecoll.NewHost()} }

// openDevices opens the devices to all other ranks: shared memory for those on this host,
// and the network if there are others or if shared memory is disabled. The device of most
// messages comes first. oversubscribed reports whether ranks of this host share cores.
func openDevices(cfg *Config, client pmi.Client, host *localHost) (lanes []engine.LaneConfig, oversubscribed bool, err error) {
	defer func() {
		if err != nil {
			for _, l := range lanes {
				l.Device.Close()
			}
		}
	}()
	apart := client.LocalSize() < client.Size()
	defer func() { oversubscribed = oversubscribed || cfg.Advanced.RanksOnCores > shm.OnlineCores() }()
	if !cfg.NoSharedMemory || !sharesMemory && host == nil {
		dev, err := openShared(cfg, client, host)
		if err != nil {
			return lanes, false, fmt.Errorf("mpi: open shared memory for rank %d: %w", client.Rank(), err)
		}
		lanes = append(lanes, engine.LaneConfig{Device: dev, Local: true})
		oversubscribed = dev.Attr().Oversubscribed || sharesCores(client)
	} else {
		oversubscribed = client.LocalSize() > shm.OnlineCores() // also if this rank is bound to one of them
	}
	if apart || cfg.NoSharedMemory {
		dev, err := openNetwork(cfg, client, oversubscribed)
		if err != nil {
			return lanes, false, err
		}
		far := engine.LaneConfig{Device: dev}
		if client.LocalSize() == 1 && len(lanes) == 1 {
			lanes = []engine.LaneConfig{far, lanes[0]} // shared memory carries only messages to the rank itself
		} else {
			lanes = append(lanes, far)
		}
	}
	return lanes, oversubscribed, nil
}

func openShared(cfg *Config, client pmi.Client, host *localHost) (rdma.Device, error) {
	c := devices.Config{Index: client.LocalRank(), Peers: client.LocalSize(), Shared: shm.Config{
		RanksOnCores: cfg.Advanced.RanksOnCores,
		RingBytes:    cfg.Advanced.RingBytes, Rings: cfg.Advanced.Rings,
		NoProcessVM: cfg.Advanced.NoProcessVM, NoMemfd: cfg.Advanced.NoMemfd,
	}}
	if host != nil {
		c.Shared.Host = host.shm
	} else if !sharesMemory {
		c.Shared.Host = shm.NewHost() // for messages to the rank itself
	}
	shared, _ := devices.Find(devices.Host, "")
	return shared.Open(&c)
}

func openNetwork(cfg *Config, client pmi.Client, oversubscribed bool) (rdma.Device, error) {
	why := fmt.Sprintf("%d of its %d ranks run on other hosts", client.Size()-client.LocalSize(), client.Size())
	if cfg.NoSharedMemory {
		why = "MUSTER_NO_SHARED_MEMORY is set"
	} else if !sharesMemory {
		why = "messages between processes go over TCP on this system"
	}
	if cfg.Network == noNetwork {
		return nil, fmt.Errorf("mpi: rank %d: the job needs a network (%s), and MUSTER_NETWORK is none", client.Rank(), why)
	}
	if cfg.Network == softwareNetwork {
		return openSoftware(cfg, client, why, oversubscribed)
	}
	dev, err := openFabric(cfg, client)
	if cfg.Network == "" && errors.Is(err, ofi.ErrMissing) {
		return openSoftware(cfg, client, why, oversubscribed)
	}
	if err != nil {
		advice := "; muster explain network lists the alternatives"
		switch {
		case errors.Is(err, ofi.ErrMissing):
			advice = ""
		case errors.Is(err, ofi.ErrEncrypt):
			advice = ", and MUSTER_ENCRYPT is on; set MUSTER_NETWORK=iwarp for software iWARP, which does, or set MUSTER_ENCRYPT=off on a fabric that encrypts by itself or that no one else can access"
		}
		err = fmt.Errorf("mpi: rank %d on %s: the job needs a network (%s): %w%s", client.Rank(), client.Host(), why, err, advice)
		if cfg.Encrypt {
			endJob(client, err)
		}
		return nil, err
	}
	return dev, nil
}

// openFabric opens a network other than software iWARP.
func openFabric(cfg *Config, client pmi.Client) (rdma.Device, error) {
	name, option, _ := strings.Cut(cfg.Network, ":")
	fabric, _ := devices.Find(devices.Network, name) // checkNetwork has found it
	if cfg.Encrypt && fabric.Name == libfabric && name != "" {
		return nil, ofi.ErrEncrypt // whether libfabric is installed or not
	}
	return fabric.Open(&devices.Config{
		Index: client.Rank(), Peers: client.Size(), Option: option, Encrypt: cfg.Encrypt,
		Fabric: ofi.Config{Interface: cfg.Interface, Job: client.JobID(), Reach: client.LocalSize() < client.Size()},
	})
}

// openSoftware opens the device that needs only Ethernet: software iWARP. For its key see
// networkkey.go. Several interfaces to other hosts are rails of one device.
func openSoftware(cfg *Config, client pmi.Client, why string, oversubscribed bool) (rdma.Device, error) {
	fail := func(err error) (rdma.Device, error) {
		return nil, fmt.Errorf("mpi: rank %d on %s: the job needs a network (%s): %w", client.Rank(), client.Host(), why, err)
	}
	channel := cfg.channel()
	if err := channel.Available(); err != nil {
		return fail(fmt.Errorf("MUSTER_CHANNEL=%s %w; unset it, or set it to %s", channel.Name, err, defaultChannel))
	}
	network, err := agreeOnRails(cfg, client)
	if err != nil {
		return fail(err)
	}
	network.report(os.Stderr, client.Rank())
	c := devices.Config{
		Index: client.Rank(), Peers: client.Size(), Several: network.several, Follow: !oversubscribed, Key: network.key, Encrypt: cfg.Encrypt,
		ConnectionCRC: cfg.Advanced.ConnectionCRC, MaxConnections: cfg.Advanced.MaxConnections,
		PeerTimeout: cfg.PeerTimeout, Served: servedBy(client), Strict: cfg.Advanced.Strict,
	}
	if cfg.Advanced.Eager == eagerFew {
		c.ConnectionBuffers = fewBuffers
	}
	if c.Paths, err = network.paths(c.Several); err != nil {
		return fail(err)
	}
	// Consecutive ranks share a rail, so that the leaders of two groups of ranks have two.
	c.Rail = client.LocalRank() * len(c.Paths) / client.LocalSize()
	c.NoCRC = !slices.ContainsFunc(c.Paths, func(p devices.Path) bool { return !p.Bind.Addr().IsLoopback() }) // no cable can corrupt the data
	dev, err := onFreePort(cfg, onHost(client), func(port uint16) (rdma.Device, error) {
		for i := range c.Paths {
			c.Paths[i].Bind = netip.AddrPortFrom(c.Paths[i].Bind.Addr(), port)
		}
		return channel.Open(&c)
	})
	if err != nil && !c.Several {
		err = fmt.Errorf("%s: %w", c.Paths[0].Name, err)
	}
	if err != nil {
		return fail(err)
	}
	return dev, nil
}

// channel returns the device of Config.Channel.
func (c *Config) channel() devices.Device {
	d, _ := devices.Find(devices.Channel, cmp.Or(c.Channel, defaultChannel)) // checkChannel has found it
	return d
}

func checkChannel(name string) error { return settings.OneOf(devices.Names(devices.Channel)...)(name) }

// onFreePort opens a device on a free port of Config.Ports. The ranks of a host begin at
// different ports.
func onFreePort(cfg *Config, client pmi.Client, open func(port uint16) (rdma.Device, error)) (dev rdma.Device, err error) {
	ports, err := netprobe.ParsePorts(cfg.Ports)
	if err != nil {
		return nil, err
	}
	err = ports.Try(client.LocalRank(), func(port uint16) (err error) {
		dev, err = open(port)
		return err
	})
	if err != nil && cfg.Ports != "" {
		err = fmt.Errorf("MUSTER_PORTS is %s: %w", cfg.Ports, err)
	}
	return dev, err
}

func checkPorts(s string) error {
	_, err := netprobe.ParsePorts(s)
	return err
}

const (
	// noNetwork is the Config.Network that forbids one.
	noNetwork = "none"
	// softwareNetwork is software iWARP, which is always available. Its devices are the
	// channels.
	softwareNetwork = "iwarp"
	libfabric       = "ofi"
)

// goesBySoftware reports whether software iWARP carries messages; its threads run while the
// program computes.
func goesBySoftware(cfg *Config, client pmi.Client) bool {
	return (cfg.Network == softwareNetwork || cfg.Network == "" && !ofi.Built) &&
		(cfg.NoSharedMemory || client.LocalSize() < client.Size())
}

func checkNetwork(s string) error {
	name, option, cut := strings.Cut(s, ":")
	d, ok := devices.Find(devices.Network, name)
	if s == noNetwork || s == softwareNetwork || ok && (!cut || d.Option != "" && option != "") {
		return nil
	}
	want := []string{softwareNetwork}
	for _, name := range devices.Names(devices.Network) {
		want = append(want, name)
		if d, _ := devices.Find(devices.Network, name); d.Option != "" {
			want = append(want, name+":"+d.Option)
		}
	}
	return fmt.Errorf("want %s or %s", strings.Join(want, ", "), noNetwork)
}

// openAnotherDevice opens another device of the kind that carries most messages,
// for benchmarks that compare this package with the device below it. All ranks call it.
func (w *World) openAnotherDevice() (rdma.Device, error) {
	if !w.cfg.NoSharedMemory {
		return openShared(&w.cfg, w.client, nil)
	}
	return openNetwork(&w.cfg, published{w.client}, false)
}

// published is the client of a job whose first device has published the key already.
type published struct{ pmi.Client }

func (published) Put(string, []byte) error { return nil }

// servedBy reports whether the engine of a rank makes progress for its device while the
// program computes. It does not know of a second one.
func servedBy(client pmi.Client) bool {
	_, second := client.(published)
	return !second
}

// networkOffers lists the endpoints that libfabric offers, which of them cfg selects,
// and why. version is that of libfabric.
func networkOffers(cfg *Config) (offers []ofi.Offer, version string, err error) {
	if err := cfg.validate(); err != nil {
		return nil, "", err
	}
	_, provider, _ := strings.Cut(cfg.Network, ":")
	return ofi.Survey(ofi.Config{Provider: provider, Interface: cfg.Interface})
}
