package iwarp

import (
	"encoding/binary"
	"fmt"

	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// The request and the reply that begin an MPA connection (RFC 5044 section 7.1, RFC 6581
// section 6). Both are plain TCP bytes without CRC, marker or padding. append encodes a
// frame, parseStartup decodes one; mpa_negotiate.go derives the terms.

const (
	startupKeyLen     = 16
	startupHeader     = 20  // key, flags, revision and the length of the private data
	startupPrivateMax = 512 // RFC 5044 section 7.1.2, rule 9: includes the enhanced bytes
	startupMax        = startupHeader + startupPrivateMax
	enhancedLen       = 4

	requestKey = "MPA ID Req Frame"
	replyKey   = "MPA ID Rep Frame"
)

// Flags of a startup frame.
const (
	flagMarkers  = 0x80
	flagCRC      = 0x40
	flagReject   = 0x20
	flagEnhanced = 0x10
)

// Revisions of MPA. siw's revision 0 is not in any RFC.
const (
	revisionPlain    = 1 // RFC 5044
	revisionEnhanced = 2 // RFC 6581
)

// startup is a request or a reply.
type startup struct {
	reply    bool
	markers  bool // the sender of the frame wants to receive markers
	crc      bool // the sender of the frame wants a CRC, both ways
	reject   bool // replies only
	revision uint8
	enhanced bool // RFC 6581: the four fields below are valid
	p2p      bool
	ready    readySet
	ird, ord uint16
	private  []byte // of the user, without the enhanced bytes
}

// readySet is a set of the kinds of message that can be the first one of a peer-to-peer
// connection, which permits the responder to send (RFC 6581 section 6).
type readySet uint8

const (
	readySend  readySet = 1 << iota // a Send without bytes
	readyWrite                      // an RDMA Write without bytes
	readyRead                       // an RDMA Read without bytes
)

// Bits in the two words of the enhanced bytes (RFC 6581 section 9.1).
const (
	enhancedP2P   = 0x8000 // first word
	enhancedSend  = 0x4000
	enhancedWrite = 0x8000 // second word
	enhancedRead  = 0x4000
	depthMask     = 0x3FFF
)

// depthOpen as IRD or ORD means that this depth is not negotiated.
const depthOpen = depthMask

// append appends the frame to dst.
func (s *startup) append(dst []byte) ([]byte, error) {
	length := len(s.private)
	if s.enhanced {
		length += enhancedLen
	}
	if length > startupPrivateMax {
		return dst, fmt.Errorf("iwarp: %d bytes of private data do not fit an MPA startup frame, whose limit is %d: send them as a message",
			length, startupPrivateMax)
	}
	key, flags := requestKey, byte(0)
	if s.reply {
		key = replyKey
	}
	for _, f := range []struct {
		on  bool
		bit byte
	}{{s.markers, flagMarkers}, {s.crc, flagCRC}, {s.reply && s.reject, flagReject}, {s.enhanced, flagEnhanced}} {
		if f.on {
			flags |= f.bit
		}
	}
	dst = append(dst, key...)
	dst = append(dst, flags, s.revision)
	dst = binary.BigEndian.AppendUint16(dst, uint16(length))
	if s.enhanced {
		dst = s.appendEnhanced(dst)
	}
	return append(dst, s.private...), nil
}

func (s *startup) appendEnhanced(dst []byte) []byte {
	first, second := s.ird&depthMask, s.ord&depthMask
	if s.p2p { // without it the other bits are 0: RFC 6581 section 9.1
		first |= enhancedP2P
		if s.ready&readySend != 0 {
			first |= enhancedSend
		}
		if s.ready&readyWrite != 0 {
			second |= enhancedWrite
		}
		if s.ready&readyRead != 0 {
			second |= enhancedRead
		}
	}
	dst = binary.BigEndian.AppendUint16(dst, first)
	return binary.BigEndian.AppendUint16(dst, second)
}

// parseStartup decodes the frame at the start of b and returns its length; 0 means that
// more bytes are needed. It rejects what can never become a frame as soon as possible, so
// that a foreign connection cannot make us wait for 512 bytes. private points into b.
func parseStartup(b []byte, reply bool) (s startup, n int, err error) {
	key, other := requestKey, replyKey
	if reply {
		key, other = replyKey, requestKey
	}
	k := min(len(b), startupKeyLen)
	if string(b[:k]) != key[:k] {
		if k == startupKeyLen && string(b[:k]) == other {
			// RFC 5044 section 7.1.2: two initiators or two responders.
			return s, 0, startupFault("the peer has the same role: it sends %q where %q is expected", other, key)
		}
		return s, 0, startupFault("the peer does not use MPA: it begins with %q", b[:k])
	}
	if len(b) < startupHeader {
		return s, 0, nil
	}
	flags := b[16]
	s = startup{
		reply: reply, markers: flags&flagMarkers != 0, crc: flags&flagCRC != 0,
		reject: reply && flags&flagReject != 0, revision: b[17], enhanced: flags&flagEnhanced != 0,
	}
	length := int(binary.BigEndian.Uint16(b[18:]))
	switch {
	case s.revision != revisionPlain && s.revision != revisionEnhanced:
		return s, 0, startupFault("revision %d is unknown", s.revision)
	case length > startupPrivateMax:
		return s, 0, startupFault("%d bytes of private data are more than %d", length, startupPrivateMax)
	case s.revision == revisionPlain:
		s.enhanced = false // the bit was reserved, to be ignored: RFC 5044 section 7.1.1
	case s.enhanced && length < enhancedLen:
		return s, 0, startupFault("an enhanced frame has %d bytes of private data and no room for its depths", length)
	}
	if len(b) < startupHeader+length {
		return s, 0, nil
	}
	s.private = b[startupHeader : startupHeader+length : startupHeader+length]
	if s.enhanced {
		s.parseEnhanced()
	}
	return s, startupHeader + length, nil
}

// parseEnhanced removes the enhanced bytes from the private data.
func (s *startup) parseEnhanced() {
	first, second := binary.BigEndian.Uint16(s.private), binary.BigEndian.Uint16(s.private[2:])
	s.private = s.private[enhancedLen:]
	s.ird, s.ord, s.p2p = first&depthMask, second&depthMask, first&enhancedP2P != 0
	if !s.p2p {
		return
	}
	if first&enhancedSend != 0 {
		s.ready |= readySend
	}
	if second&enhancedWrite != 0 {
		s.ready |= readyWrite
	}
	if second&enhancedRead != 0 {
		s.ready |= readyRead
	}
}

func startupFault(format string, args ...any) error {
	return &mpaError{ddp.FaultMPAFrame, fmt.Sprintf(format, args...)}
}
