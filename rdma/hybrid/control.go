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
//	1..3   0
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
	epoch      uint32
	count      uint64
	data       rdma.Addr
	control    rdma.Addr
	connection rdma.Addr
}

// append encodes a notice.
func (n *notice) append(b []byte) []byte {
	b = append(b, byte(n.kind), 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, n.epoch)
	b = binary.BigEndian.AppendUint64(b, n.count)
	for _, a := range n.addresses() {
		b = append(append(b, *a...), addressEnd)
	}
	return b
}

// addresses returns the addresses that a notice of its kind has.
func (n *notice) addresses() []*rdma.Addr {
	switch n.kind {
	case offer:
		return []*rdma.Addr{&n.data, &n.control, &n.connection}
	case accept:
		return []*rdma.Addr{&n.connection}
	}
	return nil
}

// parse decodes a notice.
func (n *notice) parse(b []byte) error {
	if len(b) < noticeHead || len(b) > noticeMax {
		return fmt.Errorf("hybrid: a notice of %d bytes is out of range", len(b))
	}
	*n = notice{kind: kind(b[0]), epoch: binary.BigEndian.Uint32(b[4:]), count: binary.BigEndian.Uint64(b[8:])}
	if n.kind == 0 || n.kind >= noticeKinds || b[1]|b[2]|b[3] != 0 {
		return fmt.Errorf("hybrid: a notice begins with % x, which is invalid", b[:4])
	}
	rest, ok := string(b[noticeHead:]), true
	for _, a := range n.addresses() {
		var text string
		text, rest, ok = strings.Cut(rest, string(addressEnd))
		if *a = rdma.Addr(text); !ok || text == "" {
			return fmt.Errorf("hybrid: a notice of kind %d lacks its addresses", n.kind)
		}
	}
	if rest != "" {
		return fmt.Errorf("hybrid: a notice of kind %d is followed by %d bytes", n.kind, len(rest))
	}
	return nil
}
