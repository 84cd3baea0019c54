package hybrid

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/dgram"
	"github.com/muster-mpi/muster/rdma/iwarp"
)

// Channel says which of the two devices carry messages. It is the same in all processes
// of a job.
type Channel uint8

const (
	// Hybrid: datagrams for everybody, connections for busy peers.
	Hybrid Channel = iota
	// Datagrams: datagrams for everybody.
	Datagrams
	// Connections: every peer is moved to a connection with the first message. It is what
	// libraries did before, and what the other two are measured against.
	Connections
	channels
)

// String returns the name of a channel, which its device has too.
func (c Channel) String() string {
	if c < channels {
		return [channels]string{"hybrid", "rd", "rc"}[c]
	}
	return "channel?"
}

// Config says how to open a device.
type Config struct {
	// Name is a number that peers know this process by. In a job it is the rank.
	Name uint32
	// Address is the IP address of this host at which peers reach it. The zero value is
	// 127.0.0.1.
	Address netip.Addr
	// JobKey is the secret that all processes of the job share.
	JobKey []byte
	// Encrypt makes what is sent unreadable to others, by datagram and by connection. Peers
	// must have the same setting.
	Encrypt bool
	// NoCRC leaves the user's bytes out of the checksums. It is for hosts that talk to
	// themselves: nothing lies between but the memory of the kernel.
	NoCRC bool
	// Channel says what carries messages. The zero value is Hybrid.
	Channel Channel

	// MaxConnections is the most connections at a time. 0: 16. A connection costs about
	// 100 KB and a socket. Connections knows no limit.
	MaxConnections int
	// BusyAfter is how many full datagrams a peer must exchange with us, of late, to earn a
	// connection. What lies back by an Interval counts half. 0: 256. Messages that do not
	// fill a datagram earn nothing: datagrams carry them as fast, and without a socket.
	BusyAfter int
	// CountMessages lets every message count as one datagram more, short ones too.
	CountMessages bool
	// Margin is how many times as busy a peer must be as the least busy one that has a
	// connection, to take its place. 0: 2.
	Margin int
	// Interval is the time after which what was counted is halved. 0: 1 s.
	Interval time.Duration

	// ConnectionBuffers, if not 0, gives each connection so many receive buffers of its
	// own, posted when it is made, in place of the buffers that all connections share.
	ConnectionBuffers int
	// ConnectionBuffer is the size of such a buffer. Messages are no longer than that.
	// 0: 16 KB.
	ConnectionBuffer int

	// Datagram, SocketBuffer and PeerTimeout are those of package dgram.
	Datagram     int
	SocketBuffer int
	PeerTimeout  time.Duration
	// MaxTransfer is that of packages dgram and iwarp.
	MaxTransfer int
	// Strict is for tests and benchmarks of what adapters need: see package dgram.
	Strict bool
	// NoThread leaves the sockets alone while nobody polls: peers then reach this memory
	// only while the program is in the library.
	NoThread bool

	recycleAfter uint32 // of rules, for tests
}

const (
	maxConnections   = 16
	busyAfter        = 256
	margin           = 2
	interval         = time.Second
	connectionBuffer = 16 << 10
	// connectionTimeout is how long a connection may make no progress before datagrams
	// take its place. TCP waits twice as long before each attempt, and so would resume
	// long after a network that was interrupted; datagrams are repeated every 32 ms.
	connectionTimeout = 2 * time.Second
)

// connectionTimeout returns a part of PeerTimeout, which begins when datagrams take over.
func (c *Config) connectionTimeout() time.Duration {
	if c.PeerTimeout > 0 {
		return min(connectionTimeout, c.PeerTimeout/3)
	}
	return connectionTimeout
}

// complete fills in what was left open, and refuses what cannot be.
func (c *Config) complete() error {
	set := func(v *int, usual int) {
		if *v == 0 {
			*v = usual
		}
	}
	set(&c.MaxConnections, maxConnections)
	set(&c.BusyAfter, busyAfter)
	set(&c.Margin, margin)
	set(&c.ConnectionBuffer, connectionBuffer)
	if c.Interval == 0 {
		c.Interval = interval
	}
	if !c.Address.IsValid() {
		c.Address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if c.Channel == Connections {
		c.MaxConnections, c.BusyAfter, c.CountMessages = math.MaxInt, 1, true
	}
	switch {
	case c.Channel >= channels:
		return fmt.Errorf("hybrid: Config.Channel is %d; want Hybrid, Datagrams or Connections", c.Channel)
	case c.MaxConnections < 0 || c.BusyAfter < 0 || c.Margin < 1 || c.Interval < 0:
		return errors.New("hybrid: MaxConnections, BusyAfter, Margin and Interval of Config must not be negative, 0 is the usual value")
	case c.ConnectionBuffers < 0 || c.ConnectionBuffer < rdma.HeadMax:
		return fmt.Errorf("hybrid: %d buffers of %d bytes for each connection cannot be; ConnectionBuffer must be at least %d", c.ConnectionBuffers, c.ConnectionBuffer, rdma.HeadMax)
	}
	return nil
}

func (c *Config) rules() rules {
	r := rules{most: c.MaxConnections, piece: c.Datagram, earn: uint32(min(c.BusyAfter, 1<<30)), margin: uint32(min(c.Margin, 1<<10)), recycleAfter: c.recycleAfter}
	if r.piece == 0 { // as package dgram has it
		r.piece = 1500 - 28
		if c.Address.IsLoopback() {
			r.piece = 16 << 10
		}
	}
	if c.CountMessages {
		r.short = 1
	}
	return r
}

// openDevices opens the devices below.
func (c *Config) openDevices() (rd *dgram.Device, rc rdma.Device, err error) {
	rd, err = dgram.Open(dgram.Config{Bind: netip.AddrPortFrom(c.Address, 0), JobKey: c.JobKey, Encrypt: c.Encrypt, NoCRC: c.NoCRC, Name: c.Name,
		Datagram: c.Datagram, SocketBuffer: c.SocketBuffer, NoThread: c.NoThread, PeerTimeout: c.PeerTimeout, Strict: c.Strict, MaxTransfer: c.MaxTransfer})
	if err != nil || c.Channel == Datagrams {
		return rd, nil, err
	}
	rc, err = iwarp.Open(iwarp.Config{Address: c.Address.String(), Key: c.JobKey, Encrypt: c.Encrypt, NoCRC: c.NoCRC, NoThread: c.NoThread, Strict: c.Strict, MaxTransfer: c.MaxTransfer, Retain: true,
		Timeout: c.connectionTimeout()})
	if err != nil {
		_ = rd.Close() // it was opened a moment ago
		return nil, nil, err
	}
	return rd, rc, nil
}

// inline returns the longest body that both devices copy by themselves.
func (c *Config) inline(rd, rc *rdma.Attr) int {
	if rc == nil {
		return rd.MaxInline
	}
	return min(rd.MaxInline, rc.MaxInline)
}

// attr returns what both devices can do.
func (c *Config) attr(rd, rc *rdma.Attr) rdma.Attr {
	a := *rd
	a.Name, a.Transports = c.Channel.String(), rdma.RD
	a.Ops = rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead)
	if rc != nil {
		a.MaxSend = min(rd.MaxSend, rc.MaxSend)
		a.MaxTransfer = min(rd.MaxTransfer, rc.MaxTransfer)
		a.RemoteCPU = rd.RemoteCPU || rc.RemoteCPU
		a.RegCost = rd.RegCost.Plus(rc.RegCost)
		if c.ConnectionBuffers > 0 {
			a.MaxSend = min(a.MaxSend, c.ConnectionBuffer)
		}
	}
	a.MaxInline = min(max(mostInline, c.inline(rd, rc)), a.MaxSend-rdma.HeadMax) // copies.go
	a.CopyAbove = 0                                                              // a copy costs less than to wait for the peer's receipt
	a.SegmentHint = min(rd.SegmentHint, a.MaxSend)
	if c.Channel == Connections {
		a.SendCost, a.ReadCost, a.PutCost, a.EndCost = rc.SendCost, rc.ReadCost, rc.PutCost, rc.EndCost
	}
	return a
}
