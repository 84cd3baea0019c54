package devices

import (
	"net/netip"
	"strings"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/hybrid"
	"github.com/muster-mpi/muster/rdma/iwarp"
	"github.com/muster-mpi/muster/rdma/ofi"
	"github.com/muster-mpi/muster/rdma/shm"
	"github.com/muster-mpi/muster/rdma/soft"
)

// Config is what devices need to be opened. Each uses the fields that concern it.
type Config struct {
	// Index is the number of this device among Peers: a rank, on the host or in the job.
	Index, Peers int
	// Type is the kind of queue pairs. Default RD.
	Type rdma.Transport
	// Option is what follows the name of a device with an Option.
	Option string

	// Paths are the interfaces, one unless the device has Rails. Several reports that some
	// host has more than one, so that all hosts need the device for that.
	Paths   []Path
	Several bool
	// Rail is the number of the interface for connections if there are several. Follow
	// leaves it to the peers to begin with them.
	Rail   int
	Follow bool
	// Key is the secret of the job.
	Key     []byte
	Encrypt bool
	// NoCRC leaves out the CRC of data in datagrams, or of the frames of an RC queue pair;
	// ConnectionCRC adds one to the connections of RD queue pairs.
	NoCRC, ConnectionCRC bool
	// ConnectionBuffers, if not 0, is the number of receive buffers of each connection.
	ConnectionBuffers int
	MaxConnections    int
	PeerTimeout       time.Duration
	Served, Strict    bool // as in rdma/soft

	Shared shm.Config // of shared memory, except Index and Peers
	Fabric ofi.Config // of libfabric, except Provider, Index, Peers and Encrypt
}

// Path is an interface.
type Path = soft.Path

func openShared(c *Config) (rdma.Device, error) {
	s := c.Shared
	s.Index, s.Peers = c.Index, c.Peers
	return noNil(shm.Open(s))
}

func openFabric(c *Config) (rdma.Device, error) {
	f := c.Fabric
	f.Provider, f.Index, f.Peers, f.Encrypt = c.Option, c.Index, c.Peers, c.Encrypt
	return ofi.Open(f)
}

// bind returns the address of the first interface.
func (c *Config) bind() netip.AddrPort { return c.Paths[0].Bind }

// openDatagrams opens a device for datagrams, on one interface or several.
func openDatagrams(c *Config) (rdma.Device, error) {
	s := soft.Config{JobKey: c.Key, Encrypt: c.Encrypt, Name: uint32(c.Index), NoCRC: c.NoCRC, PeerTimeout: c.PeerTimeout, Served: c.Served}
	if c.Several {
		s.Paths = c.Paths
	} else {
		s.Bind, s.Label, s.Strict = c.bind(), "rd", c.Strict
	}
	return noNil(soft.Open(s))
}

// frameUD is the payload of an Ethernet frame with the headers of package soft.
const frameUD = 1400

// openUnreliable opens a device with reliability above unreliable datagrams, or for UD.
func openUnreliable(c *Config) (rdma.Device, error) {
	rd := c.Type != rdma.UD
	below, err := soft.Open(soft.Config{Bind: c.bind(), JobKey: c.Key, Encrypt: c.Encrypt, Name: uint32(c.Index), NoCRC: c.NoCRC, NoThread: rd})
	if err != nil || !rd {
		return noNil(below, err)
	}
	over := soft.Config{Device: below, Name: uint32(c.Index), PeerTimeout: c.PeerTimeout, Served: c.Served}
	if !c.bind().Addr().IsLoopback() {
		over.Datagram = frameUD
	}
	dev, err := soft.Open(over)
	if err != nil {
		_ = below.Close() // nothing has been sent
	}
	return noNil(dev, err)
}

// connectionBuffer is the size of one of ConnectionBuffers, as in package hybrid.
const connectionBuffer = 16 << 10

// openConnections opens a device with a connection to each peer, which needs TCP and
// nothing else, or for RC.
func openConnections(c *Config) (rdma.Device, error) {
	i := iwarp.Config{Address: c.bind().Addr().String(), Port: int(c.bind().Port()), Key: c.Key, Encrypt: c.Encrypt, NoCRC: c.NoCRC, Timeout: c.PeerTimeout, Served: c.Served, Strict: c.Strict}
	if c.Type == rdma.RC {
		return iwarp.Open(i)
	}
	if i.NoCRC = !c.ConnectionCRC; c.ConnectionBuffers > 0 {
		i.ConnectionBuffers, i.MaxSend = c.ConnectionBuffers, connectionBuffer
	}
	return iwarp.OpenMesh(i, uint32(c.Index))
}

// openHybrid opens a device for datagrams and connections.
func openHybrid(c *Config) (rdma.Device, error) {
	h := hybrid.Config{Name: uint32(c.Index), Address: c.bind().Addr(), Port: c.bind().Port(), JobKey: c.Key, Encrypt: c.Encrypt,
		NoCRC: c.NoCRC, ConnectionCRC: c.ConnectionCRC, ConnectionBuffers: c.ConnectionBuffers, MaxConnections: c.MaxConnections,
		PeerTimeout: c.PeerTimeout, Served: c.Served, Strict: c.Strict}
	if c.Several {
		h.Paths, h.Address, h.Follow = c.Paths, c.Paths[c.Rail].Bind.Addr(), c.Follow
	}
	return noNil(hybrid.Open(h))
}

// noNil keeps the nil pointer of a failed Open out of the interface.
func noNil[T rdma.Device](dev T, err error) (rdma.Device, error) {
	if err != nil {
		return nil, err
	}
	return dev, nil
}

// VerbsNames lists the devices and their variants that benchmarks can open, each with its
// description.
func VerbsNames() (names, docs []string) {
	for _, d := range All() {
		name := d.Name
		if d.Option != "" {
			name += ":" + d.Option
		}
		names, docs = append(names, name), append(docs, d.Doc)
		for _, v := range d.Verbs {
			names, docs = append(names, d.Name+"-"+v.Suffix), append(docs, v.Doc)
		}
	}
	return names, docs
}

// FindVerbs returns the device of a name, NAME, NAME-VARIANT or NAME:OPTION, and the
// configuration of its variant, on an interface with the given address.
func FindVerbs(name string, at netip.Addr) (d Device, c Config, ok bool) {
	c.Paths, c.Peers = []Path{{Bind: netip.AddrPortFrom(at, 0)}}, 2
	c.Fabric.Interface = at.String()
	name, c.Option, _ = strings.Cut(name, ":")
	for _, d := range All() {
		c.Type = d.Type
		if d.Name == name && (d.Option == "") == (c.Option == "") {
			return d, c, true
		}
		for _, v := range d.Verbs {
			if d.Name+"-"+v.Suffix == name && c.Option == "" {
				v.Set(&c)
				return d, c, true
			}
		}
	}
	return d, c, false
}
