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

// BareDevice opens another device of the kind that carries c, for benchmarks
// that compare the messaging layer with what lies under it. All ranks of the
// world call it.
func BareDevice(c *Comm) (rdma.Device, error) { return openDevice(&c.w.cfg, c.w.client, nil) }

// DeviceName is the name of the device that carries c.
func DeviceName(c *Comm) string { return c.e.Attr().Name }
