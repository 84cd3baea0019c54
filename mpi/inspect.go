package mpi

// Access for package inspect.

import (
	"context"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/mpi/internal/hook"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/ofi"
)

var _ = hook.Register(hook.Functions{
	Peer: func(comm any, op string, rank int) (*engine.Engine, int, error) {
		c := comm.(*Comm)
		if err := c.checkPeer(op, rank, 0); err != nil || rank == ProcNull {
			return nil, 0, err
		}
		return c.e, c.world(rank), nil
	},
	Async: func(comm any) bool { return comm.(*Comm).w.cfg.Progress == progressAsync },
	Collective: func(comm any, collective string, bytes, ranks int) (*hook.Collective, error) {
		return comm.(*Comm).explainCollective(collective, bytes, ranks)
	},
	NodeSegment:   func(comm any) (int, string) { return comm.(*Comm).nodeSegment() },
	OpenDevice:    func(comm any) (rdma.Device, error) { return comm.(*Comm).w.openAnotherDevice() },
	NetworkOffers: func(cfg any) ([]ofi.Offer, string, error) { return networkOffers(cfg.(*Config)) },
	SoftwareNetwork: func(ctx context.Context, cfg any) (hook.Interfaces, error) {
		return verifiedInterfaces(ctx, cfg.(*Config))
	},
	Board:     func(world any) *pmi.Board { return world.(*World).client.Board() },
	FailLocal: func(worlds any, rank int, reason string) { failLocal(worlds.([]*World), rank, reason) },
})
