package iwarp

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Anybody as the peer of Connect waits for the next initiator that speaks iWARP, of
// whatever make. Such a peer is dialled by an address of the form 10.0.0.1:7174. Neither
// can prove that it knows a key, so both need a device without one.
const Anybody rdma.Addr = "*"

// Config says how a device is opened. The zero value is a device on the loopback
// interface that lets everybody in.
type Config struct {
	// Address is the IP address on which peers reach this device. "": 127.0.0.1.
	Address string
	// Port is where this device listens. 0: the kernel chooses.
	Port int
	// Key is the secret of the job. Who does not know it is not connected. Empty:
	// anybody may connect who knows the address of a queue pair.
	Key []byte
	// Encrypt puts TLS 1.3 between MPA and TCP. It needs a Key, from which both ends make
	// their certificates. An end that encrypts and one that does not are not connected.
	// Frames then have no CRC unless the peer wants it: TLS finds every changed bit.
	Encrypt bool
	// NoCRC asks for frames without a CRC. There is one all the same if the peer
	// wants it.
	NoCRC bool
	// Markers asks the peer to put markers into what it sends to us.
	Markers bool
	// NoThread leaves the sockets alone while nobody polls: peers then reach this
	// memory only while the program is in the library.
	NoThread bool
	// Timeout is how long the peer's kernel may leave bytes or probes unanswered, or its
	// program may take no more of them, before the connection is lost. 0: 30 s.
	Timeout time.Duration
	// Retain is for a user who has another path to the peer and repeats there what a lost
	// connection has not delivered. Work is then not completed with an error when the
	// connection is lost: see [RetainQP].
	Retain bool
	// Strict is for tests and benchmarks of what adapters need: registering memory locks its
	// pages, and what is sent or received into must be registered (Attr.LocalKeys), except
	// what is sent inline.
	Strict bool
	// MaxTransfer is the longest Read or Write (Attr.MaxTransfer). 0: 4 GB less one byte, as
	// long as RFC 5040 allows. Tests lower it.
	MaxTransfer int
	// Segment is the longest DDP segment to send. 0: as much as fits a TCP segment,
	// so that a frame begins where a TCP segment does.
	Segment int
}
