package ddp

// An outgoing message and its segmentation: RFC 5041 section 5.2. All its segments have
// the same header except for the offset and the Last flag.

// Message is a message to send. Stream creates it, with its number.
type Message struct {
	Header        // of the first segment
	Len    uint32 // of the payload
}

// Segment returns the header of the piece that begins at off, with at most room bytes of
// payload, and its length. An empty message is one empty segment.
func (m *Message) Segment(off uint32, room int) (h Header, n int) {
	h = m.Header
	n = int(min(uint64(room), uint64(m.Len-off)))
	if h.Op.Tagged() {
		h.TO += uint64(off)
	} else {
		h.MO += off
	}
	h.Last = off+uint32(n) == m.Len
	return h, n
}
