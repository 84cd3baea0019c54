package iwarp

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Anybody as the peer of Connect waits for the next iWARP initiator, of any
// implementation. The other end dials such a peer by an address of the form 10.0.0.1:7174.
// Neither end can prove that it has a key, so both need a device without one.
const Anybody rdma.Addr = "*"

// defaultTimeout is that of Config.Timeout.
const defaultTimeout = 30 * time.Second

// Config configures a device. The zero value is a device on the loopback interface that
// accepts every peer.
type Config struct {
	// Address is the IP address on which peers reach this device. "": 127.0.0.1.
	Address string
	// Port is the port on which this device listens. 0: the kernel chooses.
	Port int
	// Key is the secret of the job. A peer without it cannot connect. Empty: any peer that
	// has the address of a queue pair may connect.
	Key []byte
	// Encrypt encrypts connections: the handshake of TLS 1.3, then AES-128-GCM records that
	// carry the frames of MPA. It needs a Key, from which both ends derive their
	// certificates. Both ends must have the same setting. Frames then have no
	// CRC unless the peer requests it: the tags of records reveal every changed bit.
	Encrypt bool
	// NoCRC requests frames without a CRC. They have one anyway if the peer requests it.
	NoCRC bool
	// Markers requests markers in the stream that the peer sends.
	Markers bool
	// NoThread disables the progress thread: peers then reach this memory only while the
	// program is in the library.
	NoThread bool
	// Served means that the owner makes progress while the program computes (rdma.Attr.Served),
	// in place of a progress thread.
	Served bool
	// Timeout is how long the peer's kernel may leave bytes or probes unacknowledged, or
	// its program may read none of them, before the connection is lost. 0: 30 s.
	Timeout time.Duration
	// Retain is for a user with another path to the peer that repeats there what a lost
	// connection has not delivered. Requests then do not complete with an error when the
	// connection is lost: see [RetainQP].
	Retain bool
	// Strict emulates the requirements of adapters, for tests and benchmarks: registration
	// locks pages, and send and receive buffers must be registered (Attr.LocalKeys),
	// except for inline sends.
	Strict bool
	// MaxSend is the longest message (Attr.MaxSend). 0: 64 KB. A receive queue that lends
	// its Depth of buffers, rather than as many as are needed, has buffers of that size.
	MaxSend int
	// ConnectionBuffers, if not 0, is the number of receive buffers of each connection of a
	// mesh, of MaxSend bytes, allocated when it is made, instead of the buffers that a
	// lending queue has for all connections.
	ConnectionBuffers int
	// MaxTransfer is the longest Read or Write (Attr.MaxTransfer). 0: 4 GB less one byte,
	// the limit of RFC 5040. Tests lower it.
	MaxTransfer int
	// Segment is the longest DDP segment to send. 0: 64 KB to a peer of this package, and
	// to others as much as fits a TCP segment, so that a frame begins where one does.
	Segment int

	endsSilent bool // the device ends silent connections: keepalive_linux.go
}

// timeout returns Timeout or its default.
func (cfg *Config) timeout() time.Duration {
	if cfg.Timeout <= 0 {
		return defaultTimeout
	}
	return cfg.Timeout
}
