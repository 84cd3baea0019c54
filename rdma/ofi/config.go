package ofi

import (
	"errors"

	"github.com/muster-mpi/muster/rdma"
)

// Config says what to open. The zero value opens the best fabric there is.
type Config struct {
	// Provider is a libfabric provider as fi_info names it, such as "net",
	// "tcp;ofi_rxm" or "verbs;ofi_rxm". Default: chosen, see Survey.
	Provider string
	// Interface is the network interface, the domain as fi_info names it, or an
	// address of this host. Default: chosen, see Survey.
	Interface string
	// Reach says that there are peers on other hosts: the loopback interface is
	// then taken only if Interface names it. Default: it is taken if there is
	// nothing else.
	Reach bool
	// Transport is the kind of queue pairs: rdma.RD over endpoints of the kind
	// RDM, rdma.RC over MSG, rdma.UD over DGRAM. Default: RD.
	Transport rdma.Transport
	// Index is this device's number among those that talk to each other: the
	// rank in the job. Peers know it by that number, which is their rdma.PeerID
	// for it.
	Index int
	// Peers is how many there are. It decides about sizes only.
	Peers int
	// Job keeps jobs apart: messages of another job are dropped.
	Job string
	// Encrypt asks that others on the network cannot read messages. Libfabric has no
	// way to ask a provider for that, so Open refuses with ErrEncrypt.
	Encrypt bool
}

// ErrMissing says that this program was built without libfabric, or that
// libfabric is not installed.
var ErrMissing = errors.New("no libfabric")

// ErrEncrypt says that libfabric cannot encrypt.
var ErrEncrypt = errors.New("libfabric does not encrypt messages")

// Offer is one way to communicate that libfabric offers.
type Offer struct {
	Provider  string // "tcp;ofi_rxm"
	Fabric    string // "10.0.0.0/24"
	Domain    string // "eth0", "mlx5_0"
	Interface string // "eth0", "ib0"; "" if it has none
	Address   string // of this host on it, as people write it
	Endpoint  string // "RDM", "MSG", "DGRAM"
	Speed     uint64 // bits per second, 0: unknown
	Wait      string // how it waits without spinning: "fd", or what is done instead
	Taken     bool   // it is what Open takes
	Reason    string // why it was taken or not, for people
	MaxSend   int    // largest message
	Registers bool   // memory must really be registered: pages are pinned
}
