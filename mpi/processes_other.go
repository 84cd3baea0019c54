//go:build !linux || muster_portable

package mpi

import (
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma/shm"
)

// Ranks as processes on systems without the parts of Linux that the other devices need
// (decision 072): all messages between processes go over TCP, on one host as well.

// sharesMemory reports whether processes of one host share memory.
const sharesMemory = false

// defaultChannel needs TCP alone.
const defaultChannel = "rc"

// separateClient is the client of a rank that shares memory with no other: each rank is a
// node of its own.
type separateClient struct{ pmi.Client }

func separateRanks(client pmi.Client) pmi.Client { return separateClient{client} }

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

// sharesCores reports whether there are more ranks on this host than cores.
func sharesCores(client pmi.Client) bool { return onHost(client).LocalSize() > shm.OnlineCores() }
