package mpi

// The devices this library is built with. Only this file names them.

import (
	"fmt"

	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/shm"
)

// localHost is what ranks that are goroutines of one process share.
type localHost struct{ shm *shm.Host }

func newHost() *localHost { return &localHost{shm.NewHost()} }

func openDevice(cfg *Config, client pmi.Client, host *localHost) (rdma.Device, error) {
	c := shm.Config{
		Index: client.LocalRank(), Peers: client.LocalSize(),
		RingBytes: cfg.RingBytes, Rings: cfg.Rings,
		NoProcessVM: cfg.NoProcessVM, NoMemfd: cfg.NoMemfd,
	}
	if host != nil {
		c.Host = host.shm
	}
	dev, err := shm.Open(c)
	if err != nil {
		return nil, fmt.Errorf("mpi: open shared memory for rank %d: %w", client.Rank(), err)
	}
	return dev, nil
}
