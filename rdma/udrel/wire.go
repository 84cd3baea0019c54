package udrel

import (
	"encoding/binary"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// The header of a packet. It is in the Head of the work request, followed by the Head
// of the user's message. All integers are big-endian.
//
//	off len
//	  0   1  version (high four bits: 2) and kind (low four)
//	  1   1  flags
//	  2   1  words n                with an ack
//	  3   1  zero
//	  4   4  data sequence          all but acks: of the segment, the same in each transmission
//	  8   4  packet number          all but acks: new for each transmission
//	  .   4  first segment missing  with an ack
//	  .   4  end of the packets     with an ack: after the largest number received
//	  .   2  span                   with an ack: packets before the end that it reports
//	  .   2  ack delay in µs        with an ack: since the largest has arrived
//	  .  8n  missing packets        with an ack: bit i of word j is the packet 64j+i before the largest
//	  .   8  address                Write and Read: of the rest of the access, from this packet on
//	  .   4  tag                    the same
//	  .   4  length                 the same

type kind uint8

const (
	kindSend     kind = iota + 1 // a piece of a message
	kindWrite                    // a piece of a Write
	kindRead                     // a Read request
	kindResponse                 // a piece of what a Read requested, or the end of a Write
	kindAck                      // an ack alone
	kindClose                    // the same, and the sender is closing
	kinds
)

// numbered reports whether packets of this kind carry a segment.
func (k kind) numbered() bool { return k < kindAck }

const (
	flagLast      = 1 << iota // last piece of its message
	flagUrgent                // an ack is requested at once
	flagRefused               // a response: the access was not allowed
	flagAck                   // an ack is present
	flagSolicited             // the user's message is
	flagDelayAck              // the ack may be delayed by longAckDelay
)

const (
	version     = 2 << 4
	baseLen     = 4
	numberedLen = baseLen + 8
	ackLen      = 12
	targetLen   = 16
	// maxWords is how many words an ack has that is sent alone.
	maxWords = (rdma.HeadMax - baseLen - ackLen) / 8
	// longestHead is how much of the user's head fits beside ours.
	longestHead = rdma.HeadMax - numberedLen
)

// header is the header of a packet and its contents.
type header struct {
	kind     kind
	flags    uint8
	sequence reliable.Sequence
	number   reliable.Number
	ack      reliable.Ack // flagAck
	target   target       // kindWrite, kindRead
	contents []byte       // what follows
}

// target is the memory that an access names.
type target struct {
	address uint64
	tag     ddp.Tag
	length  uint32
}

// from returns the rest of the access after n bytes.
func (t target) from(n int) target {
	return target{t.address + uint64(n), t.tag, t.length - uint32(n)}
}

// put encodes a header into the Head of a request and returns its length.
func (h *header) put(head *[rdma.HeadMax]byte) int {
	b := append(head[:0], version|byte(h.kind), h.flags, 0, 0)
	if h.kind.numbered() {
		b = binary.BigEndian.AppendUint32(b, uint32(h.sequence))
		b = binary.BigEndian.AppendUint32(b, uint32(h.number))
	}
	if h.flags&flagAck != 0 {
		b[2] = h.ack.Words
		b = binary.BigEndian.AppendUint32(b, uint32(h.ack.Next))
		b = binary.BigEndian.AppendUint32(b, uint32(h.ack.End))
		b = binary.BigEndian.AppendUint16(b, h.ack.Span)
		b = binary.BigEndian.AppendUint16(b, h.ack.Held)
		for _, word := range h.ack.Missing[:h.ack.Words] {
			b = binary.BigEndian.AppendUint64(b, word)
		}
	}
	if h.kind == kindWrite || h.kind == kindRead {
		b = binary.BigEndian.AppendUint64(b, h.target.address)
		b = binary.BigEndian.AppendUint32(b, uint32(h.target.tag))
		b = binary.BigEndian.AppendUint32(b, h.target.length)
	}
	return len(b)
}

// parse decodes a packet. It returns false for one that no peer of this version sends.
func (h *header) parse(b []byte) bool {
	if len(b) < baseLen || b[0]&0xf0 != version || b[3] != 0 {
		return false
	}
	h.kind, h.flags, h.ack.Words = kind(b[0]&0x0f), b[1], b[2]
	if b = b[baseLen:]; h.kind == 0 || h.kind >= kinds {
		return false
	}
	if h.kind.numbered() {
		if len(b) < numberedLen-baseLen {
			return false
		}
		h.sequence, h.number = reliable.Sequence(binary.BigEndian.Uint32(b)), reliable.Number(binary.BigEndian.Uint32(b[4:]))
		b = b[numberedLen-baseLen:]
	}
	if h.flags&flagAck != 0 {
		if h.ack.Words > maxWords || len(b) < ackLen+8*int(h.ack.Words) {
			return false
		}
		h.ack.Next, h.ack.End = reliable.Sequence(binary.BigEndian.Uint32(b)), reliable.Number(binary.BigEndian.Uint32(b[4:]))
		h.ack.Span, h.ack.Held = binary.BigEndian.Uint16(b[8:]), binary.BigEndian.Uint16(b[10:])
		b = b[ackLen:]
		for i := range h.ack.Missing[:h.ack.Words] {
			h.ack.Missing[i] = binary.BigEndian.Uint64(b)
			b = b[8:]
		}
	} else if !h.kind.numbered() {
		return false
	}
	if h.kind == kindWrite || h.kind == kindRead {
		if len(b) < targetLen {
			return false
		}
		h.target = target{binary.BigEndian.Uint64(b), ddp.Tag(binary.BigEndian.Uint32(b[8:])), binary.BigEndian.Uint32(b[12:])}
		if b = b[targetLen:]; uint64(len(b)) > uint64(h.target.length) {
			return false
		}
	}
	h.contents = b
	return true
}

// ackMode returns how soon an ack is needed.
func (h *header) ackMode() reliable.AckMode {
	switch {
	case h.flags&flagUrgent != 0:
		return reliable.AckNow
	case h.flags&flagDelayAck != 0:
		return reliable.AckDelayed
	}
	return reliable.AckNormal
}
