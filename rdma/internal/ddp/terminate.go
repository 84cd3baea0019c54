package ddp

import "encoding/binary"

// The message that ends a stream: RFC 5040 section 4.8. It names the fault and, if a
// segment caused it, shows that segment's headers, so that the peer can find the
// operation.

const (
	terminateFixed = 4
	// TerminateMax is the longest Terminate: with a read request and its header.
	TerminateMax = terminateFixed + 2 + UntaggedLen + ReadRequestLen

	showsLength = 0x80 // M: the length of the segment
	showsDDP    = 0x40 // D: its header
	showsRDMAP  = 0x20 // R: the read request after that
)

// Terminate is the payload of a Terminate.
type Terminate struct {
	Fault  Fault
	Size   uint16 // of the segment, if a header is shown
	shown  [UntaggedLen + ReadRequestLen]byte
	header uint8 // bytes of shown that are the DDP header: 0, 14 or 18
	read   bool  // a read request follows in shown
}

// TerminateFor returns the Terminate for a fault caused by the segment that begins with
// raw and has size bytes in all. The headers that it shows depend on the fault: those of a
// read request for a protection fault, that of DDP for an operation fault or a fault of
// DDP, none if the fault is local or below.
func TerminateFor(f Fault, raw []byte, size int) Terminate {
	t := Terminate{Fault: f, Size: uint16(min(size, 1<<16-1))}
	if f.Layer() > 1 || f.Type() == 0 || len(raw) == 0 {
		return t
	}
	n := HeaderLen(raw[0])
	if len(raw) < n {
		return t
	}
	t.header = uint8(n)
	copy(t.shown[:n], raw)
	if f&^0xff != protection || Opcode(raw[1]&opcodeMask) != ReadRequestOp || len(raw) < n+ReadRequestLen || n != UntaggedLen {
		return t
	}
	t.read = true
	copy(t.shown[n:], raw[n:n+ReadRequestLen])
	return t
}

// DDP returns the header of the faulty segment, as received, or nil.
func (t *Terminate) DDP() []byte { return t.shown[:t.header] }

// Request returns the faulty read, if there is one.
func (t *Terminate) Request() (r ReadRequest, ok bool) {
	if t.read {
		ok = r.Decode(t.shown[t.header : int(t.header)+ReadRequestLen])
	}
	return r, ok
}

// Len returns the length of the payload.
func (t *Terminate) Len() int {
	n := terminateFixed
	if t.header != 0 {
		n += 2 + int(t.header)
	}
	if t.read {
		n += ReadRequestLen
	}
	return n
}

// Put writes the payload, Len bytes.
func (t *Terminate) Put(b []byte) int {
	clear(b[:terminateFixed])
	b[0] = t.Fault.Layer()<<4 | t.Fault.Type()
	b[1] = t.Fault.Code()
	if t.header == 0 {
		return terminateFixed
	}
	b[2] = showsLength | showsDDP
	n := int(t.header)
	if t.read {
		b[2] |= showsRDMAP
		n += ReadRequestLen
	}
	binary.BigEndian.PutUint16(b[terminateFixed:], t.Size)
	copy(b[terminateFixed+2:], t.shown[:n])
	return terminateFixed + 2 + n
}

// Decode reads a Terminate; it returns false if it contains no fault. Incomplete headers
// are omitted: only the fault matters.
func (t *Terminate) Decode(b []byte) bool {
	*t = Terminate{}
	if len(b) < terminateFixed {
		return false
	}
	shows := b[2]
	t.Fault = FaultOf(b[0]>>4, b[0]&15, b[1])
	if mirrored(b, t.Fault) {
		t.Fault = FaultOf(b[0]&15, b[0]>>4, b[1])
		shows = shows&1<<7 | shows&2<<5 | shows&4<<3
	}
	b = b[terminateFixed:]
	if shows&showsDDP == 0 || len(b) < 3 {
		return true
	}
	n := HeaderLen(b[2])
	if len(b) < 2+n {
		return true
	}
	t.Size = binary.BigEndian.Uint16(b)
	t.header = uint8(copy(t.shown[:n], b[2:]))
	if b = b[2+n:]; shows&showsRDMAP != 0 && n == UntaggedLen && len(b) >= ReadRequestLen {
		t.read = true
		copy(t.shown[n:], b[:ReadRequestLen])
	}
	return true
}

// mirrored detects a Terminate of Linux's soft-iWARP on a little-endian machine, which has
// the bits of its fields in the reverse order: layer and type are swapped, and the flags
// of the shown headers are at the other end of their byte, where the RFC has zeros.
func mirrored(b []byte, straight Fault) bool {
	if b[2] != 0 {
		return b[2]&0xe0 == 0
	}
	return !straight.known() && FaultOf(b[0]&15, b[0]>>4, b[1]).known()
}
