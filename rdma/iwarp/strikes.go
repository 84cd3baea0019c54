//go:build linux

package iwarp

import (
	"net/netip"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/guard"
)

// A refused access ends its connection (RFC 5040 section 5.4), but a peer that guesses keys can
// connect again. So refusals are counted for the device at the other end. After too many
// this device reports that peer and connects with it no more.

type strikes struct {
	guard guard.Guard
	peers map[netip.AddrPort]guard.Strikes // that have any, of those the user has named
}

// struckBy counts a segment that was refused, if it is a Write.
func (q *queuePair) struckBy(f ddp.Fault, raw []byte, size int) {
	var h ddp.Header
	if _, bad := h.Decode(raw, size); bad == ddp.NoFault && h.Op == ddp.Write {
		q.struck(f, h.Tag)
	}
}

// struck counts an access that was refused.
func (q *queuePair) struck(f ddp.Fault, tag ddp.Tag) {
	if !f.Access() {
		return
	}
	s := &q.dev.strikes
	at, _, ours, err := parseAddr(q.peer)
	named := q.bound && ours && err == nil
	n := s.peers[at]
	out := s.guard.Strike(&n, named, uint64(tag))
	if named && n > 0 {
		if s.peers == nil {
			s.peers = map[netip.AddrPort]guard.Strikes{}
		}
		s.peers[at] = n
	}
	if out {
		q.recvCQ.push(completion{Completion: rdma.Completion{Op: rdma.OpDisconnected, Peer: q.name, Status: rdma.StatusRemoteAccess}})
	}
}

// bars reports whether this device does not connect with a peer any more. told says that the
// user has named it.
func (d *device) bars(peer rdma.Addr, named bool) bool {
	at, _, ours, err := parseAddr(peer)
	return err == nil && ours && d.strikes.guard.Bars(d.strikes.peers[at], named)
}
