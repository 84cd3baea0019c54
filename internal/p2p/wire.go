package p2p

// Packet formats. All integers are little-endian. A packet is the Head of a work request,
// followed by its Body if it carries data. Every packet starts with kind, flags and its
// sequence number on the link. The envelope has the same offset in all packets that have
// one, so matching reads it regardless of the kind.
//
//	        0     1      2       3     4      8        12      16    20      24     32
//	EAGER   kind  flags  -       vote  seq    context  source  tag   sign    total  | [handle] data
//	RTS     kind  flags  proto   vote  seq    context  source  tag   sign    total  | handle, address, key
//	 (spec) kind  flags  proto   vote  seq    context  source  tag   sign    total  | handle, handle of receiver, -
//	RTR     kind  flags  ahead         seq    context  source  tag   seen    length | handle, address, key
//	SEG     kind  flags  -       -     seq    first    -       -     -       offset | data
//	CTS     kind  flags  -       -     seq    handle           handle of receiver  length | address, key
//	FIN     kind  flags  status  -     seq    handle           -                   length
//	ACK     kind  flags  -       -     seq    handle
//	CREDIT  kind  flags  -       -     seq    -                -                   bytes
//	REVOKE  kind  flags  -       -     seq    handle of the RTR
//	REVOKED kind  flags  -       -     seq    handle of the RTR
//	RING    kind  flags  -       -     seq    bytes of a slot  slots               -      | address, key
//	SLOTS   kind  flags  -       -     seq    slots emptied

import (
	"encoding/binary"
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

type packetKind uint8

const (
	kindNone    packetKind = iota
	kindEager              // envelope and data, or the first segment of it
	kindSeg                // a further segment of an eager message
	kindRTS                // request to send: envelope, and where the data is
	kindCTS                // clear to send: where the data should go
	kindFIN                // the data has been transferred
	kindACK                // a synchronous eager message was matched
	kindCredit             // the receiver has consumed so many eager bytes
	kindRTR                // ready to receive: which message, and where its data should go
	kindRevoke             // an RTR must not be used any more
	kindRevoked            // it will not be used after this packet
	kindRing               // the peer may write packets into a ring
	kindSlots              // so many of its slots were emptied
	kindCount
)

var kindNames = [kindCount]string{"NONE", "EAGER", "SEG", "RTS", "CTS", "FIN", "ACK", "CREDIT", "RTR", "REVOKE", "REVOKED", "RING", "SLOTS"}

// voteMask covers the vote in the first word of a packet.
const voteMask = 0xff << (8 * offVote)

// maxTotal bounds the length in a header, so that lengths stay well within an int.
const maxTotal = 1 << (30 + 26*(^uint(0)>>63)) // 2^56, or 2^30 where an int has 32 bits

// Flags of EAGER.
const (
	flagSync = 1 // the sender waits for an ACK to the handle that follows
	flagNote = 2 // a note about its context, not for a receive (note.go)
)

const (
	headLen    = 32 // EAGER, SEG, FIN, ACK, CREDIT, REVOKE, REVOKED, SLOTS
	headSync   = 40 // EAGER with flagSync
	headRTS    = 56 // RTS, RTR
	headCTS    = 48 // CTS, RING
	offKind    = 0
	offFlags   = 1
	offProto   = 2
	offStatus  = 2
	offAhead   = 2
	offVote    = 3 // EAGER, RTS
	offSeq     = 4
	offContext = 8
	offFirst   = 8
	offHandle  = 8
	offSource  = 12
	offTag     = 16
	offPeer    = 16
	offSign    = 20 // EAGER, RTS
	offSeen    = 20 // RTR
	offTotal   = 24
	offExtra   = 32
	offAddr    = 40 // RTS, RTR
	offNamed   = 40 // RTS of a speculative rendezvous
	offKey     = 48 // RTS, RTR
	offCTSAddr = 32
	offCTSKey  = 40

	offRingAddr = 32
	offRingKey  = 40
)

func put32(b []byte, v uint32) { binary.LittleEndian.PutUint32(b, v) }
func put64(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }
func get16(b []byte) uint16    { return binary.LittleEndian.Uint16(b) }
func get32(b []byte) uint32    { return binary.LittleEndian.Uint32(b) }
func get64(b []byte) uint64    { return binary.LittleEndian.Uint64(b) }

// minLen is the least length of a packet by kind.
var minLen = [kindCount]int{
	kindNone: 1 << 30, kindEager: headLen, kindSeg: headLen, kindRTS: headRTS, kindCTS: headCTS,
	kindFIN: headLen, kindACK: headLen, kindCredit: headLen, kindRTR: headRTS,
	kindRevoke: headLen, kindRevoked: headLen, kindRing: headCTS, kindSlots: headLen,
}

// checkPacket returns an error for a malformed packet.
func checkPacket(pkt []byte) error {
	if len(pkt) < headLen {
		return fmt.Errorf("packet of %d bytes is shorter than a header", len(pkt))
	}
	k := packetKind(pkt[offKind])
	if k >= kindCount || len(pkt) < minLen[k] {
		return fmt.Errorf("packet of kind %d and %d bytes is invalid", k, len(pkt))
	}
	if get64(pkt[offTotal:]) > maxTotal {
		return fmt.Errorf("%s packet with length or offset %d is invalid", kindNames[k], get64(pkt[offTotal:]))
	}
	if (k == kindEager || k == kindRTS || k == kindRTR) && (int32(get32(pkt[offSource:])) < 0 || int32(get32(pkt[offTag:])) < 0) {
		return fmt.Errorf("envelope with source %d, tag %d, length %d is invalid",
			int32(get32(pkt[offSource:])), int32(get32(pkt[offTag:])), get64(pkt[offTotal:]))
	}
	if k == kindEager {
		head := headLen
		if pkt[offFlags]&flagSync != 0 {
			head = headSync
		}
		if len(pkt) < head || uint64(len(pkt)-head) > get64(pkt[offTotal:]) {
			return fmt.Errorf("eager packet of %d bytes does not fit its length %d", len(pkt), get64(pkt[offTotal:]))
		}
	}
	return nil
}

// FormatPacket formats a packet for scripts, traces and errors.
func FormatPacket(pkt []byte) string {
	if err := checkPacket(pkt); err != nil {
		return "bad packet: " + err.Error()
	}
	k := packetKind(pkt[offKind])
	s := fmt.Sprintf("%s #%d", kindNames[k], get32(pkt[offSeq:]))
	switch k {
	case kindEager, kindRTS, kindRTR:
		s += fmt.Sprintf(" ctx=%d src=%d tag=%d len=%d", get32(pkt[offContext:]),
			int32(get32(pkt[offSource:])), int32(get32(pkt[offTag:])), get64(pkt[offTotal:]))
		if k == kindRTS {
			s += " via=" + protocolName(pkt[offProto])
		} else if k == kindRTR {
			s += fmt.Sprintf(" seen=%d ahead=%d", get32(pkt[offSeen:]), get16(pkt[offAhead:]))
		} else if pkt[offFlags]&flagSync != 0 {
			s += fmt.Sprintf(" sync data=%d", len(pkt)-headSync)
		} else {
			s += fmt.Sprintf(" data=%d", len(pkt)-headLen)
		}
	case kindSeg:
		s += fmt.Sprintf(" of=#%d off=%d data=%d", get32(pkt[offFirst:]), get64(pkt[offTotal:]), len(pkt)-headLen)
	case kindCTS, kindFIN:
		s += fmt.Sprintf(" len=%d", get64(pkt[offTotal:]))
		if status := statusOf(pkt); k == kindFIN && status != rdma.StatusOK {
			s += fmt.Sprintf(" status=%q", status)
		}
	case kindRing:
		s += fmt.Sprintf(" slots=%d of=%d", get64(pkt[offPeer:]), get64(pkt[offHandle:]))
	case kindSlots:
		s += fmt.Sprintf(" emptied=%d", get64(pkt[offHandle:]))
	case kindCredit:
		s += fmt.Sprintf(" bytes=%d", get64(pkt[offTotal:]))
	}
	return s
}
