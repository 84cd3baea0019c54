package ddp

import (
	"slices"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// The requirements of RFC 5042 on data placement; RFC 5040 section 8.1.1 has the list. The
// section is in the test name. The requirements on completion queues (6.4.3.2, 6.4.6)
// concern the devices, which have them.

const bothWays = rdma.RemoteRead | rdma.RemoteWrite

// wantRefused writes, reads and adds to 4 bytes, and expects each access to be refused.
func wantRefused(t *testing.T, owner *side, mem []byte, tag Tag, to uint64, placed, source Fault) {
	t.Helper()
	before := slices.Clone(mem)
	peer := owner.peer
	_, f := peer.send(peer.stream.Write(tag, to, 4), []byte{0xff, 0xff, 0xff, 0xff})
	wantFault(t, "Write", f, placed)

	sink := make([]byte, 4)
	if _, f = peer.read(1, sink, tag, to); f != NoFault {
		t.Fatalf("request: %v", f)
	}
	_, f = owner.answer()
	wantFault(t, "Read", f, source)
	wantBytes(t, "sink of the refused read", sink, make([]byte, 4))
	owner.flush()
	peer.flush()

	if _, f = peer.fetch(1, AtomicRequest{Code: FetchAdd, Target: tag, TO: to, Data: 1}); f != NoFault {
		t.Fatalf("request: %v", f)
	}
	if _, f = owner.answer(); !f.Access() {
		t.Fatalf("atomic: %v, want it refused", f)
	}
	owner.flush()
	peer.flush()
	wantBytes(t, "memory after refused accesses", mem, before)
}

func (s *side) flush() { s.stream.Flush(func(rdma.RecvWR) {}, func(uint64, bool) {}) }

func TestRFC5042_6_1_1_TagOfAnotherDomain(t *testing.T) {
	_, b := newPair(t, nil)
	mem, tag := b.region(64, bothWays, func(r *Region) { r.Domain = testDomain + 1 })
	wantRefused(t, b, mem, tag, 0x1000, FaultTagStream, FaultSourceStream)
}

func TestRFC5042_6_1_1_TagsAreNotPredictable(t *testing.T) {
	table := NewTable(seeded(9), 4096)
	var ones [32]int
	differences := map[Tag]bool{}
	last := Tag(0)
	for range 4096 {
		tag, err := table.Register(Region{})
		if err != nil {
			t.Fatal(err)
		}
		for bit := range ones {
			ones[bit] += int(tag >> bit & 1)
		}
		if d := tag - last; differences[d] {
			t.Fatalf("two tags follow others by the same %#x", d)
		} else {
			differences[d] = true
		}
		last = tag
	}
	for bit, n := range ones {
		if n < 1800 || n > 2300 {
			t.Errorf("bit %d is set in %d of 4096 tags: a part of the tag is predictable", bit, n)
		}
	}
}

func TestRFC5042_6_1_1_TagOfAnotherStream(t *testing.T) {
	_, b := newPair(t, nil)
	mem, tag := b.region(64, bothWays, func(r *Region) { r.Stream = b.stream.id + 1 })
	wantRefused(t, b, mem, tag, 0x1000, FaultTagStream, FaultSourceStream)
	mem, tag = b.region(64, bothWays, func(r *Region) { r.Stream = b.stream.id })
	if _, f := b.peer.send(b.peer.stream.Write(tag, 0x1000, 4), []byte("here")); f != NoFault || string(mem[:4]) != "here" {
		t.Fatalf("its own stream is refused: %v", f)
	}
}

func TestRFC5042_6_2_1_WriteOverrun(t *testing.T) {
	for _, c := range []struct {
		name   string
		to     uint64
		placed int // bytes of the message that lie inside
	}{
		{"one segment over the end", 0x1000 + 62, 0},
		{"last segment over the end", 0x1000, 64},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newPair(t, nil)
			a.room = 32
			all := make([]byte, 128) // the region is the first half
			tag, err := b.table.Register(Region{Mem: rdma.MemOf(all[:64]), Base: 0x1000, Access: bothWays, Domain: testDomain})
			if err != nil {
				t.Fatal(err)
			}
			_, f := a.send(a.stream.Write(tag, c.to, 80), pattern(80))
			wantFault(t, "Write", f, FaultTagBounds)
			want := make([]byte, 128)
			copy(want, pattern(80)[:c.placed])
			wantBytes(t, "memory", all, want)
		})
	}
}

func TestRFC5042_6_2_1_ReadResponseOverrun(t *testing.T) {
	a, _ := newPair(t, nil)
	all := make([]byte, 64)
	_, r, err := a.stream.Read(1, rdma.MemOf(all[:16]), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []Header{
		{Op: ReadResponse, Tag: r.Sink, TO: 8, Last: true},
		{Op: ReadResponse, Tag: r.Sink, TO: 16, Last: true},
		{Op: ReadResponse, Tag: r.Sink, TO: 1 << 40, Last: true},
	} {
		_, f := a.take(encode(h, pattern(9)))
		wantFault(t, "response", f, FaultTagBounds)
	}
	wantBytes(t, "memory", all, make([]byte, 64))
}

func TestRFC5042_6_2_2_BufferIsClosedWhenIndicated(t *testing.T) {
	for _, op := range []Opcode{SendInvalidate, SendSolicitedInvalidate} {
		a, b := newPair(t, nil)
		mem, tag := b.region(64, bothWays, func(r *Region) { r.Invalidable, r.Stream = true, b.stream.id })
		b.buffers.post(1, make([]byte, 300))
		a.room = 100
		m := a.stream.Send(op, 150, tag)
		for off := uint32(0); off < m.Len; {
			h, n := m.Segment(off, a.room)
			if _, f := b.table.Placement(testDomain, b.stream.id, tag, 0x1000, 1); f != NoFault {
				t.Fatalf("closed before the message was complete: %v", f)
			}
			e, f := b.take(encode(h, make([]byte, n)))
			wantFault(t, "Deliver", f, NoFault)
			if off += uint32(n); off == m.Len && (e.Kind != Received || e.Invalidated != tag) {
				t.Fatalf("%+v, want tag %#x to be reported", e, tag)
			}
		}
		wantRefused(t, b, mem, tag, 0x1000, FaultTag, FaultSourceTag)
	}
}

func TestRFC5042_6_2_3_TagsOfOneBufferAreIndependent(t *testing.T) {
	a, b := newPair(t, nil)
	mem, reader := b.region(64, rdma.RemoteRead, nil)
	writer, err := b.table.Register(Region{Mem: rdma.MemOf(mem), Base: 0x1000, Access: rdma.RemoteWrite, Domain: testDomain})
	if err != nil {
		t.Fatal(err)
	}
	_, f := a.send(a.stream.Write(reader, 0x1000, 4), pattern(4))
	wantFault(t, "Write by the tag for reading", f, FaultTag)
	b.table.Deregister(reader)
	_, f = a.send(a.stream.Write(writer, 0x1000, 4), []byte("mine"))
	if f != NoFault || string(mem[:4]) != "mine" {
		t.Fatalf("the tag for writing ended with the one for reading: %v", f)
	}
}

func TestRFC5042_6_3_1_ProbingOutsideTheBounds(t *testing.T) {
	_, b := newPair(t, nil)
	mem, tag := b.region(64, bothWays, nil)
	for _, to := range []uint64{0, 0x0fff, 0x0ffd, 0x103d, 0x1040, 1 << 63, 1<<64 - 8} {
		wantRefused(t, b, mem, tag, to, FaultTagBounds, FaultSourceBounds)
	}
	wantRefused(t, b, mem, tag, 1<<64-2, FaultTagWrap, FaultSourceWrap)
}

func TestRFC5042_6_2_2_NothingAfterDeregister(t *testing.T) {
	t.Run("within a segment", func(t *testing.T) {
		_, b := newPair(t, nil)
		mem, tag := b.region(64, bothWays, nil)
		h := Header{Op: Write, Last: true, Tag: tag, TO: 0x1000}
		if to, f := b.stream.Placement(&h, 0, 32); f != NoFault || len(to) != 32 {
			t.Fatalf("%d bytes, %v", len(to), f)
		}
		if to, f := b.stream.Placement(&h, 10, 22); f != NoFault || &to[0] != &mem[10] {
			t.Fatalf("the rest goes elsewhere: %v", f)
		}
		b.table.Deregister(tag)
		if to, f := b.stream.Placement(&h, 10, 22); f != FaultTag || to != nil {
			t.Fatalf("the rest is placed: %d bytes, %v", len(to), f)
		}
	})
	t.Run("within an answer", func(t *testing.T) {
		a, b := newPair(t, nil)
		_, tag := b.region(64, bothWays, nil)
		if _, f := a.read(1, make([]byte, 64), tag, 0x1000); f != NoFault {
			t.Fatal(f)
		}
		if _, payload, f := b.stream.Respond(32); f != NoFault || len(payload) != 32 {
			t.Fatalf("first half: %d bytes, %v", len(payload), f)
		}
		b.table.Deregister(tag)
		_, payload, f := b.stream.Respond(32)
		if f != FaultSourceTag || payload != nil {
			t.Fatalf("second half: %d bytes, %v", len(payload), f)
		}
	})
}

func TestRFC5042_6_3_3_SinkIsClosedAfterTheTransfer(t *testing.T) {
	a, b := newPair(t, nil)
	mem, tag := b.region(16, rdma.RemoteRead, nil)
	sink := make([]byte, 16)
	if _, f := a.read(1, sink, tag, 0x1000); f != NoFault {
		t.Fatal(f)
	}
	h, payload, _ := b.stream.Respond(100)
	segment := encode(h, payload)
	if e, f := a.take(segment); f != NoFault || e.Kind != Fetched {
		t.Fatalf("%+v, %v", e, f)
	}
	clear(segment[TaggedLen:])
	_, f := a.take(segment)
	wantFault(t, "the answer again", f, FaultTag)
	wantBytes(t, "sink", sink, mem)
}

func TestRFC5042_6_3_5_WriteBufferIsNotReadable(t *testing.T) {
	a, b := newPair(t, nil)
	_, tag := b.region(64, rdma.RemoteWrite, nil)
	if _, f := a.read(1, make([]byte, 4), tag, 0x1000); f != NoFault {
		t.Fatal(f)
	}
	_, f := b.answer()
	wantFault(t, "Read of a buffer for writing", f, FaultSourceAccess)
	b.flush()
	a.flush()
	if _, f := a.fetch(1, AtomicRequest{Code: FetchAdd, Target: tag, TO: 0x1000}); f != NoFault {
		t.Fatal(f)
	}
	_, f = b.answer()
	wantFault(t, "atomic, which returns the contents", f, FaultSourceAccess)
	b.flush()
	a.flush()

	// Only the response can write to the sink of a read.
	sink := make([]byte, 8)
	_, r, err := b.stream.Read(1, rdma.MemOf(sink), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantRefused(t, b, sink, r.Sink, 0, FaultTag, FaultSourceTag)
}

func TestRFC5042_6_4_3_1_OnePeerCannotEmptyASharedQueue(t *testing.T) {
	shared := new(postedBuffers)
	for i := range uint64(8) {
		shared.post(i, make([]byte, 64))
	}
	greedy, modest := newPair(t, func(c *Config) { c.Buffers, c.Window = shared, 3 })
	for msn := range uint32(100) {
		greedy.take(encode(Header{Op: Send, MSN: msn}, pattern(8))) // begun, never ended
	}
	for msn := range uint32(5) {
		e, f := modest.take(encode(Header{Op: Send, MSN: msn + 1, Last: true}, pattern(8)))
		if f != NoFault || e.Kind != Received {
			t.Fatalf("message %d of the other peer: %+v, %v", msn, e, f)
		}
	}
}

func TestRFC5042_6_4_3_3_ReadQueueIsBounded(t *testing.T) {
	_, b := newPair(t, nil)
	_, tag := b.region(64, rdma.RemoteRead, nil)
	request := func(msn uint32) []byte {
		body := make([]byte, ReadRequestLen)
		(&ReadRequest{Sink: 1, Size: 8, Source: tag, SourceTO: 0x1000}).Put(body)
		return encode(Header{Op: ReadRequestOp, Last: true, QN: QueueRequest, MSN: msn}, body)
	}
	for msn := range uint32(2) {
		if _, f := b.take(request(msn + 1)); f != NoFault {
			t.Fatalf("request %d of 2: %v", msn+1, f)
		}
	}
	_, f := b.take(request(3))
	wantFault(t, "request 3 of 2", f, FaultNoBuffer)
	_, f = b.take(request(7))
	wantFault(t, "request out of order", f, FaultMSN)

	// A side that agreed to no reads gets no requests.
	none := newSide(t, "none", 3, func(c *Config) { c.Inbound, c.Outbound = 0, 0 })
	_, f = none.take(request(1))
	wantFault(t, "request although none was negotiated", f, FaultNoBuffer)
	if _, _, err := none.stream.Read(1, rdma.Mem{}, 1, 0); err != rdma.ErrAgain {
		t.Fatalf("Read although none was negotiated: %v", err)
	}
}

func TestRFC5042_6_4_5_RemoteInvalidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		region func(*Region)
		want   Fault
	}{
		{"not allowed", nil, FaultInvalidate},
		{"not allowed on its own stream", func(r *Region) { r.Stream = 2 }, FaultInvalidate},
		{"of another domain", func(r *Region) { r.Invalidable, r.Stream, r.Domain = true, 2, testDomain+1 }, FaultInvalidate},
		{"of another stream", func(r *Region) { r.Invalidable, r.Stream = true, 99 }, FaultInvalidate},
		{"allowed", func(r *Region) { r.Invalidable, r.Stream = true, 2 }, NoFault},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newPair(t, nil)
			_, tag := b.region(64, bothWays, c.region)
			b.buffers.post(1, make([]byte, 8))
			b.buffers.post(2, make([]byte, 8))
			_, f := a.send(a.stream.Send(SendInvalidate, 8, tag), pattern(8))
			wantFault(t, "Send with Invalidate", f, c.want)
			if gone := b.table.Len() == 0; gone != (c.want == NoFault) {
				t.Fatalf("the tag is gone: %v", gone)
			}
			if c.want == NoFault {
				_, f = a.send(a.stream.Send(SendInvalidate, 8, tag), pattern(8))
				wantFault(t, "again", f, FaultSourceTag)
			}
		})
	}
}
