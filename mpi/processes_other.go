//go:build !linux || muster_portable

package mpi

import (
	"fmt"
	"net/netip"

	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/shm"
)

// Ranks as processes on systems without the parts of Linux that the other devices need
// (decision 072): all messages between processes go over TCP, on one host as well.

// sharesMemory reports whether processes of one host share memory.
const sharesMemory = false

// separateClient is the client of a rank that shares memory with no other: each rank is a
// node of its own.
type separateClient struct{ pmi.Client }

func separated(client pmi.Client) pmi.Client { return separateClient{client} }

// Node returns the index of the node that a rank runs on.
func (separateClient) Node(rank int) int { return rank }

// LocalRank returns 0.
func (separateClient) LocalRank() int { return 0 }

// LocalSize returns 1.
func (separateClient) LocalSize() int { return 1 }

// onHost returns the client that reports the ranks of this host.
func onHost(client pmi.Client) pmi.Client {
	switch c := client.(type) {
	case separateClient:
		return c.Client
	case published:
		return onHost(c.Client)
	}
	return client
}

// hostSize returns the number of ranks on this host.
func hostSize(client pmi.Client) int { return onHost(client).LocalSize() }

// sharesCores reports whether there are more ranks on this host than cores.
func sharesCores(client pmi.Client) bool { return hostSize(client) > shm.OnlineCores() }

// openNative opens the network device that needs no library: connections over TCP, on one
// interface.
func openNative(cfg *Config, client pmi.Client, _ string) (rdma.Device, error) {
	fail := func(err error) (rdma.Device, error) {
		return nil, fmt.Errorf("mpi: rank %d on %s: messages between processes go over TCP on this system: %w", client.Rank(), client.Host(), err)
	}
	if cfg.Channel != "" && cfg.Channel != channelRC {
		return fail(fmt.Errorf("MUSTER_CHANNEL=%s needs Linux; unset it, or set it to %s", cfg.Channel, channelRC))
	}
	byTCP := *cfg
	byTCP.Channel = channelRC // one interface, chosen without probes by datagrams
	candidates, err := chooseRails(&byTCP, hostSize(client) < client.Size())
	if err != nil {
		return fail(err)
	}
	key, err := networkKey(cfg, client)
	if err != nil {
		return fail(err)
	}
	dev, err := onInterface(cfg, onHost(client), candidates, func(at netip.AddrPort) (rdma.Device, error) {
		return openMesh(cfg, client, key, at)
	})
	if err != nil {
		return fail(err)
	}
	return dev, nil
}
