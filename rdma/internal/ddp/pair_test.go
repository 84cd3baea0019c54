package ddp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// Two streams that face each other. A message is segmented, encoded, decoded, placed and
// delivered as by a device; a test defines what it sends and the expected result.

// side is one end.
type side struct {
	t       *testing.T
	name    string
	stream  *Stream
	table   *Table
	buffers *postedBuffers
	peer    *side
	room    int // payload of a segment
}

// postedBuffers is a queue of receives.
type postedBuffers []rdma.RecvWR

func (p *postedBuffers) Take() (wr rdma.RecvWR, ok bool) {
	if len(*p) == 0 {
		return wr, false
	}
	wr, *p = (*p)[0], (*p)[1:]
	return wr, true
}

func (p *postedBuffers) post(id uint64, mem []byte) {
	*p = append(*p, rdma.RecvWR{ID: id, Body: rdma.MemOf(mem)})
}

// seeded returns a random source that is the same in every run.
func seeded(n byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{n}) }

const testDomain Domain = 7

func newSide(t *testing.T, name string, seed byte, change func(*Config)) *side {
	s := &side{t: t, name: name, room: 100, table: NewTable(seeded(seed), 1000), buffers: new(postedBuffers)}
	c := Config{Table: s.table, Domain: testDomain, ID: StreamID(seed), Buffers: s.buffers, Inbound: 2, Outbound: 2}
	if change != nil {
		change(&c)
	}
	s.stream = NewStream(c)
	return s
}

// newPair returns two sides, both configured in the same way.
func newPair(t *testing.T, change func(*Config)) (a, b *side) {
	a, b = newSide(t, "a", 1, change), newSide(t, "b", 2, change)
	a.peer, b.peer = b, a
	return a, b
}

// region registers n bytes of a pattern.
func (s *side) region(n int, acc rdma.Access, change func(*Region)) ([]byte, Tag) {
	s.t.Helper()
	mem := pattern(n)
	r := Region{Mem: rdma.MemOf(mem), Base: 0x1000, Access: acc, Domain: testDomain}
	if change != nil {
		change(&r)
	}
	tag, err := s.table.Register(r)
	if err != nil {
		s.t.Fatalf("%s: Register: %v", s.name, err)
	}
	return mem, tag
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + 1)
	}
	return b
}

// send sends a message to the peer and returns the event of its last segment.
func (s *side) send(m Message, payload []byte) (Event, Fault) {
	s.t.Helper()
	for off := uint32(0); ; {
		h, n := m.Segment(off, s.room)
		e, f := s.peer.take(encode(h, payload[off:off+uint32(n)]))
		if off += uint32(n); f != NoFault || h.Last {
			return e, f
		}
	}
}

func encode(h Header, payload []byte) []byte {
	segment := make([]byte, h.Len(), h.Len()+len(payload))
	h.Put(segment)
	return append(segment, payload...)
}

// take is the receiving side of a device.
func (s *side) take(segment []byte) (e Event, f Fault) {
	var h Header
	n, f := h.Decode(segment, len(segment))
	if f != NoFault {
		return e, f
	}
	payload := segment[n:]
	to, f := s.stream.Placement(&h, 0, len(payload))
	if f != NoFault {
		return e, f
	}
	if h.Op.Control() {
		f = s.stream.Deliver(&h, 0, payload, &e)
		return e, f
	}
	if len(to) != len(payload) {
		panic(fmt.Sprintf("room for %d bytes of %d", len(to), len(payload)))
	}
	copy(to, payload)
	f = s.stream.Deliver(&h, len(payload), nil, &e)
	return e, f
}

// answer sends all pending responses and returns the event of the last segment.
func (s *side) answer() (e Event, f Fault) {
	for s.stream.ResponsesPending() {
		h, payload, f := s.stream.Respond(s.room)
		if f != NoFault {
			return e, f
		}
		if e, f = s.peer.take(encode(h, payload)); f != NoFault {
			return e, f
		}
	}
	return e, NoFault
}

// read sends a request; the payload of the request is its own header.
func (s *side) read(id uint64, sink []byte, source Tag, to uint64) (Event, Fault) {
	s.t.Helper()
	m, r, err := s.stream.Read(id, rdma.MemOf(sink), source, to)
	if err != nil {
		s.t.Fatalf("%s: Read: %v", s.name, err)
	}
	body := make([]byte, ReadRequestLen)
	r.Put(body)
	return s.send(m, body)
}

func (s *side) fetch(id uint64, r AtomicRequest) (Event, Fault) {
	s.t.Helper()
	m, r, err := s.stream.Fetch(id, r)
	if err != nil {
		s.t.Fatalf("%s: Fetch: %v", s.name, err)
	}
	body := make([]byte, AtomicRequestLen)
	r.Put(body)
	return s.send(m, body)
}

func wantFault(t *testing.T, what string, got, want Fault) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func wantBytes(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Fatalf("%s: % x, want % x", what, got, want)
	}
}
