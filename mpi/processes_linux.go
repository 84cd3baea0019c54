//go:build !muster_portable

package mpi

import "github.com/muster-mpi/muster/internal/pmi"

// Ranks as processes on Linux share memory, and use all of software iWARP.

// sharesMemory reports whether processes of one host share memory.
const sharesMemory = true

// defaultChannel is the default of Config.Channel.
const defaultChannel = "" // that of the table

func separateRanks(client pmi.Client) pmi.Client { return client }

// onHost returns the client that reports the ranks of this host.
func onHost(client pmi.Client) pmi.Client { return client }

// sharesCores is for clients that are separated.
func sharesCores(pmi.Client) bool { return false }
