//go:build linux

package iwarp

import (
	"net/netip"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/guard"
)

// A refused access ends its connection (RFC 5040 section 5.4), but a peer that guesses
// keys can connect again. So refusals are counted per remote device. After too many this
// device reports that peer and does not connect with it any more.

type strikes struct {
	guard guard.Guard
	peers map[netip.AddrPort]guard.Strikes // by peer, of those the user has named
}

// countRefusedWrite counts a refused segment, if it is a Write.
func (q *queuePair) countRefusedWrite(f ddp.Fault, raw []byte, size int) {
	var h ddp.Header
	if _, bad := h.Decode(raw, size); bad == ddp.NoFault && h.Op == ddp.Write {
		q.countRefusal(f, h.Tag)
	}
}

// countRefusal counts a refused access.
func (q *queuePair) countRefusal(f ddp.Fault, tag ddp.Tag) {
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

// isBarred reports whether this device no longer connects with a peer. named means that the
// user has named it.
func (d *device) isBarred(peer rdma.Addr, named bool) bool {
	at, _, ours, err := parseAddr(peer)
	return err == nil && ours && d.strikes.guard.Bars(d.strikes.peers[at], named)
}
