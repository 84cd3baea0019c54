package ddp

import "encoding/binary"

// The RDMAP headers after that of DDP: RFC 5040 section 4.4, RFC 7306 sections 5 and 6.
// Each is the whole payload of its message.

const (
	ReadRequestLen    = 28
	AtomicRequestLen  = 52
	AtomicResponseLen = 12
	ImmediateLen      = 8
)

// ReadRequest requests Size bytes of the source, to be placed in the sink.
type ReadRequest struct {
	Sink     Tag
	SinkTO   uint64
	Size     uint32
	Source   Tag
	SourceTO uint64
}

// Put writes the 28 bytes.
func (r *ReadRequest) Put(b []byte) int {
	binary.BigEndian.PutUint32(b[0:], uint32(r.Sink))
	binary.BigEndian.PutUint64(b[4:], r.SinkTO)
	binary.BigEndian.PutUint32(b[12:], r.Size)
	binary.BigEndian.PutUint32(b[16:], uint32(r.Source))
	binary.BigEndian.PutUint64(b[20:], r.SourceTO)
	return ReadRequestLen
}

// Decode reads the 28 bytes; it returns false if b has another length.
func (r *ReadRequest) Decode(b []byte) bool {
	if len(b) != ReadRequestLen {
		return false
	}
	*r = ReadRequest{
		Sink:     Tag(binary.BigEndian.Uint32(b[0:])),
		SinkTO:   binary.BigEndian.Uint64(b[4:]),
		Size:     binary.BigEndian.Uint32(b[12:]),
		Source:   Tag(binary.BigEndian.Uint32(b[16:])),
		SourceTO: binary.BigEndian.Uint64(b[20:]),
	}
	return true
}

// AtomicCode is the kind of an atomic: RFC 7306 section 5.2.1.
type AtomicCode uint8

const (
	FetchAdd    AtomicCode = 0
	CompareSwap AtomicCode = 2
)

// AtomicRequest changes the 8 bytes at the target and requests their previous value. A
// FetchAdd adds Data; each bit of Mask is the top of a field that carries into no other,
// so that Mask 0 is a plain sum. A CompareSwap stores the bits of Data that are in Mask if
// the bits in CompareMask equal those of Compare.
type AtomicRequest struct {
	Code        AtomicCode
	ID          uint32
	Target      Tag
	TO          uint64
	Data        uint64
	Mask        uint64
	Compare     uint64
	CompareMask uint64
}

// Put writes the 52 bytes.
func (r *AtomicRequest) Put(b []byte) int {
	binary.BigEndian.PutUint32(b[0:], uint32(r.Code))
	binary.BigEndian.PutUint32(b[4:], r.ID)
	binary.BigEndian.PutUint32(b[8:], uint32(r.Target))
	binary.BigEndian.PutUint64(b[12:], r.TO)
	binary.BigEndian.PutUint64(b[20:], r.Data)
	binary.BigEndian.PutUint64(b[28:], r.Mask)
	binary.BigEndian.PutUint64(b[36:], r.Compare)
	binary.BigEndian.PutUint64(b[44:], r.CompareMask)
	return AtomicRequestLen
}

// Decode reads the 52 bytes; it returns false if b has another length.
func (r *AtomicRequest) Decode(b []byte) bool {
	if len(b) != AtomicRequestLen {
		return false
	}
	*r = AtomicRequest{
		Code:        AtomicCode(b[3] & 0x0f),
		ID:          binary.BigEndian.Uint32(b[4:]),
		Target:      Tag(binary.BigEndian.Uint32(b[8:])),
		TO:          binary.BigEndian.Uint64(b[12:]),
		Data:        binary.BigEndian.Uint64(b[20:]),
		Mask:        binary.BigEndian.Uint64(b[28:]),
		Compare:     binary.BigEndian.Uint64(b[36:]),
		CompareMask: binary.BigEndian.Uint64(b[44:]),
	}
	return true
}

// Apply returns the new value for an old one: RFC 7306 section 5.1. ok is false for a code
// that the RFC does not define.
func (r *AtomicRequest) Apply(old uint64) (value uint64, ok bool) {
	switch r.Code {
	case FetchAdd:
		return addFields(old, r.Data, r.Mask), true
	case CompareSwap:
		if (old^r.Compare)&r.CompareMask != 0 {
			return old, true
		}
		return old&^r.Mask | r.Data&r.Mask, true
	}
	return old, false
}

// addFields adds without carrying out of a bit that is set in tops: everything below the
// tops is summed with the tops cleared, so that no carry passes them, and the tops
// themselves are added without carry.
func addFields(a, b, tops uint64) uint64 {
	return (a&^tops + b&^tops) ^ (a^b)&tops
}

// AtomicResponse returns the previous value of the target.
type AtomicResponse struct {
	ID       uint32 // of the request
	Original uint64
}

// Put writes the 12 bytes of figure 6 of RFC 7306. Section 4 mentions 32, which no
// implementation sends.
func (r *AtomicResponse) Put(b []byte) int {
	binary.BigEndian.PutUint32(b[0:], r.ID)
	binary.BigEndian.PutUint64(b[4:], r.Original)
	return AtomicResponseLen
}

// Decode reads the 12 bytes; it returns false if b has another length.
func (r *AtomicResponse) Decode(b []byte) bool {
	if len(b) != AtomicResponseLen {
		return false
	}
	*r = AtomicResponse{ID: binary.BigEndian.Uint32(b[0:]), Original: binary.BigEndian.Uint64(b[4:])}
	return true
}
