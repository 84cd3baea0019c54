//go:build !muster_portable

package mpi

import (
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
)

// Ranks as processes on Linux share memory, and use all of software iWARP.

// sharesMemory reports whether processes of one host share memory.
const sharesMemory = true

func separated(client pmi.Client) pmi.Client { return client }

// sharesCores is for clients that are separated.
func sharesCores(pmi.Client) bool { return false }

// openNative opens the network device that needs no library.
func openNative(cfg *Config, client pmi.Client, why string) (rdma.Device, error) {
	return openSoftware(cfg, client, why)
}
