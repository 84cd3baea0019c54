package soft

import (
	"encoding/binary"
	"errors"

	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// The datagram on the wire. All integers are big-endian except the CRC, which keeps
// MPA's byte order (RFC 5044 section 4.4).
//
//	off len
//	  0   1  version (high four bits: 2) and kind (low four)
//	  1   1  0x01 ack requested now, 0x02 ack present, 0x1C path, 0x20 encrypted,
//	         0x40 the CRC covers the front alone (seal.go), 0x80 the ack may be delayed
//	  2   2  queue pair at the destination
//	  4   2  queue pair at the source
//	  6   6  incarnation of the destination
//	 12   6  incarnation of the source
//	 18   6  serial number of the datagram in the incarnation of the source
//	 24   4  name of the source
//	 28   4  packet number          RD segments only: of its path, new for each transmission
//	 32   4  data sequence          RD segments only: of the segment, the same in each
//	  .   4  first segment missing  with an ack
//	  .   4  end of the packets     with an ack: after the largest number received
//	  .   2  span                   with an ack: packets before the end that it reports
//	  .   2  ack delay in µs        with an ack: since the largest has arrived
//	  .   1  path                   with an ack: on which the packets have arrived
//	  .   1  words n                with an ack
//	  .   2  zero                   with an ack
//	  .  8n  missing packets        with an ack: bit i of word j is the packet 64j+i before the largest
//	 28   4  message number         Write-Record only
//	 32   4  bytes of the message   Write-Record only
//	 36   2  bytes in a datagram    Write-Record only
//	 38   2  index of the datagram  Write-Record only
//	 40   8  id of the work request Write-Record only
//	  .   .  DDP segment            all but acks
//	  .   4  CRC32C of all before
//	  .  16  authentication tag (seal.go)
//
// In an encrypted datagram everything from offset 28 to the CRC is ciphertext.
//
// An incarnation is a random number that a device draws when it is opened and publishes
// with its address. A datagram for an earlier process on the same port names another
// incarnation and is dropped, and so is a recorded datagram that is replayed to a later
// process. The name is the number that the user gave the process, which in a job is its
// rank: a peer may send before it is resolved, and its name identifies it.

type kind uint8

const (
	kindUnreliable kind = iota + 1 // UD: a DDP segment
	kindSegment                    // RD: a DDP segment, with or without an ack
	kindAck                        // RD: an ack alone
	kindRecord                     // UD: a piece of a Write-Record
	kindError                      // UD: a DDP segment with a Terminate
	kindRun                        // RD: a packet of a long segment (run.go); not in a header
	kindClose                      // RD over another device: an ack, and the sender closes
)

// unreliable reports whether datagrams of this kind are for UD.
func (k kind) unreliable() bool { return k == kindUnreliable || k == kindRecord || k == kindError }

// alone reports whether datagrams of this kind have no segment.
func (k kind) alone() bool { return k == kindAck || k == kindClose }

const (
	version     = 2
	headerLen   = 28
	numberedLen = 8
	ackLen      = 16
	recordLen   = 20

	flagUrgent = 0x01
	flagAck    = 0x02
	flagLone   = 0x02 // in the index of a run
	// flagEncrypted is set and checked by the keyring.
	flagEncrypted = 0x20
	flagPartial   = 0x40
	flagDelayAck  = 0x80
	pathShift     = 2
	pathMask      = 0x1C

	// piggybackWords bounds the ack in a datagram with a segment. It then reports fewer
	// packets than a standalone ack may.
	piggybackWords = 4
	// longestHeader is the room to reserve before the segment.
	longestHeader = headerLen + numberedLen + ackLen + 8*piggybackWords
)

// incarnation identifies one opening of a device: 48 random bits, never 0.
type incarnation uint64

// header precedes the DDP segment.
type header struct {
	kind            kind
	urgent          bool // an ack is requested at once
	delayAck        bool // the ack may be delayed by longAckDelay
	hasAck          bool
	to, from        uint16 // queue pairs
	toIncarnation   incarnation
	fromIncarnation incarnation
	serial          uint64
	name            uint32 // of the source
	path            uint8
	number          reliable.Number
	sequence        reliable.Sequence
	ack             reliable.Ack
	record          recordHeader
}

// ackMode returns how soon an ack is needed.
func (h *header) ackMode() reliable.AckMode {
	switch {
	case h.urgent:
		return reliable.AckNow
	case h.delayAck:
		return reliable.AckDelayed
	}
	return reliable.AckNormal
}

// append appends the encoded header to b.
func (h *header) append(b []byte) []byte {
	flags := h.path << pathShift
	if h.urgent {
		flags |= flagUrgent
	}
	if h.delayAck {
		flags |= flagDelayAck
	}
	if h.hasAck {
		flags |= flagAck
	}
	b = append(b, version<<4|byte(h.kind), flags)
	b = binary.BigEndian.AppendUint16(b, h.to)
	b = binary.BigEndian.AppendUint16(b, h.from)
	b = append48(b, uint64(h.toIncarnation))
	b = append48(b, uint64(h.fromIncarnation))
	b = append48(b, h.serial)
	b = binary.BigEndian.AppendUint32(b, h.name)
	if h.kind == kindSegment {
		b = binary.BigEndian.AppendUint32(b, uint32(h.number))
		b = binary.BigEndian.AppendUint32(b, uint32(h.sequence))
	}
	if h.kind == kindRecord {
		b = binary.BigEndian.AppendUint32(b, h.record.number)
		b = binary.BigEndian.AppendUint32(b, h.record.total)
		b = binary.BigEndian.AppendUint16(b, h.record.cut)
		b = binary.BigEndian.AppendUint16(b, h.record.index)
		b = binary.BigEndian.AppendUint64(b, h.record.id)
	}
	if h.hasAck {
		b = appendAck(b, &h.ack)
	}
	return b
}

func appendAck(b []byte, a *reliable.Ack) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(a.Next))
	b = binary.BigEndian.AppendUint32(b, uint32(a.End))
	b = binary.BigEndian.AppendUint16(b, a.Span)
	b = binary.BigEndian.AppendUint16(b, a.Held)
	b = append(b, a.Path, a.Words, 0, 0)
	for _, word := range a.Missing[:a.Words] {
		b = binary.BigEndian.AppendUint64(b, word)
	}
	return b
}

func append48(b []byte, v uint64) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(v>>32))
	return binary.BigEndian.AppendUint32(b, uint32(v))
}

func read48(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint16(b))<<32 | uint64(binary.BigEndian.Uint32(b[2:]))
}

// Why a datagram is rejected. The errors carry no details: anyone on the network can
// cause them, so they must not allocate.
var (
	errShort   = errors.New("soft: the datagram ends within its header")
	errVersion = errors.New("soft: the datagram has another protocol version")
	errKind    = errors.New("soft: the datagram has an unknown kind")
	errAck     = errors.New("soft: the ack in the datagram is malformed")
)

// parse decodes the header of a datagram whose seal is valid (seal.go) and returns the
// DDP segment behind it.
func (h *header) parse(b []byte) (ddpSegment []byte, err error) {
	if len(b) < headerLen {
		return nil, errShort
	}
	if b[0]>>4 != version {
		return nil, errVersion
	}
	h.kind = kind(b[0] & 0x0F)
	if h.kind == 0 || h.kind == kindRun || h.kind > kindClose {
		return nil, errKind
	}
	flags := b[1]
	h.urgent, h.delayAck, h.hasAck = flags&flagUrgent != 0, flags&flagDelayAck != 0, flags&flagAck != 0
	h.path = flags & pathMask >> pathShift
	h.to = binary.BigEndian.Uint16(b[2:])
	h.from = binary.BigEndian.Uint16(b[4:])
	h.toIncarnation = incarnation(read48(b[6:]))
	h.fromIncarnation = incarnation(read48(b[12:]))
	h.serial = read48(b[18:])
	h.name = binary.BigEndian.Uint32(b[24:])
	b = b[headerLen:]
	if h.kind == kindSegment {
		if len(b) < numberedLen {
			return nil, errShort
		}
		h.number = reliable.Number(binary.BigEndian.Uint32(b))
		h.sequence = reliable.Sequence(binary.BigEndian.Uint32(b[4:]))
		b = b[numberedLen:]
	}
	if h.kind == kindRecord {
		if len(b) < recordLen {
			return nil, errShort
		}
		h.record = recordHeader{
			number: binary.BigEndian.Uint32(b), total: binary.BigEndian.Uint32(b[4:]),
			cut: binary.BigEndian.Uint16(b[8:]), index: binary.BigEndian.Uint16(b[10:]),
			id: binary.BigEndian.Uint64(b[12:]),
		}
		b = b[recordLen:]
	}
	if h.hasAck {
		if b, err = parseAck(b, &h.ack); err != nil {
			return nil, err
		}
	}
	if h.hasAck && h.kind.unreliable() || h.kind.alone() && (!h.hasAck || len(b) > 0) {
		return nil, errAck
	}
	return b, nil
}

// parseAck decodes an ack. It leaves the words beyond its own as they are.
func parseAck(b []byte, a *reliable.Ack) (rest []byte, err error) {
	if len(b) < ackLen {
		return nil, errShort
	}
	a.Next = reliable.Sequence(binary.BigEndian.Uint32(b))
	a.End = reliable.Number(binary.BigEndian.Uint32(b[4:]))
	a.Span = binary.BigEndian.Uint16(b[8:])
	a.Held = binary.BigEndian.Uint16(b[10:])
	a.Path, a.Words = b[12], b[13]
	if a.Words > reliable.MaxWords || b[14]|b[15] != 0 {
		return nil, errAck
	}
	if b = b[ackLen:]; len(b) < 8*int(a.Words) {
		return nil, errShort
	}
	for i := range a.Missing[:a.Words] {
		a.Missing[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return b[8*int(a.Words):], nil
}
