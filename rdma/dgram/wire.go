package dgram

import (
	"encoding/binary"
	"errors"
)

// The datagram on the wire. All integers are big-endian but the CRC, which keeps
// the order that MPA gave it (RFC 5044 section 4.4).
//
//	off len
//	  0   1  version (high four bits: 1) and kind (low four)
//	  1   1  0x01 a receipt is wanted now, 0x02 a receipt is here, 0x1C words in it, 0x20 encrypted,
//	         0x40 the CRC covers the front alone (seal.go), 0x80 the receipt may wait for long
//	  2   2  queue pair at the destination
//	  4   2  queue pair at the source
//	  6   6  life of the destination
//	 12   6  life of the source
//	 18   6  serial number of the datagram in the life of the source
//	 24   4  name of the source
//	 28   4  sequence number        RD segments only
//	 32   4  time of departure      RD segments only
//	  .   4  first number missing   with a receipt
//	  .   4  time echoed            with a receipt
//	  .   2  microseconds held      with a receipt
//	  .   2  zero                   with a receipt
//	  .  8n  sightings              with a receipt
//	 28   4  message number         Write-Record only
//	 32   4  bytes of the message  Write-Record only
//	 36   2  bytes in a datagram   Write-Record only
//	 38   2  index of the datagram  Write-Record only
//	 40   8  id of the work request Write-Record only
//	  .   .  DDP segment            all but receipts
//	  .   4  CRC32C of all before
//	  .  16  authentication tag (seal.go)
//
// In an encrypted datagram that is so of everything from offset 28 to the CRC.
//
// A life is a random number that a device draws when it is opened and publishes
// with its address. A datagram that was meant for an earlier process on the same
// port names another life and is dropped, and so is one that somebody recorded and
// plays again to a later one. The name is the number that the user gave the process,
// which in a job is its rank: a peer may be heard before it was resolved, and its name
// reports who it is.

type kind uint8

const (
	kindUnreliable kind = iota + 1 // UD: a DDP segment
	kindSegment                    // RD: a DDP segment, perhaps with a receipt
	kindReceipt                    // RD: a receipt alone
	kindRecord                     // UD: a piece of a Write-Record
	kindError                      // UD: a DDP segment with a Terminate
	kindEnd
)

// unreliable reports whether datagrams of this kind are for UD.
func (k kind) unreliable() bool { return k == kindUnreliable || k == kindRecord || k == kindError }

const (
	version     = 1
	headerLen   = 28
	numberedLen = 8
	receiptLen  = 12
	recordLen   = 20

	flagUrgent  = 0x01
	flagReceipt = 0x02
	// flagEncrypted is set and read by the seal.
	flagEncrypted = 0x20
	flagPartial   = 0x40
	flagPatient   = 0x80
	wordsShift    = 2
	wordsMask     = 0x1C

	// longestHeader is the room to leave before the segment.
	longestHeader = headerLen + numberedLen + receiptLen + 8*len(sightings{})
)

// life names one opening of a device: 48 random bits, never 0.
type life uint64

// header is what stands before the DDP segment.
type header struct {
	kind       kind
	urgent     bool // the sender waits for a receipt
	patient    bool // it can do without one for patientDelay
	hasReceipt bool
	to, from   uint16 // queue pairs
	toLife     life
	fromLife   life
	serial     uint64
	name       uint32 // of the source
	number     psn
	left       stamp
	receipt    receipt
	record     recordHeader
}

// hurry is how soon a receipt is wanted.
func (h *header) hurry() hurry {
	switch {
	case h.urgent:
		return urgent
	case h.patient:
		return patient
	}
	return ordinary
}

// append writes the header behind b.
func (h *header) append(b []byte) []byte {
	var flags byte
	words := h.receipt.seen.words()
	if h.urgent {
		flags |= flagUrgent
	}
	if h.patient {
		flags |= flagPatient
	}
	if h.hasReceipt {
		flags |= flagReceipt | byte(words)<<wordsShift
	}
	b = append(b, version<<4|byte(h.kind), flags)
	b = binary.BigEndian.AppendUint16(b, h.to)
	b = binary.BigEndian.AppendUint16(b, h.from)
	b = append48(b, uint64(h.toLife))
	b = append48(b, uint64(h.fromLife))
	b = append48(b, h.serial)
	b = binary.BigEndian.AppendUint32(b, h.name)
	if h.kind == kindSegment {
		b = binary.BigEndian.AppendUint32(b, uint32(h.number))
		b = binary.BigEndian.AppendUint32(b, uint32(h.left))
	}
	if h.kind == kindRecord {
		b = binary.BigEndian.AppendUint32(b, h.record.number)
		b = binary.BigEndian.AppendUint32(b, h.record.total)
		b = binary.BigEndian.AppendUint16(b, h.record.cut)
		b = binary.BigEndian.AppendUint16(b, h.record.index)
		b = binary.BigEndian.AppendUint64(b, h.record.id)
	}
	if h.hasReceipt {
		b = binary.BigEndian.AppendUint32(b, uint32(h.receipt.next))
		b = binary.BigEndian.AppendUint32(b, uint32(h.receipt.stamp))
		b = binary.BigEndian.AppendUint16(b, h.receipt.held)
		b = append(b, 0, 0)
		for _, word := range h.receipt.seen[:words] {
			b = binary.BigEndian.AppendUint64(b, word)
		}
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

// words is how many words of the set go on the wire: those to the last member.
func (q *sightings) words() int {
	n := len(q)
	for n > 0 && q[n-1] == 0 {
		n--
	}
	return n
}

// Why a datagram is not ours. They are values, not sentences with the particulars:
// anybody on the network can cause them, and that must not cost memory.
var (
	errShort   = errors.New("dgram: the datagram ends within its header")
	errVersion = errors.New("dgram: the datagram is of another version of the protocol")
	errKind    = errors.New("dgram: the datagram is of no known kind")
	errReceipt = errors.New("dgram: the receipt in the datagram is malformed")
)

// parse reads the header of a datagram whose seal is right (seal.go) and gives the
// DDP segment behind it.
func (h *header) parse(b []byte) (ddpSegment []byte, err error) {
	*h = header{}
	if len(b) < headerLen {
		return nil, errShort
	}
	if b[0]>>4 != version {
		return nil, errVersion
	}
	h.kind = kind(b[0] & 0x0F)
	if h.kind == 0 || h.kind >= kindEnd {
		return nil, errKind
	}
	flags := b[1]
	h.urgent, h.patient, h.hasReceipt = flags&flagUrgent != 0, flags&flagPatient != 0, flags&flagReceipt != 0
	h.to = binary.BigEndian.Uint16(b[2:])
	h.from = binary.BigEndian.Uint16(b[4:])
	h.toLife = life(read48(b[6:]))
	h.fromLife = life(read48(b[12:]))
	h.serial = read48(b[18:])
	h.name = binary.BigEndian.Uint32(b[24:])
	b = b[headerLen:]
	if h.kind == kindSegment {
		if len(b) < numberedLen {
			return nil, errShort
		}
		h.number = psn(binary.BigEndian.Uint32(b))
		h.left = stamp(binary.BigEndian.Uint32(b[4:]))
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
	words := int(flags & wordsMask >> wordsShift)
	switch {
	case h.hasReceipt:
		if b, err = h.parseReceipt(b, words); err != nil {
			return nil, err
		}
	case words > 0 || h.kind == kindReceipt:
		return nil, errReceipt
	}
	if h.hasReceipt && h.kind.unreliable() || h.kind == kindReceipt && len(b) > 0 {
		return nil, errReceipt
	}
	return b, nil
}

func (h *header) parseReceipt(b []byte, words int) (rest []byte, err error) {
	if words > len(h.receipt.seen) {
		return nil, errReceipt
	}
	if len(b) < receiptLen+8*words {
		return nil, errShort
	}
	h.receipt.next = psn(binary.BigEndian.Uint32(b))
	h.receipt.stamp = stamp(binary.BigEndian.Uint32(b[4:]))
	h.receipt.held = binary.BigEndian.Uint16(b[8:])
	b = b[receiptLen:]
	for i := range words {
		h.receipt.seen[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return b[8*words:], nil
}
