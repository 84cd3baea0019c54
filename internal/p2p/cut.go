package p2p

// Transfers that are longer than one work request of the device may be. A Read Request
// has 32 bits for its length (RFC 5040 section 4.4), so adapters and the software
// devices have a limit, Attr.MaxTransfer. All protocols, puts and gets post through
// transferWith, which cuts there:
//
//	transferWith   posts the first piece and keeps the rest
//	Completed  posts the next piece; the protocol sees the end of the last, or a failure
//
// One piece is under way at a time. Where the limit is gigabytes the round trip between two
// pieces costs nothing, and a long transfer occupies one place in the send queue.

import "github.com/muster-mpi/muster/rdma"

// cutTransfer is what is left of a transfer that was cut.
type cutTransfer struct {
	rest   []byte
	remote uint64
	key    uint64
	op     rdma.Op
	flags  rdma.Flags
}

// pieceAlign keeps the pieces of long transfers on whole pages: copies between addresses
// that are not aligned alike are slower.
const pieceAlign = 1 << 20

// maxPiece is the longest Read or Write on a link, MaxSize if there is no limit.
func (l *Link) maxPiece() int {
	switch most := l.Attr.MaxTransfer; {
	case most <= 0:
		return MaxSize
	case most > pieceAlign:
		return most &^ (pieceAlign - 1)
	default:
		return most
	}
}

// next gives the next piece and where it goes.
func (c *cutTransfer) next(most int) (piece []byte, remote uint64) {
	n := min(most, len(c.rest))
	piece, remote = c.rest[:n], c.remote
	c.rest, c.remote = c.rest[n:], c.remote+uint64(n)
	return piece, remote
}

// resume posts the next piece of a transfer when the one before it has ended. It is false
// if that was the last or failed: then the protocol goes on.
func (m *Machine) resume(x *Xfer, status rdma.Status) bool {
	c := x.cut
	if len(c.rest) == 0 || status != rdma.StatusOK {
		x.cut = nil
		return false
	}
	piece, remote := c.next(x.Link.maxPiece())
	m.postTransfer(c.flags, x, c.op, piece, remote, c.key)
	return true
}
