package hook

import (
	"context"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/ofi"
)

// Functions are the functions of package mpi that inspect calls. A comm is a
// *mpi.Comm, a cfg a *mpi.Config and worlds a []*mpi.World.
type Functions struct {
	// Peer checks a rank of comm on behalf of the call op. It returns the
	// engine of the calling rank and the peer's rank in the world. The engine
	// is nil if rank is ProcNull.
	Peer func(comm any, op string, rank int) (e *engine.Engine, world int, err error)
	// Async reports whether Config.Progress asks for a progress thread.
	Async func(comm any) bool
	// Collective selects the algorithm for a collective call.
	Collective func(comm any, collective string, bytes, ranks int) (*Collective, error)
	// NodeSegment returns the size of the shared segment of comm.
	NodeSegment func(comm any) (bytes int, reason string)
	// OpenDevice opens another device of the kind that comm uses.
	OpenDevice func(comm any) (rdma.Device, error)
	// NetworkOffers lists what libfabric offers for cfg.
	NetworkOffers func(cfg any) (offers []ofi.Offer, version string, err error)
	// SoftwareNetwork selects the interfaces of software iWARP.
	SoftwareNetwork func(ctx context.Context, cfg any) (Interfaces, error)
	// FailLocal marks a rank of a job that mpi.Local has made as failed.
	FailLocal func(worlds any, rank int, reason string)
	// Board returns the board of a world.
	Board func(world any) *pmi.Board
}

// CollectiveChoice is an algorithm with its parameters and its estimated cost.
type CollectiveChoice struct {
	Algorithm string
	Params    map[string]int
	Seconds   float64
}

// Collective is the result of Functions.Collective.
type Collective struct {
	Choice                         CollectiveChoice
	Reason                         string
	Others                         []CollectiveChoice
	Startup, PerByte, Copy, Reduce float64
	Nodes, Rails                   int
	Forms                          []HostForm
}

// HostForm is a form of a collective in memory of the host.
type HostForm struct {
	Name  string
	Limit int
	Why   string
}

// Interfaces is the result of Functions.SoftwareNetwork.
type Interfaces struct {
	Host, Summary, Table string
	Verified             bool
}

// registered is written once, while package mpi is initialized, and only read
// after that.
var registered Functions

// Register stores the functions of package mpi. The result lets a variable
// declaration call it.
func Register(f Functions) bool {
	registered = f
	return true
}

// Get returns the functions of package mpi.
func Get() *Functions { return &registered }
