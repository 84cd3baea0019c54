package hybrid

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/muster-mpi/muster/rdma"
)

// Notices that the two ends exchange: a fixed header, and for an offer or acceptance the
// addresses after it. They travel between separate RD queue pairs, so that they need no
// room in any message; the datagrams are sealed with the job's key.
//
//	0      kind
//	1      path
//	2..3   0
//	4..7   epoch
//	8..15  count
//	16..   addresses, each terminated by a newline: of the data queue pair and the control
//	       queue pair (an offer, whose receiver may not have resolved us), and of the
//	       connection's queue pair (an offer or acceptance)

const (
	noticeHead  = 16
	noticeMax   = 512
	addressEnd  = '\n'
	mostNotices = 16 // that may wait to be read; further ones wait at their senders
)

// notice is a control message.
type notice struct {
	kind       kind
	path       path
	epoch      uint32
	count      uint64
	data       rdma.Addr
	control    rdma.Addr
	connection rdma.Addr
}

// append encodes a notice.
func (n *notice) append(b []byte) []byte {
	b = append(b, byte(n.kind), byte(n.path), 0, 0)
	b = binary.BigEndian.AppendUint32(b, n.epoch)
	b = binary.BigEndian.AppendUint64(b, n.count)
	if n.kind == offer {
		b = append(append(b, n.data...), addressEnd)
		b = append(append(b, n.control...), addressEnd)
	}
	if n.kind == offer || n.kind == accept {
		b = append(append(b, n.connection...), addressEnd)
	}
	return b
}

// parse decodes a notice.
func (n *notice) parse(b []byte) error {
	if len(b) < noticeHead || len(b) > noticeMax {
		return fmt.Errorf("hybrid: a notice of %d bytes is out of range", len(b))
	}
	*n = notice{kind: kind(b[0]), path: path(b[1]), epoch: binary.BigEndian.Uint32(b[4:]), count: binary.BigEndian.Uint64(b[8:])}
	if n.kind == 0 || n.kind >= noticeKinds || n.path >= paths || b[2]|b[3] != 0 {
		return fmt.Errorf("hybrid: a notice begins with % x, which is invalid", b[:4])
	}
	rest := string(b[noticeHead:])
	next := func(to *rdma.Addr) bool {
		text, more, ok := strings.Cut(rest, string(addressEnd))
		*to, rest = rdma.Addr(text), more
		return ok && text != ""
	}
	ok := true
	if n.kind == offer {
		ok = next(&n.data) && next(&n.control)
	}
	if n.kind == offer || n.kind == accept {
		ok = ok && next(&n.connection)
	}
	if !ok || rest != "" {
		return fmt.Errorf("hybrid: a notice of kind %d lacks its addresses", n.kind)
	}
	return nil
}
