package p2p

// Transfers that exceed the device's limit for one work request. A Read Request has 32
// bits for its length (RFC 5040 section 4.4), so adapters and the software devices have a
// limit, Attr.MaxTransfer. All protocols, puts and gets post through transferWith, which
// cuts there:
//
//	transferWith      posts the first piece and keeps the rest
//	HandleCompletion  posts the next piece; the protocol sees the completion of the
//	                  last one, or a failure
//
// One piece is pending at a time. With a limit of gigabytes the round trip between two
// pieces costs nothing, and a long transfer uses one slot of the send queue.

import "github.com/muster-mpi/muster/rdma"

// cutTransfer is the rest of a transfer that was cut.
type cutTransfer struct {
	rest   []byte
	remote uint64
	key    uint64
	op     rdma.Op
	flags  rdma.Flags
}

// pieceAlign keeps the pieces of long transfers page-aligned: copies between addresses
// with different alignment are slower.
const pieceAlign = 1 << 20

// maxPiece returns the longest Read or Write on a link, MaxSize if there is no limit.
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

// next returns the next piece and its remote address.
func (c *cutTransfer) next(most int) (piece []byte, remote uint64) {
	n := min(most, len(c.rest))
	piece, remote = c.rest[:n], c.remote
	c.rest, c.remote = c.rest[n:], c.remote+uint64(n)
	return piece, remote
}

// resume posts the next piece of a transfer when the previous one has completed. It
// returns false if that was the last one or failed; the protocol continues then.
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
