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
	d := q.dev
	at, _, ours, err := parseAddr(q.peer)
	named := q.bound && ours && err == nil
	n := d.strikes[at]
	out := d.Guard.Strike(&n, named, uint64(tag))
	if named && n > 0 {
		if d.strikes == nil {
			d.strikes = map[netip.AddrPort]guard.Strikes{}
		}
		d.strikes[at] = n
	}
	if out {
		q.recvCQ.Push(rdma.Completion{Op: rdma.OpDisconnected, Peer: q.name, Status: rdma.StatusRemoteAccess})
	}
}

// isBarred reports whether this device no longer connects with a peer. named means that the
// user has named it.
func (d *device) isBarred(peer rdma.Addr, named bool) bool {
	at, _, ours, err := parseAddr(peer)
	return err == nil && ours && d.Guard.Bars(d.strikes[at], named)
}
