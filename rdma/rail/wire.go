package rail

import (
	"encoding/binary"

	"github.com/muster-mpi/muster/rdma"
)

// The header of a piece: put encodes it, parse decodes it. The first eight bytes are
// the same for all kinds.
//
//	 0  kind, and 128 on the last piece of a Write, 64 on a message that is sent again
//	 1  epoch
//	 2  ack: low half of the number that the sender expects next
//	 4  number
//	 8  hello: incarnation 8, name 4
//	 8  data: request 4, 0, key 8, address 8, total 8, offset 8
//	 8  request: request 4, 0, key 8, address 8, total 8
//	 8  result: request 4, 0, offset 8
//	 8  answer: request 4, status 1
//
// All integers are little-endian.

type kind uint8

const (
	kindNone    kind = iota
	kindHello        // identity of the sender, and the number of its first piece; not numbered itself
	kindMessage      // a message of the user
	kindData         // a piece of a Write
	kindRequest      // a Read
	kindResult       // a piece of what was read
	kindAnswer       // the result of a Write, or of a refused Read
	kindAck          // ack alone; not numbered
	kindCount
)

const (
	flagLast  = 128 // data: last piece of its Write
	flagAgain = 64  // message: an ack is requested
)

const (
	commonLen  = 8
	helloLen   = 20
	dataLen    = 48
	requestLen = 40
	resultLen  = 24
	answerLen  = 13
)

// headerLen is the length of the header, by kind.
var headerLen = [kindCount]int{
	kindHello: helloLen, kindMessage: commonLen, kindData: dataLen,
	kindRequest: requestLen, kindResult: resultLen, kindAnswer: answerLen, kindAck: commonLen,
}

// headRoom is what is left of a head for the user's.
const headRoom = rdma.HeadMax - commonLen

type header struct {
	kind        kind
	epoch       uint8
	ack         uint16
	last        bool
	again       bool
	status      rdma.Status // answer
	number      uint32
	request     uint32 // which Write or Read of its sender
	name        uint32 // hello: Config.Name of the sender
	incarnation uint64 // hello: identifies the sender's queue pair
	key         uint64
	address     uint64 // start of the whole access
	total       uint64 // its length
	offset      uint64 // of the piece in it
}

// put encodes a header and returns its length.
func (h *header) put(b *[rdma.HeadMax]byte) int {
	le := binary.LittleEndian
	b[0], b[1] = byte(h.kind), h.epoch
	if h.last {
		b[0] |= flagLast
	}
	if h.again {
		b[0] |= flagAgain
	}
	le.PutUint16(b[2:], h.ack)
	le.PutUint32(b[4:], h.number)
	switch h.kind {
	case kindHello:
		le.PutUint64(b[8:], h.incarnation)
		le.PutUint32(b[16:], h.name)
	case kindData, kindRequest:
		le.PutUint64(b[8:], uint64(h.request))
		le.PutUint64(b[16:], h.key)
		le.PutUint64(b[24:], h.address)
		le.PutUint64(b[32:], h.total)
		if h.kind == kindData {
			le.PutUint64(b[40:], h.offset)
		}
	case kindResult:
		le.PutUint64(b[8:], uint64(h.request))
		le.PutUint64(b[16:], h.offset)
	case kindAnswer:
		le.PutUint32(b[8:], h.request)
		b[12] = byte(h.status)
	}
	return headerLen[h.kind]
}

// parse decodes the header of a piece and returns what follows it. It returns false for
// one that no version of this package sends.
func (h *header) parse(b []byte) (rest []byte, ok bool) {
	if len(b) < commonLen {
		return nil, false
	}
	le := binary.LittleEndian
	h.kind, h.last, h.again = kind(b[0]&^(flagLast|flagAgain)), b[0]&flagLast != 0, b[0]&flagAgain != 0
	h.epoch, h.ack, h.number = b[1], le.Uint16(b[2:]), le.Uint32(b[4:])
	if h.kind == kindNone || h.kind >= kindCount {
		return nil, false
	}
	n := headerLen[h.kind]
	if len(b) < n {
		return nil, false
	}
	switch h.kind {
	case kindHello:
		h.incarnation, h.name = le.Uint64(b[8:]), le.Uint32(b[16:])
	case kindData, kindRequest:
		h.request, h.key, h.address, h.total = le.Uint32(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[32:])
		if h.kind == kindData {
			h.offset = le.Uint64(b[40:])
		}
	case kindResult:
		h.request, h.offset = le.Uint32(b[8:]), le.Uint64(b[16:])
	case kindAnswer:
		h.request, h.status = le.Uint32(b[8:]), rdma.Status(b[12])
	}
	return b[n:], true
}
