package hybrid

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/iwarp"
	"github.com/muster-mpi/muster/rdma/soft"
)

// Config configures a device.
type Config struct {
	// Name is the number by which peers identify this process. In a job it is the rank.
	Name uint32
	// Address is the IP address of this host on which peers reach it. The zero value is
	// 127.0.0.1.
	Address netip.Addr
	// Paths, if there are several, are the interfaces that datagrams use together.
	// Connections then use the one with Address, so the processes of a host should have
	// different ones.
	Paths []soft.Path
	// Port is the UDP and TCP port of this device. 0: the kernel chooses both.
	Port uint16
	// JobKey is the secret that all processes of the job share.
	JobKey []byte
	// Encrypt encrypts datagrams and connections. Peers must have the same setting.
	Encrypt bool
	// NoCRC excludes the user's bytes from the checksums of datagrams. It is for hosts that
	// communicate with themselves: the data never leaves the memory of the kernel.
	NoCRC bool
	// ConnectionCRC requests a CRC of each frame of a connection, beside TCP's checksum.
	// Connections have one if either end requests it.
	ConnectionCRC bool

	// MaxConnections is the maximum number of connections. 0: 16. A connection costs about
	// 100 KB and a socket.
	MaxConnections int
	// BusyAfter is the number of messages, and of datagrams that long ones fill, that a peer
	// must exchange with us recently to get a connection. The count is halved after each
	// Interval. 0: 64.
	BusyAfter int
	// Follow leaves it to the peers to begin: no peer gets a connection unless it offers one.
	Follow bool
	// CountMessages counts short messages on the loopback interface too, where datagrams
	// carry them faster.
	CountMessages bool
	// Interval is the time after which the counts are halved. 0: 1 s.
	Interval time.Duration

	// ConnectionBuffers, if not 0, is the number of receive buffers of each connection,
	// allocated when it is made, instead of the buffers that all connections share.
	ConnectionBuffers int
	// ConnectionBuffer is the size of such a buffer, and the longest message. 0: 16 KB.
	ConnectionBuffer int

	// PeerTimeout is that of package soft.
	PeerTimeout time.Duration
	// MaxTransfer is that of packages soft and iwarp.
	MaxTransfer int
	// Strict emulates the requirements of adapters, for tests and benchmarks: see package
	// soft.
	Strict bool
	// NoThread disables the progress threads: peers then reach this memory only while the
	// program is in the library.
	NoThread bool
	// Served means that the owner makes progress while the program computes (rdma.Attr.Served),
	// in place of a progress thread.
	Served bool

	recycleAfter uint32 // of rules, for tests
}

const (
	maxConnections   = 16
	busyAfter        = 64
	margin           = 2 // a peer must be so many times as busy as the one that it replaces
	share            = 4 // so many peers with short messages may have connections
	interval         = time.Second
	connectionBuffer = 16 << 10
	// connectionTimeout is how long a connection may make no progress before datagrams
	// replace it. TCP doubles its retransmission timeout each time, and so would resume
	// long after an interruption of the network; datagrams are repeated every 32 ms.
	connectionTimeout = 2 * time.Second
	// railTimeout is the same if datagrams have another interface to go on with.
	railTimeout = 500 * time.Millisecond
)

// connectionTimeout returns a part of PeerTimeout, which begins when datagrams take over.
func (c *Config) connectionTimeout() time.Duration {
	timeout := connectionTimeout
	if len(c.Paths) > 1 {
		timeout = railTimeout
	}
	if c.PeerTimeout > 0 {
		return min(timeout, c.PeerTimeout/3)
	}
	return timeout
}

// complete sets the defaults and rejects invalid values.
func (c *Config) complete() error {
	c.MaxConnections = cmp.Or(c.MaxConnections, maxConnections)
	c.BusyAfter = cmp.Or(c.BusyAfter, busyAfter)
	c.ConnectionBuffer = cmp.Or(c.ConnectionBuffer, connectionBuffer)
	c.Interval = cmp.Or(c.Interval, interval)
	if !c.Address.IsValid() {
		c.Address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	switch {
	case c.MaxConnections < 0 || c.BusyAfter < 0 || c.Interval < 0:
		return errors.New("hybrid: MaxConnections, BusyAfter and Interval of Config must not be negative, 0 is the default")
	case c.ConnectionBuffers < 0 || c.ConnectionBuffer < rdma.HeadMax:
		return fmt.Errorf("hybrid: %d buffers of %d bytes for each connection are invalid; ConnectionBuffer must be at least %d", c.ConnectionBuffers, c.ConnectionBuffer, rdma.HeadMax)
	}
	return nil
}

func (c *Config) rules() rules {
	r := rules{most: c.MaxConnections, piece: 1500 - 28, short: 1, earn: uint32(min(c.BusyAfter, 1<<30)), share: share, margin: margin, recycleAfter: c.recycleAfter}
	if c.Follow {
		r.earn = 1 << 31 // more than points ever are
	}
	if c.Address.IsLoopback() {
		r.piece = 16 << 10 // the datagrams of package soft
		if !c.CountMessages {
			r.short = 0
		}
	}
	return r
}

// openDevices opens the devices below.
func (c *Config) openDevices() (*soft.Device, iwarp.SharingDevice, error) {
	rd, err := soft.Open(soft.Config{Bind: netip.AddrPortFrom(c.Address, c.Port), Paths: c.Paths, JobKey: c.JobKey, Encrypt: c.Encrypt, NoCRC: c.NoCRC, Name: c.Name,
		NoThread: c.NoThread, Served: c.Served, PeerTimeout: c.PeerTimeout, Strict: c.Strict, MaxTransfer: c.MaxTransfer})
	if err != nil {
		return nil, nil, err
	}
	rc, err := iwarp.Open(iwarp.Config{Address: c.Address.String(), Port: int(c.Port), Key: c.JobKey, Encrypt: c.Encrypt, NoCRC: !c.ConnectionCRC, NoThread: c.NoThread, Served: c.Served, Strict: c.Strict, MaxTransfer: c.MaxTransfer, Retain: true,
		MaxSend: c.longest(), Timeout: c.connectionTimeout()})
	if err != nil {
		_ = rd.Close() // it was opened a moment ago
		return nil, nil, err
	}
	return rd, rc.(iwarp.SharingDevice), nil
}

// longest returns the longest message of a connection, or 0.
func (c *Config) longest() int {
	if c.ConnectionBuffers > 0 {
		return c.ConnectionBuffer
	}
	return 0
}

// attr returns the capabilities that both devices have.
func (c *Config) attr(rd, rc *rdma.Attr) rdma.Attr {
	a := *rd
	a.Name, a.Transports = "hybrid", rdma.RD
	a.Ops = rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead)
	a.MaxSend = min(rd.MaxSend, rc.MaxSend)
	a.MaxTransfer = min(rd.MaxTransfer, rc.MaxTransfer)
	a.RemoteCPU = rd.RemoteCPU || rc.RemoteCPU
	a.RegCost = rd.RegCost.Plus(rc.RegCost)
	a.MaxInline = min(rd.MaxInline, rc.MaxInline, a.MaxSend-rdma.HeadMax)
	a.SegmentHint = min(rd.SegmentHint, a.MaxSend)
	return a
}
