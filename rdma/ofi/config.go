package ofi

import (
	"errors"

	"github.com/muster-mpi/muster/rdma"
)

// Config configures a device. The zero value opens the best available fabric.
type Config struct {
	// Provider is a libfabric provider as fi_info names it, such as "net",
	// "tcp;ofi_rxm" or "verbs;ofi_rxm". Default: chosen, see Survey.
	Provider string
	// Interface is the network interface, the domain as fi_info names it, or an
	// address of this host. Default: chosen, see Survey.
	Interface string
	// Reach states that there are peers on other hosts: the loopback interface is then
	// used only if Interface names it. Default: it is used if there is nothing else.
	Reach bool
	// Transport is the kind of queue pairs: rdma.RD over RDM endpoints, rdma.RC over MSG,
	// rdma.UD over DGRAM. Default: RD.
	Transport rdma.Transport
	// Index is this device's number among its peers: the rank in the job. Peers use it as
	// their rdma.PeerID for it.
	Index int
	// Peers is the number of peers. It only determines sizes.
	Peers int
	// Job separates jobs: messages of another job are dropped.
	Job string
	// Encrypt requires that others on the network cannot read messages. Libfabric cannot
	// request that from a provider, so Open returns ErrEncrypt.
	Encrypt bool
}

// ErrMissing reports that this program was built without libfabric, or that libfabric is
// not installed. It is also an rdma.ErrUnsupported.
var ErrMissing error = missingError{}

type missingError struct{}

func (missingError) Error() string        { return "no libfabric" }
func (missingError) Is(target error) bool { return target == rdma.ErrUnsupported }

// ErrEncrypt reports that libfabric cannot encrypt.
var ErrEncrypt = errors.New("libfabric does not encrypt messages")

// Offer is one path of communication that libfabric offers.
type Offer struct {
	Provider  string // "tcp;ofi_rxm"
	Fabric    string // "10.0.0.0/24"
	Domain    string // "eth0", "mlx5_0"
	Interface string // "eth0", "ib0"; "" if it has none
	Address   string // of this host on it, in readable form
	Endpoint  string // "RDM", "MSG", "DGRAM"
	Speed     uint64 // bits per second, 0: unknown
	Wait      string // how it waits without spinning: "fd", or the substitute
	Taken     bool   // Open uses it
	Reason    string // why it is used or not, for people
	MaxSend   int    // largest message
	Registers bool   // memory must be registered: pages are pinned
}
