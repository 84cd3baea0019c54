package ofi

import (
	"strings"

	"github.com/muster-mpi/muster/rdma"
)

// Sizes and costs of a device. Costs are fixed proportions, as in decision 008: those of
// the software providers were measured on loopback, those of adapters are the usual order
// of magnitude.

// sizes are the buffers and queues of a device.
type sizes struct {
	buffer   int // bytes of a large buffer, this package's header included
	receives int // receive buffers
	sends    int // large buffers to send from
	depth    int // outstanding work
}

// headerBytes is the length of the header of each message: struct mo_header.
const headerBytes = 16

// pinning reports whether a provider registers memory in hardware.
func pinning(provider string) bool {
	base, _, _ := strings.Cut(provider, ";")
	switch base {
	case "verbs", "efa", "cxi", "opx", "psm", "psm2", "psm3", "usnic", "ucx", "gni", "bgq":
		return true
	}
	return false
}

// sizesOf keeps the buffers of a rank in a small job below some four megabytes even if all
// are used, and far below if messages are short.
func sizesOf(o offered, cfg Config) sizes {
	s := sizes{buffer: 32 << 10, receives: 64, sends: 32, depth: 256}
	if strings.HasSuffix(o.provider, ";ofi_rxm") {
		s.buffer = 16 << 10 // its own limit for messages without a handshake
	}
	if cfg.Transport == rdma.UD {
		s.receives = 128 // messages without a buffer are lost
	}
	if o.maxMessage < uint64(s.buffer) {
		s.buffer = int(o.maxMessage)
	}
	if o.receives > 0 {
		s.receives = min(s.receives, o.receives)
	}
	return s
}

// attrOf describes a device.
func attrOf(o offered, s sizes, delivery bool) rdma.Attr {
	a := rdma.Attr{
		Name:       "ofi:" + o.provider,
		Transports: o.transport,
		Ops:        rdma.Ops(rdma.OpSend),
		MaxSend:    s.buffer - headerBytes,
		MaxInline:  s.buffer - headerBytes,
		LocalKeys:  o.localKeys,
		Pins:       pinning(o.provider),
	}
	if o.transport != rdma.UD {
		a.Ops |= rdma.Ops(rdma.OpRead)
		if delivery {
			a.Ops |= rdma.Ops(rdma.OpWrite)
		}
	}
	if a.Pins {
		a.SendCost = rdma.Cost{Fixed: 1500, PerByte: 0.3} // the bytes are copied on both sides
		a.ReadCost = rdma.Cost{Fixed: 2500, PerByte: 0.08}
		a.PutCost = rdma.Cost{Fixed: 2500, PerByte: 0.08}
		a.RegCost = rdma.Cost{Fixed: 3000, PerByte: 0.05}
		a.EndCost = 2 * a.SendCost.Fixed // the peer's adapter acknowledges
		return a
	}
	a.RemoteCPU = true
	a.CopyAbove = 2 << 10 // sockets accept such a message at once: the copy would be useless
	a.SendCost = rdma.Cost{Fixed: 4500, PerByte: 0.3}
	a.ReadCost = rdma.Cost{Fixed: 9000, PerByte: 0.16}
	a.PutCost = rdma.Cost{Fixed: 9000, PerByte: 0.16}
	a.RegCost = rdma.Cost{Fixed: 250}
	return a
}
