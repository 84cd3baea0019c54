package ddp

import (
	"bytes"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// For any input: no panic, and no access outside the opened memory.

func FuzzHeader(f *testing.F) {
	for o := range opcodes {
		h := Header{Op: o, Last: true, Tag: 1, MSN: 1, QN: uint32(kinds[o].queue)}
		f.Add(encode(h, make([]byte, max(kinds[o].payload, 0))))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again Header
		n, fault := h.Decode(b, len(b))
		if fault != NoFault {
			if !fault.known() {
				t.Fatalf("a fault that the RFCs do not define: %v", fault)
			}
			return
		}
		out := encode(h, b[n:])
		if m, fault := again.Decode(out, len(out)); m != n || fault != NoFault || again != h {
			t.Fatalf("%+v is encoded and decoded to %+v, %v", h, again, fault)
		}
	})
}

func FuzzTerminate(f *testing.F) {
	f.Add([]byte{0x20, 2, 0, 0})
	f.Add([]byte{0x02, 2, 0, 0})
	raw := encode(Header{Op: ReadRequestOp, Last: true, QN: 1, MSN: 1}, make([]byte, ReadRequestLen))
	made := TerminateFor(FaultSourceTag, raw, len(raw))
	b := make([]byte, TerminateMax)
	f.Add(b[:made.Put(b)])
	f.Fuzz(func(t *testing.T, b []byte) {
		var first, again Terminate
		if !first.Decode(b) {
			return
		}
		out := make([]byte, TerminateMax)
		n := first.Put(out)
		if n != first.Len() {
			t.Fatalf("Put wrote %d bytes, Len is %d", n, first.Len())
		}
		// Faults that the RFCs do not define may be read as mirrored; the rest stays.
		if !again.Decode(out[:n]) || first.Fault.known() && again != first {
			t.Fatalf("%+v is encoded and decoded to %+v", first, again)
		}
	})
}

// fuzzTags generates the tags 1, 2, 3 …, so that the fuzzer finds them.
type fuzzTags uint8

func (f *fuzzTags) Read(b []byte) (int, error) {
	*f++
	return copy(b, []byte{0, 0, 0, byte(*f)}), nil
}

const (
	fuzzPiece  = 32
	fuzzPieces = 6
)

// arena is memory in pieces, with closed memory before and after each.
type arena struct {
	memory []byte
	access [fuzzPieces]rdma.Access
}

func newArena() *arena { return &arena{memory: make([]byte, (2*fuzzPieces+1)*fuzzPiece)} }

// piece opens the i-th piece.
func (a *arena) piece(i int, acc rdma.Access) rdma.Mem {
	a.access[i] = acc
	at := (2*i + 1) * fuzzPiece
	return rdma.MemOf(a.memory[at : at+fuzzPiece])
}

// open reports whether all of b lies in one piece with this right.
func (a *arena) open(b []byte, acc rdma.Access) bool {
	if len(b) == 0 {
		return true
	}
	at := rdma.MemOf(b).Addr() - rdma.MemOf(a.memory).Addr()
	i := at / fuzzPiece
	return i < 2*fuzzPieces && i%2 == 1 && at%fuzzPiece+uint64(len(b)) <= fuzzPiece && a.access[i/2]&acc != 0
}

// FuzzStream feeds a stream with segments: a byte of length, then the segment.
func FuzzStream(f *testing.F) {
	seed := func(segments ...[]byte) {
		var all []byte
		for _, s := range segments {
			all = append(append(all, byte(len(s))), s...)
		}
		f.Add(all)
	}
	request, atomic := make([]byte, ReadRequestLen), make([]byte, AtomicRequestLen)
	(&ReadRequest{Sink: 9, Size: fuzzPiece, Source: 2, SourceTO: 0x1000}).Put(request)
	(&AtomicRequest{Code: FetchAdd, Target: 3, TO: 0x1000, Data: 1}).Put(atomic)
	seed(encode(Header{Op: Write, Last: true, Tag: 1, TO: 0x1000}, make([]byte, fuzzPiece)))
	seed(encode(Header{Op: Send, MSN: 1}, make([]byte, 8)), encode(Header{Op: Send, Last: true, MSN: 1, MO: 8}, make([]byte, 8)))
	seed(encode(Header{Op: SendInvalidate, Last: true, Tag: 3, MSN: 1}, make([]byte, 8)))
	seed(encode(Header{Op: ReadRequestOp, Last: true, QN: 1, MSN: 1}, request),
		encode(Header{Op: AtomicRequestOp, Last: true, QN: 1, MSN: 2}, atomic))
	seed(encode(Header{Op: ReadResponse, Last: true, Tag: 4}, make([]byte, fuzzPiece)))
	seed(encode(Header{Op: TerminateOp, Last: true, QN: 2, MSN: 1}, []byte{0x20, 2, 0, 0}))

	f.Fuzz(func(t *testing.T, in []byte) {
		a := newArena()
		table := NewTable(new(fuzzTags), 3)
		for i, acc := range []rdma.Access{rdma.RemoteWrite, rdma.RemoteRead, bothWays} {
			if _, err := table.Register(Region{Mem: a.piece(i, acc), Base: 0x1000, Access: acc, Stream: 1, Invalidable: i == 2}); err != nil {
				t.Fatal(err)
			}
		}
		buffers := &postedBuffers{{Body: a.piece(3, rdma.RemoteWrite)}, {Body: a.piece(4, rdma.RemoteWrite)}}
		s := NewStream(Config{Table: table, ID: 1, Buffers: buffers, Window: 2, Inbound: 2, Outbound: 1})
		if _, _, err := s.Read(1, a.piece(5, rdma.RemoteWrite), 1, 0); err != nil {
			t.Fatal(err)
		}
		for len(in) > 1 {
			size := min(int(in[0]), len(in)-1)
			a.feed(t, s, in[1:1+size])
			a.drain(t, s)
			in = in[1+size:]
		}
		for i := 0; i < len(a.memory); i += 2 * fuzzPiece {
			if !bytes.Equal(a.memory[i:i+fuzzPiece], make([]byte, fuzzPiece)) {
				t.Fatalf("closed memory at %d was changed", i)
			}
		}
	})
}

// feed is a device that continues after a fault, to reach more code.
func (a *arena) feed(t *testing.T, s *Stream, segment []byte) {
	var h Header
	n, fault := h.Decode(segment, len(segment))
	if fault != NoFault {
		s.Terminate(fault, segment, len(segment))
		return
	}
	payload := segment[n:]
	to, fault := s.Placement(&h, 0, len(payload))
	if fault != NoFault {
		return
	}
	if !a.open(to, rdma.RemoteWrite) {
		t.Fatalf("%+v: %d bytes are placed where nothing is open", h, len(to))
	}
	if !h.Op.Control() && len(to) != len(payload) {
		t.Fatalf("%+v: room for %d bytes of %d", h, len(to), len(payload))
	}
	copy(to, payload)
	var e Event
	s.Deliver(&h, len(payload), payload, &e)
	if e.Len > fuzzPiece {
		t.Fatalf("%+v: a message of %d bytes in a piece of %d", h, e.Len, fuzzPiece)
	}
}

// drain sends the pending responses.
func (a *arena) drain(t *testing.T, s *Stream) {
	for s.ResponsesPending() {
		h, payload, fault := s.Respond(20)
		if fault != NoFault {
			return
		}
		if h.Op == ReadResponse && !a.open(payload, rdma.RemoteRead) {
			t.Fatalf("%+v: %d bytes are read where nothing is open", h, len(payload))
		}
	}
}
