package inspect

import (
	"context"
	"time"

	"github.com/muster-mpi/muster/internal/launch"
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/internal/hook"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/ofi"
)

// DeviceName returns the name of the device that carries messages to a rank of
// c, or "" if c has no such rank.
func DeviceName(c *mpi.Comm, rank int) string {
	e, world, err := hook.Get().Peer(c, "DeviceName", rank)
	if err != nil || e == nil {
		return ""
	}
	return e.Attr(world).Name
}

// Packets returns what determines the packets of messages to a rank of c: the
// attributes of the device, and the configuration of the point-to-point machine.
func Packets(c *mpi.Comm, rank int) (rdma.Attr, p2p.Config, error) {
	e, world, err := hook.Get().Peer(c, "Packets", rank)
	if err != nil || e == nil {
		return rdma.Attr{}, p2p.Config{}, err
	}
	return *e.Attr(world), e.P2P(), nil
}

// OpenDevice opens another device of the kind that carries most messages of c,
// for benchmarks that compare package mpi with the device below it. All ranks of
// the world call it.
func OpenDevice(c *mpi.Comm) (rdma.Device, error) { return hook.Get().OpenDevice(c) }

// CardsFetched returns the number of ranks whose address the calling rank has
// fetched from the launcher. It fetches an address when it first sends to a
// rank.
func CardsFetched(c *mpi.Comm) int {
	e, _, err := hook.Get().Peer(c, "CardsFetched", 0)
	if err != nil {
		return 0
	}
	return e.CardsFetched()
}

// NetworkOffers lists the endpoints that libfabric offers between hosts, which
// of them cfg selects, and why. version is that of libfabric. The error is
// [ofi.ErrMissing] if the program was built without libfabric or the host has
// none.
func NetworkOffers(cfg *mpi.Config) (offers []ofi.Offer, version string, err error) {
	return hook.Get().NetworkOffers(cfg)
}

// Interfaces is the choice of network interfaces for software iWARP.
type Interfaces struct {
	// Host is the name of this host. It is empty except on the first rank of
	// each host.
	Host string
	// Summary is one line about the interfaces in use; Table describes all
	// interfaces of the host.
	Summary, Table string
	// Verified reports whether the hosts have reached each other over these
	// interfaces. It is false in a job on one host.
	Verified bool
}

// SoftwareNetwork returns the interfaces over which software iWARP would carry
// messages between hosts. In a job on several hosts, the hosts first try to
// reach each other over all candidates. All ranks of the job call it, instead of
// [mpi.Init].
func SoftwareNetwork(ctx context.Context, cfg *mpi.Config) (Interfaces, error) {
	n, err := hook.Get().SoftwareNetwork(ctx, cfg)
	return Interfaces(n), err
}

// FailLocal marks a rank of a job made by [mpi.Local] as failed, as if its
// process had ended without Finalize. Calls of the other ranks return an error
// that names the rank and the reason. Package mpitest uses it.
func FailLocal(worlds []*mpi.World, rank int, reason string) {
	hook.Get().FailLocal(worlds, rank, reason)
}

// Waits describes which rank of a job made by [mpi.Local] waits for which, as the stuck
// report of "muster run" does. Package mpitest uses it.
func Waits(world *mpi.World) []string {
	return launch.DescribeBoard(hook.Get().Board(world), time.Now())
}

// Pulse returns a number that changes whenever a rank of such a job begins or ends a
// wait, and whether every rank that has not finished waits without a context that can
// end.
func Pulse(world *mpi.World) (progress uint64, blocked bool) {
	return hook.Get().Board(world).Pulse()
}
