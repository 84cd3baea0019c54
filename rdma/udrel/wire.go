package udrel

import (
	"encoding/binary"

	"github.com/muster-mpi/muster/rdma"
)

// The header of a packet. It is in the Head of the work request, followed by the Head
// of the user's message or the target of an access. All integers are big-endian.
//
//	0  version and kind   4  number           8  want             12  left         16  held
//	1  flags                 of this packet      the next number      send time        left of the packet
//	2  0                                         expected from        in µs            being acked, plus
//	                                             the peer                              the ack delay
//
// number is 0 and unused in a packet without a segment.

type kind uint8

const (
	kindSend     kind = iota + 1 // a piece of a message
	kindWrite                    // a piece of a Write: target follows
	kindRead                     // a Read request: target follows
	kindResponse                 // a piece of what a Read requested, or the end of a Write
	kindAck                      // an ack alone: receive history follows
	kindClose                    // the same, and the sender is closing
	kinds
)

// numbered reports whether packets of this kind have sequence numbers.
func (k kind) numbered() bool { return k < kindAck }

const (
	flagLast    = 1 << iota // last piece of its message
	flagUrgent              // an ack is requested at once
	flagRefused             // a response: the access was not allowed
	flagHeld                // held is set
	flagSolicited
)

const (
	version     = 1 << 4
	headerLen   = 20
	targetLen   = 20
	historyLen  = window / 8
	longestHead = rdma.HeadMax - headerLen // of the user's head, beside ours
)

// header is the header of a packet and its contents.
type header struct {
	kind     kind
	flags    uint8
	number   psn
	want     psn
	left     stamp
	held     stamp
	target   target         // kindWrite, kindRead
	history  receiveHistory // kindAck, kindClose
	contents []byte         // what follows
}

// target is the memory that an access names: the rest of the access, from this piece
// on.
type target struct {
	address uint64
	key     uint64
	length  uint32
}

// put encodes a header into the Head of a request and returns its length.
func (h *header) put(head *[rdma.HeadMax]byte) int {
	head[0], head[1] = version|byte(h.kind), h.flags
	head[2], head[3] = 0, 0
	binary.BigEndian.PutUint32(head[4:], uint32(h.number))
	binary.BigEndian.PutUint32(head[8:], uint32(h.want))
	binary.BigEndian.PutUint32(head[12:], uint32(h.left))
	binary.BigEndian.PutUint32(head[16:], uint32(h.held))
	switch h.kind {
	case kindWrite, kindRead:
		binary.BigEndian.PutUint64(head[headerLen:], h.target.address)
		binary.BigEndian.PutUint64(head[headerLen+8:], h.target.key)
		binary.BigEndian.PutUint32(head[headerLen+16:], h.target.length)
		return headerLen + targetLen
	case kindAck, kindClose:
		for i, w := range h.history {
			binary.BigEndian.PutUint64(head[headerLen+8*i:], w)
		}
		return headerLen + historyLen
	}
	return headerLen
}

// parse decodes a packet. It returns false for one that no peer of this version sends.
func (h *header) parse(b []byte) bool {
	if len(b) < headerLen || b[0]&0xf0 != version {
		return false
	}
	h.kind, h.flags = kind(b[0]&0x0f), b[1]
	if h.kind == 0 || h.kind >= kinds {
		return false
	}
	h.number = psn(binary.BigEndian.Uint32(b[4:]))
	h.want = psn(binary.BigEndian.Uint32(b[8:]))
	h.left = stamp(binary.BigEndian.Uint32(b[12:]))
	h.held = stamp(binary.BigEndian.Uint32(b[16:]))
	h.contents = b[headerLen:]
	switch h.kind {
	case kindWrite, kindRead:
		if len(h.contents) < targetLen {
			return false
		}
		h.target = target{binary.BigEndian.Uint64(h.contents), binary.BigEndian.Uint64(h.contents[8:]), binary.BigEndian.Uint32(h.contents[16:])}
		h.contents = h.contents[targetLen:]
		if int64(len(h.contents)) > int64(h.target.length) {
			return false
		}
	case kindAck, kindClose:
		if len(h.contents) < historyLen {
			return false
		}
		for i := range h.history {
			h.history[i] = binary.BigEndian.Uint64(h.contents[8*i:])
		}
		h.contents = nil
	}
	return true
}
