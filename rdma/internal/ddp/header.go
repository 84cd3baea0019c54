package ddp

import "encoding/binary"

// The header of a segment: RFC 5041 section 4 with the RDMAP byte, RFC 5040 section 4.1. A
// tagged segment names its destination by tag and address; an untagged one names its queue
// and message, and the receiver determines the destination. All numbers are big-endian.

// Opcode is the operation of a message: RFC 5040 section 4.2, RFC 7306 section 4.
type Opcode uint8

const (
	Write Opcode = iota
	ReadRequestOp
	ReadResponse
	Send
	SendInvalidate
	SendSolicited
	SendSolicitedInvalidate
	TerminateOp
	Immediate          // 8 bytes into a receive
	ImmediateSolicited // the same, with a solicited event
	AtomicRequestOp
	AtomicResponseOp
	opcodes
)

// The queues of the untagged model: RFC 5040 section 4.2, RFC 7306 section 10.2.
const (
	QueueSend      = 0
	QueueRequest   = 1
	QueueTerminate = 2
	QueueAtomic    = 3 // responses to atomics
	queues         = 4
)

const (
	TaggedLen   = 14
	UntaggedLen = 18
	// ControlMax is the longest payload of an opcode for which Control returns true.
	ControlMax = AtomicRequestLen

	flagTagged  = 0x80
	flagLast    = 0x40
	versionDDP  = 0x01
	versionMask = 0x03

	versionRDMAP = 0x40
	rdmapMask    = 0xc0
	opcodeMask   = 0x0f
)

// kinds describes the messages of each opcode.
var kinds = [opcodes]struct {
	name    string
	tagged  bool
	queue   uint8
	control bool
	payload int // exact length of the message; -1: any
}{
	Write:                   {"RDMA Write", true, 0, false, -1},
	ReadRequestOp:           {"RDMA Read Request", false, QueueRequest, true, ReadRequestLen},
	ReadResponse:            {"RDMA Read Response", true, 0, false, -1},
	Send:                    {"Send", false, QueueSend, false, -1},
	SendInvalidate:          {"Send with Invalidate", false, QueueSend, false, -1},
	SendSolicited:           {"Send with Solicited Event", false, QueueSend, false, -1},
	SendSolicitedInvalidate: {"Send with Solicited Event and Invalidate", false, QueueSend, false, -1},
	TerminateOp:             {"Terminate", false, QueueTerminate, true, -1},
	Immediate:               {"Immediate Data", false, QueueSend, false, ImmediateLen},
	ImmediateSolicited:      {"Immediate Data with Solicited Event", false, QueueSend, false, ImmediateLen},
	AtomicRequestOp:         {"Atomic Request", false, QueueRequest, true, AtomicRequestLen},
	AtomicResponseOp:        {"Atomic Response", false, QueueAtomic, true, AtomicResponseLen},
}

func (o Opcode) String() string {
	if o < opcodes {
		return kinds[o].name
	}
	return "unknown operation"
}

// Tagged reports whether messages of this kind carry a tag and an address.
func (o Opcode) Tagged() bool { return o < opcodes && kinds[o].tagged }

// Control reports whether the payload is an RDMAP header, which the device stores for
// Deliver. It is at most ControlMax long.
func (o Opcode) Control() bool { return o < opcodes && kinds[o].control }

// Invalidates reports whether the message carries a tag to invalidate.
func (o Opcode) Invalidates() bool { return o == SendInvalidate || o == SendSolicitedInvalidate }

// Solicits reports whether the message causes a solicited event at the receiver: RFC 5040
// section 5.3.
func (o Opcode) Solicits() bool {
	return o == SendSolicited || o == SendSolicitedInvalidate || o == ImmediateSolicited
}

// Header is the header of one segment.
type Header struct {
	Op   Opcode
	Last bool // the message ends with this segment
	Tag  Tag  // the destination of a tagged segment, or the tag that a Send invalidates
	TO   uint64
	// Untagged: the queue, the number of the message in it, and the segment's offset in
	// the message.
	QN, MSN, MO uint32
}

// HeaderLen returns the length of the header that begins with this byte.
func HeaderLen(first byte) int {
	if first&flagTagged != 0 {
		return TaggedLen
	}
	return UntaggedLen
}

// Len returns the length of the header.
func (h *Header) Len() int {
	if h.Op.Tagged() {
		return TaggedLen
	}
	return UntaggedLen
}

// Put writes the header to the front of b, which has room for Len bytes, and returns their
// number.
func (h *Header) Put(b []byte) int {
	b[0] = versionDDP
	if h.Last {
		b[0] |= flagLast
	}
	b[1] = versionRDMAP | byte(h.Op)
	binary.BigEndian.PutUint32(b[2:], uint32(h.Tag))
	if h.Op.Tagged() {
		b[0] |= flagTagged
		binary.BigEndian.PutUint64(b[6:], h.TO)
		return TaggedLen
	}
	binary.BigEndian.PutUint32(b[6:], h.QN)
	binary.BigEndian.PutUint32(b[10:], h.MSN)
	binary.BigEndian.PutUint32(b[14:], h.MO)
	return UntaggedLen
}

// Decode reads the header from the front of b, of a segment that has size bytes in all,
// and checks what can be checked without the state of the stream. b holds at least the
// header if the segment does. n is the length of the header; the payload is the following
// size-n bytes.
func (h *Header) Decode(b []byte, size int) (n int, f Fault) {
	*h = Header{}
	if len(b) == 0 {
		return 0, FaultDDP
	}
	n = HeaderLen(b[0])
	if len(b) < n || size < n {
		return 0, FaultDDP
	}
	h.Last = b[0]&flagLast != 0
	h.Op = Opcode(b[1] & opcodeMask)
	h.Tag = Tag(binary.BigEndian.Uint32(b[2:]))
	if n == TaggedLen {
		h.TO = binary.BigEndian.Uint64(b[6:])
	} else {
		h.QN = binary.BigEndian.Uint32(b[6:])
		h.MSN = binary.BigEndian.Uint32(b[10:])
		h.MO = binary.BigEndian.Uint32(b[14:])
	}
	return n, h.check(b[0], b[1], size-n)
}

// check returns the faults in the order of the layers. Reserved bits are ignored (RFC 5041
// section 4.1, RFC 5040 section 4.1).
func (h *Header) check(ddp, rdmap byte, payload int) Fault {
	isTagged := ddp&flagTagged != 0
	switch {
	case ddp&versionMask != versionDDP && isTagged:
		return FaultTaggedDDPVersion
	case ddp&versionMask != versionDDP:
		return FaultUntaggedDDPVersion
	case rdmap&rdmapMask != versionRDMAP:
		return FaultVersion
	case h.Op >= opcodes:
		return FaultOpcode
	}
	kind := kinds[h.Op]
	switch {
	case kind.tagged != isTagged:
		return FaultOpcode
	case isTagged:
		return NoFault
	case h.QN >= queues:
		return FaultQueue
	case h.QN != uint32(kind.queue):
		return FaultOpcode
	case uint64(h.MO)+uint64(payload) > 1<<32-1: // RFC 5041 section 5.2: below 2^32
		return FaultTooLong
	case !kind.control && kind.payload < 0:
		return NoFault
	case payload > ControlMax: // longer than any message of the queue
		return FaultTooLong
	case !h.Last || h.MO != 0 || kind.payload >= 0 && payload != kind.payload:
		return FaultUnspecified
	}
	return NoFault
}
