package iwarp

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/rdma/internal/crc32c"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Framing (RFC 5044 section 4). A framer makes FPDUs of DDP segments for one direction of
// a connection, a deframer parses them. An FPDU is the length of its segment, the segment,
// padding to a multiple of 4, and a CRC32C. If the receiver requested them, there are
// markers of 4 bytes at every 512th byte of the stream, the first right before the first
// FPDU, which point back to the beginning of their FPDU.
//
// Both track the stream position themselves, so they must see every byte after the startup
// frames, in order.

const (
	fpduLength    = 2 // the field before the segment
	fpduCRC       = 4
	markerLen     = 4
	markerSpacing = 512
	segmentMax    = 1<<16 - 1 // the maximum of the length field
	// segmentMin is a segment that every connection can carry: RFC 5044 section 4.1.
	segmentMin = 128
	// segmentMarkedMax keeps a marker at the end of an FPDU within the 16 bits of its
	// pointer.
	segmentMarkedMax = 64000
	// onePass is the length from which bytes are copied and checked in one pass: below, a
	// CRC of the whole frame costs less than one of its parts.
	onePass = 512
	// fpduMax is the longest FPDU with its markers.
	fpduMax = fpduLength + segmentMax + 3 + fpduCRC + markerLen*(segmentMax/(markerSpacing-markerLen)+2)
)

// padding returns the padding after a segment of n bytes.
func padding(n int) int { return -(fpduLength + n) & 3 }

// fpduSize returns the length of an FPDU without markers.
func fpduSize(n int) int { return fpduLength + n + padding(n) + fpduCRC }

// segmentFor returns the longest segment whose FPDU fits a TCP segment of emss bytes:
// MULPDU of RFC 5044 section 4.1.
func segmentFor(emss int, markers bool) int {
	n, most := emss-(fpduLength+fpduCRC+emss%4), segmentMax
	if markers {
		n, most = n-markerLen*((emss+markerSpacing-1)/markerSpacing), segmentMarkedMax
	}
	return min(max(n, segmentMin), most)
}

// framer makes the FPDUs of one direction.
type framer struct {
	crc     bool
	markers bool
	pos     uint32 // bytes since the last marker position
}

// append appends an FPDU to dst. The segment is the concatenation of the parts.
func (f *framer) append(dst []byte, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	begin := len(dst) // start of what the CRC covers: includes a marker before the length
	start := begin
	if f.markers && f.pos == 0 {
		start += markerLen
	}
	var length [fpduLength]byte
	binary.BigEndian.PutUint16(length[:], uint16(n))
	dst = f.put(dst, start, length[:])
	summed := begin // the CRC so far covers up to here
	var crc uint32
	for _, p := range parts {
		if f.crc && !f.markers && len(p) >= onePass {
			crc = crc32c.Update(crc, dst[summed:])
			dst = slices.Grow(dst, len(p))
			summed = len(dst) + len(p)
			crc = crc32c.Copy(dst[len(dst):summed], p, crc)
			dst = dst[:summed]
			continue
		}
		dst = f.put(dst, start, p)
	}
	var zeros [3]byte
	dst = f.put(dst, start, zeros[:padding(n)])
	dst = f.mark(dst, start) // a marker between padding and CRC is covered
	if f.crc {
		crc = crc32c.Update(crc, dst[summed:])
	}
	dst = binary.LittleEndian.AppendUint32(dst, crc) // least significant byte first: RFC 5044 section 4.4
	f.advance(fpduCRC)
	return dst
}

// put appends bytes of the FPDU that begins at dst[start], with the markers that fall
// among them.
func (f *framer) put(dst []byte, start int, p []byte) []byte {
	if !f.markers {
		return append(dst, p...)
	}
	for len(p) > 0 {
		dst = f.mark(dst, start)
		k := min(len(p), markerSpacing-int(f.pos))
		dst = append(dst, p[:k]...)
		p = p[k:]
		f.advance(k)
	}
	return dst
}

// mark appends a marker if this is the position of one.
func (f *framer) mark(dst []byte, start int) []byte {
	if !f.markers || f.pos != 0 {
		return dst
	}
	// A marker before the length field has the pointer 0 (RFC 5044 section 4.3).
	dst = binary.BigEndian.AppendUint32(dst, uint32(max(len(dst)-start, 0)))
	f.pos = markerLen
	return dst
}

func (f *framer) advance(n int) {
	if f.markers {
		f.pos = (f.pos + uint32(n)) % markerSpacing
	}
}

// deframer parses the FPDUs of one direction.
type deframer struct {
	crc     bool
	markers bool
	pos     uint32 // bytes since the last marker position
	failed  error  // after an error nothing more is delivered: RFC 5044 section 8
}

// next parses the FPDU at the start of b. n is its length on the wire; 0 means that more
// bytes are needed, and need is the minimum length of b. The segment is a part of b;
// markers are removed in place, so the rest of b after it is invalid.
func (d *deframer) next(b []byte) (segment []byte, n, need int, err error) {
	if d.failed != nil {
		return nil, 0, 0, d.failed
	}
	head := 0 // a marker before the length
	if d.markers && d.pos == 0 {
		head = markerLen
	}
	if len(b) < head+fpduLength {
		return nil, 0, head + fpduLength, nil
	}
	size := int(binary.BigEndian.Uint16(b[head:]))
	n = d.wireSize(size)
	if len(b) < n {
		return nil, 0, n, nil
	}
	fpdu := b[:n]
	if d.crc {
		got := binary.LittleEndian.Uint32(fpdu[n-fpduCRC:])
		if want := crc32c.Checksum(fpdu[:n-fpduCRC]); got != want {
			d.failed = &mpaError{ddp.FaultMPACRC, fmt.Sprintf("the CRC of an FPDU of %d bytes is %08x and should be %08x: the bytes were damaged in transit", n, got, want)}
			return nil, 0, 0, d.failed
		}
	}
	if d.markers {
		if fpdu, d.failed = d.unmark(fpdu, head); d.failed != nil {
			return nil, 0, 0, d.failed
		}
		d.pos = (d.pos + uint32(n)) % markerSpacing
	}
	return fpdu[fpduLength : fpduLength+size : fpduLength+size], n, 0, nil
}

// wireSize returns the length on the wire, with markers, of the FPDU of a segment of so
// many bytes that begins here.
func (d *deframer) wireSize(size int) int {
	n := fpduSize(size)
	if !d.markers {
		return n
	}
	// Up to the first marker position there are room bytes, and then 508 between two of
	// them. A marker right after the last byte belongs to the next FPDU.
	room := int(-d.pos & (markerSpacing - 1))
	if n <= room {
		return n
	}
	const between = markerSpacing - markerLen
	return n + markerLen*((n-room+between-1)/between)
}

// unmark removes the markers of an FPDU, all of which must point to its beginning at
// fpdu[start].
func (d *deframer) unmark(fpdu []byte, start int) ([]byte, error) {
	at := int(-d.pos & (markerSpacing - 1))
	kept := at
	for ; at < len(fpdu); at += markerSpacing {
		pointer := binary.BigEndian.Uint32(fpdu[at:])
		if want := uint32(max(at-start, 0)); pointer&0xFFFF != want {
			return nil, &mpaError{ddp.FaultMPAMarker, fmt.Sprintf("a marker points %d bytes back, the lengths before it say %d: the stream has lost its frame",
				pointer&0xFFFF, want)}
		}
		end := min(at+markerSpacing, len(fpdu))
		kept += copy(fpdu[kept:], fpdu[at+markerLen:end])
	}
	return fpdu[:min(kept, len(fpdu))], nil
}
