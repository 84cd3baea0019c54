package mpi

// The devices of this library. Only this file, rails.go and processes_other.go refer to
// them.

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/netprobe"
	"github.com/muster-mpi/muster/internal/nodecoll"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/hybrid"
	"github.com/muster-mpi/muster/rdma/iwarp"
	"github.com/muster-mpi/muster/rdma/ofi"
	"github.com/muster-mpi/muster/rdma/shm"
	"github.com/muster-mpi/muster/rdma/soft"
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
		dev, err := openNetwork(cfg, client)
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
	c := shm.Config{
		Index: client.LocalRank(), Peers: client.LocalSize(),
		RanksOnCores: cfg.Advanced.RanksOnCores,
		RingBytes:    cfg.Advanced.RingBytes, Rings: cfg.Advanced.Rings,
		NoProcessVM: cfg.Advanced.NoProcessVM, NoMemfd: cfg.Advanced.NoMemfd,
	}
	if host != nil {
		c.Host = host.shm
	} else if !sharesMemory {
		c.Host = shm.NewHost() // for messages to the rank itself
	}
	return shm.Open(c)
}

func openNetwork(cfg *Config, client pmi.Client) (rdma.Device, error) {
	why := fmt.Sprintf("%d of its %d ranks run on other hosts", client.Size()-client.LocalSize(), client.Size())
	if cfg.NoSharedMemory {
		why = "MUSTER_NO_SHARED_MEMORY is set"
	}
	if cfg.Network == noNetwork {
		return nil, fmt.Errorf("mpi: rank %d: the job needs a network (%s), and MUSTER_NETWORK is none", client.Rank(), why)
	}
	if cfg.Network == softwareNetwork {
		return openNative(cfg, client, why)
	}
	dev, err := openFabric(cfg, client)
	if cfg.Network == "" && errors.Is(err, ofi.ErrMissing) {
		return openNative(cfg, client, why)
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

// openFabric opens libfabric.
func openFabric(cfg *Config, client pmi.Client) (rdma.Device, error) {
	if cfg.Encrypt && cfg.Network != "" {
		return nil, ofi.ErrEncrypt // whether libfabric is installed or not
	}
	c := networkConfig(cfg)
	c.Index, c.Peers, c.Job, c.Encrypt = client.Rank(), client.Size(), client.JobID(), cfg.Encrypt
	c.Reach = client.LocalSize() < client.Size()
	return ofi.Open(c)
}

// openSoftware opens the device that needs only Ethernet: software iWARP. For its key see
// networkkey.go. Several interfaces to other hosts are rails of one device.
func openSoftware(cfg *Config, client pmi.Client, why string) (rdma.Device, error) {
	fail := func(err error) (rdma.Device, error) {
		return nil, fmt.Errorf("mpi: rank %d on %s: the job needs a network (%s): %w", client.Rank(), client.Host(), why, err)
	}
	network, err := agreeOnRails(cfg, client)
	if err != nil {
		return fail(err)
	}
	network.report(os.Stderr, client.Rank())
	key, candidates := network.key, network.candidates
	if cfg.Channel == channelUD {
		dev, err := onFreePort(cfg, client, func(port uint16) (rdma.Device, error) {
			return openUnreliable(cfg, client, key, candidates, port)
		})
		if err != nil {
			return fail(err)
		}
		return dev, nil
	}
	if network.several {
		dev, err := onFreePort(cfg, client, func(port uint16) (rdma.Device, error) {
			return openRails(cfg, client, key, candidates, port)
		})
		if err != nil {
			return fail(err)
		}
		return dev, nil
	}
	dev, err := onInterface(cfg, client, candidates, func(at netip.AddrPort) (rdma.Device, error) {
		return openInterface(cfg, client, key, at)
	})
	if err != nil {
		return fail(err)
	}
	return dev, nil
}

// onInterface opens a device on the selected interface.
func onInterface(cfg *Config, client pmi.Client, candidates []netprobe.Candidate, open func(at netip.AddrPort) (rdma.Device, error)) (rdma.Device, error) {
	taken := slices.IndexFunc(candidates, func(r netprobe.Candidate) bool { return r.Taken })
	if taken < 0 { // possible ones are used when they are proved, by datagrams
		return nil, fmt.Errorf("no interface is sure to lead to other hosts: %s; select one by MUSTER_INTERFACE", netprobe.Summary(candidates))
	}
	dev, err := onFreePort(cfg, client, func(port uint16) (rdma.Device, error) {
		return open(netip.AddrPortFrom(candidates[taken].Address.Addr(), port))
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", candidates[taken].Name, err)
	}
	return dev, nil
}

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

// openInterface opens a device for reliable datagrams, connections or both on one interface.
func openInterface(cfg *Config, client pmi.Client, key []byte, at netip.AddrPort) (rdma.Device, error) {
	noCRC := at.Addr().IsLoopback() // no cable can corrupt the data
	switch cfg.Channel {
	case channelRC:
		return openMesh(cfg, client, key, at)
	case channelRD:
		return soft.Open(soft.Config{Bind: at, Label: channelRD, JobKey: key, Encrypt: cfg.Encrypt, Name: uint32(client.Rank()), NoCRC: noCRC, PeerTimeout: cfg.PeerTimeout, Served: servedBy(client), Strict: cfg.Advanced.Strict})
	}
	c := hybrid.Config{Name: uint32(client.Rank()), Address: at.Addr(), Port: at.Port(), JobKey: key, Encrypt: cfg.Encrypt, NoCRC: noCRC, ConnectionCRC: cfg.Advanced.ConnectionCRC, MaxConnections: cfg.Advanced.MaxConnections, PeerTimeout: cfg.PeerTimeout, Served: servedBy(client), Strict: cfg.Advanced.Strict}
	if cfg.Advanced.Eager == eagerFew {
		c.ConnectionBuffers = fewBuffers
	}
	return hybrid.Open(c)
}

// openMesh opens a device with a connection to each peer, which needs TCP and nothing else.
func openMesh(cfg *Config, client pmi.Client, key []byte, at netip.AddrPort) (rdma.Device, error) {
	c := iwarp.Config{Address: at.Addr().String(), Port: int(at.Port()), Key: key, Encrypt: cfg.Encrypt, NoCRC: !cfg.Advanced.ConnectionCRC, Timeout: cfg.PeerTimeout, Served: servedBy(client), Strict: cfg.Advanced.Strict}
	if cfg.Advanced.Eager == eagerFew {
		c.ConnectionBuffers, c.MaxSend = fewBuffers, fewBuffer
	}
	return iwarp.OpenMesh(c, uint32(client.Rank()))
}

// The channels of Config.Channel other than hybrid.
const (
	channelRD = "rd"
	channelRC = "rc"
	channelUD = "ud"
	// frameUD is the payload of an Ethernet frame with the headers of package soft.
	frameUD = 1400
)

// openUnreliable opens a device with reliability above unreliable datagrams, on the first
// selected interface.
func openUnreliable(cfg *Config, client pmi.Client, key []byte, candidates []netprobe.Candidate, port uint16) (rdma.Device, error) {
	for _, r := range candidates {
		if !r.Taken {
			continue
		}
		at := r.Address.Addr()
		below, err := soft.Open(soft.Config{Bind: netip.AddrPortFrom(at, port), JobKey: key, Encrypt: cfg.Encrypt, Name: uint32(client.Rank()), NoCRC: at.IsLoopback(), NoThread: true})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		c := soft.Config{Device: below, Name: uint32(client.Rank()), PeerTimeout: cfg.PeerTimeout, Served: servedBy(client)}
		if !at.IsLoopback() {
			c.Datagram = frameUD
		}
		dev, err := soft.Open(c)
		if err != nil {
			_ = below.Close() // nothing has been sent
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		return dev, nil
	}
	return nil, errors.New("no interface was selected") // chooseRails has checked it
}

const (
	// noNetwork is the Config.Network that forbids one.
	noNetwork = "none"
	// softwareNetwork is software iWARP, which is always available.
	softwareNetwork = "iwarp"
)

// goesBySoftware reports whether software iWARP carries messages; its threads run while the
// program computes.
func goesBySoftware(cfg *Config, client pmi.Client) bool {
	return (cfg.Network == softwareNetwork || cfg.Network == "" && !ofi.Built) &&
		(cfg.NoSharedMemory || client.LocalSize() < client.Size())
}

// networkConfig returns the network settings for libfabric.
func networkConfig(cfg *Config) ofi.Config {
	_, provider, _ := strings.Cut(cfg.Network, ":")
	return ofi.Config{Provider: provider, Interface: cfg.Interface}
}

func checkNetwork(s string) error {
	if s == noNetwork || s == softwareNetwork || s == "ofi" || strings.HasPrefix(s, "ofi:") && len(s) > len("ofi:") {
		return nil
	}
	return errors.New("want iwarp, ofi, ofi:PROVIDER such as ofi:net, or none")
}

// openAnotherDevice opens another device of the kind that carries most messages,
// for benchmarks that compare this package with the device below it. All ranks call it.
func (w *World) openAnotherDevice() (rdma.Device, error) {
	if !w.cfg.NoSharedMemory {
		return openShared(&w.cfg, w.client, nil)
	}
	return openNetwork(&w.cfg, published{w.client})
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
	return ofi.Survey(networkConfig(cfg))
}
