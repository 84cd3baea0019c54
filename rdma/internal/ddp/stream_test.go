package ddp

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

func TestSendArrives(t *testing.T) {
	for _, c := range []struct {
		name string
		op   Opcode
		n    int
	}{
		{"empty", Send, 0},
		{"one segment", Send, 100},
		{"three segments", SendSolicited, 201},
		{"immediate", Immediate, 8},
		{"immediate, solicited", ImmediateSolicited, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newPair(t, nil)
			for round := range uint64(3) {
				mem := make([]byte, 300)
				b.buffers.post(40+round, mem)
				e, f := a.send(a.stream.Send(c.op, uint32(c.n), 0), pattern(c.n))
				wantFault(t, "Deliver", f, NoFault)
				if e.Kind != Received || e.Op != c.op || e.Recv.ID != 40+round || e.Len != uint32(c.n) {
					t.Fatalf("round %d: %+v", round, e)
				}
				wantBytes(t, "message", mem[:c.n], pattern(c.n))
				wantBytes(t, "after it", mem[c.n:], make([]byte, 300-c.n))
			}
		})
	}
}

func TestNumbersWrap(t *testing.T) {
	a, b := newPair(t, nil)
	a.stream.sent, b.stream.receives.next = 1<<32-2, 1<<32-2
	for i := range uint64(4) {
		b.buffers.post(i, make([]byte, 8))
		e, f := a.send(a.stream.Send(Send, 8, 0), pattern(8))
		if f != NoFault || e.Recv.ID != i {
			t.Fatalf("message %d: %+v, %v", i, e, f)
		}
	}
	if a.stream.sent != 2 { // ...fffe, ...ffff, 0, 1
		t.Fatalf("the next number is %d, want 2", a.stream.sent)
	}
}

// TestPlacedBeforeDelivered places segments of two messages in the wrong order, some of
// them twice, and delivers them in the right one, as reliable datagrams do.
func TestPlacedBeforeDelivered(t *testing.T) {
	a, b := newPair(t, func(c *Config) { c.Window = 2 })
	first, second := make([]byte, 200), make([]byte, 200)
	b.buffers.post(1, first)
	b.buffers.post(2, second)
	payload := pattern(150)
	var headers []Header
	for range 2 {
		m := a.stream.Send(Send, 150, 0)
		for off := uint32(0); off < 150; off += 50 {
			h, _ := m.Segment(off, 50)
			headers = append(headers, h)
		}
	}
	for _, i := range []int{5, 0, 4, 4, 2, 1, 0, 3} {
		h := headers[i]
		to, f := b.stream.Placement(&h, 0, 50)
		wantFault(t, "Place", f, NoFault)
		copy(to, payload[h.MO:])
	}
	var ids []uint64
	for i := range headers {
		var e Event
		wantFault(t, "Deliver", b.stream.Deliver(&headers[i], 50, nil, &e), NoFault)
		if e.Kind == Received {
			ids = append(ids, e.Recv.ID)
		}
	}
	if !slices.Equal(ids, []uint64{1, 2}) {
		t.Fatalf("receives %v were completed, want 1 and 2", ids)
	}
	wantBytes(t, "first", first[:150], payload)
	wantBytes(t, "second", second[:150], payload)
}

func TestReceiveFaults(t *testing.T) {
	send := func(msn, mo uint32, last bool) Header { return Header{Op: Send, MSN: msn, MO: mo, Last: last} }
	for _, c := range []struct {
		name     string
		buffers  int // of 64 bytes
		segments []Header
		n        int
		want     Fault
	}{
		{"no receive posted", 0, []Header{send(1, 0, true)}, 8, FaultNoBuffer},
		{"no receive posted for an empty message", 0, []Header{send(1, 0, true)}, 0, FaultNoBuffer},
		{"message 0", 2, []Header{send(0, 0, true)}, 8, FaultMSN},
		{"message 2 first", 2, []Header{send(2, 0, true)}, 8, FaultMSN},
		{"message 1 twice", 2, []Header{send(1, 0, true), send(1, 0, true)}, 8, FaultMSN},
		{"message 2 within message 1", 2, []Header{send(1, 0, false), send(2, 0, true)}, 8, FaultMSN},
		{"a gap", 1, []Header{send(1, 0, false), send(1, 9, true)}, 8, FaultMO},
		{"a gap at the front", 1, []Header{send(1, 8, true)}, 8, FaultMO},
		{"the same piece again", 1, []Header{send(1, 0, false), send(1, 0, true)}, 8, FaultMO},
		{"begins after the buffer", 1, []Header{send(1, 65, true)}, 8, FaultMO},
		{"too long", 1, []Header{send(1, 0, true)}, 65, FaultTooLong},
		{"ends after the buffer", 1, []Header{send(1, 60, true)}, 8, FaultTooLong},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, b := newPair(t, nil)
			mem := make([]byte, 64)
			for i := range c.buffers {
				b.buffers.post(uint64(i), mem)
			}
			f := NoFault
			for i, h := range c.segments {
				if f != NoFault {
					t.Fatalf("segment %d: %v too early", i-1, f)
				}
				_, f = b.take(encode(h, pattern(c.n)))
			}
			wantFault(t, "last segment", f, c.want)
		})
	}
}

func TestReceiveWaitsForBuffer(t *testing.T) {
	a, b := newPair(t, nil)
	m := a.stream.Send(Send, 8, 0)
	if _, f := a.send(m, pattern(8)); f != FaultNoBuffer {
		t.Fatalf("%v, want FaultNoBuffer", f)
	}
	b.buffers.post(1, make([]byte, 8))
	if e, f := a.send(m, pattern(8)); f != NoFault || e.Recv.ID != 1 {
		t.Fatalf("delivered again: %+v, %v", e, f)
	}
}

func TestWriteArrives(t *testing.T) {
	a, b := newPair(t, nil)
	mem, tag := b.region(400, rdma.RemoteWrite, nil)
	want := slices.Clone(mem)
	copy(want[10:], pattern(250))
	e, f := a.send(a.stream.Write(tag, 0x100a, 250), pattern(250))
	if f != NoFault || e.Kind != Nothing {
		t.Fatalf("%+v, %v", e, f)
	}
	wantBytes(t, "region", mem, want)

	// RFC 5040 section 5.1: the tag and address of an empty Write are ignored.
	e, f = a.send(a.stream.Write(1, 0, 0), nil)
	if f != NoFault || e.Kind != Nothing {
		t.Fatalf("an empty Write: %+v, %v", e, f)
	}
}

func TestReadIsAnswered(t *testing.T) {
	for _, n := range []int{0, 1, 100, 333} {
		a, b := newPair(t, nil)
		mem, tag := b.region(400, rdma.RemoteRead, nil)
		sink := make([]byte, n)
		if n == 0 {
			tag = 77 // must not be checked
		}
		e, f := a.read(5, sink, tag, 0x1003)
		if f != NoFault || e.Kind != Requested || !b.stream.ResponsesPending() {
			t.Fatalf("%d bytes: request: %+v, %v", n, e, f)
		}
		e, f = b.answer()
		if f != NoFault || e.Kind != Fetched || e.ID != 5 || e.Len != uint32(n) || b.stream.ResponsesPending() {
			t.Fatalf("%d bytes: answer: %+v, %v", n, e, f)
		}
		wantBytes(t, "sink", sink, mem[3:3+n])
	}
}

func TestReadsAndAtomicsAreAnsweredInOrder(t *testing.T) {
	a, b := newPair(t, nil)
	mem, tag := b.region(64, rdma.RemoteRead|rdma.RemoteWrite, nil)
	binary.NativeEndian.PutUint64(mem[8:], 41)
	sink := make([]byte, 8)
	if _, f := a.fetch(1, AtomicRequest{Code: FetchAdd, Target: tag, TO: 0x1008, Data: 1}); f != NoFault {
		t.Fatal(f)
	}
	if _, f := a.read(2, sink, tag, 0x1008); f != NoFault {
		t.Fatal(f)
	}
	if _, _, err := a.stream.Read(3, rdma.MemOf(sink), tag, 0x1008); !errors.Is(err, rdma.ErrAgain) {
		t.Fatalf("a third request of two: %v, want ErrAgain", err)
	}
	if _, _, err := a.stream.Fetch(3, AtomicRequest{}); !errors.Is(err, rdma.ErrAgain) {
		t.Fatalf("a third request of two: %v, want ErrAgain", err)
	}
	h, payload, f := b.stream.Respond(100)
	wantFault(t, "Respond", f, NoFault)
	e, f := a.take(encode(h, payload))
	if f != NoFault || e.Kind != Fetched || e.ID != 1 || e.Original != 41 || e.Len != 8 {
		t.Fatalf("atomic: %+v, %v", e, f)
	}
	if e, f = b.answer(); f != NoFault || e.ID != 2 {
		t.Fatalf("read: %+v, %v", e, f)
	}
	if got := binary.NativeEndian.Uint64(sink); got != 42 {
		t.Fatalf("the read after the atomic returned %d, want 42", got)
	}
	// An entry is free again.
	if _, f := a.fetch(3, AtomicRequest{Code: CompareSwap, Target: tag, TO: 0x1008, Compare: 42, CompareMask: 1<<64 - 1, Data: 7, Mask: 1<<64 - 1}); f != NoFault {
		t.Fatal(f)
	}
	if e, f = b.answer(); f != NoFault || e.ID != 3 || e.Original != 42 || binary.NativeEndian.Uint64(mem[8:]) != 7 {
		t.Fatalf("swap: %+v, %v; target %d", e, f, binary.NativeEndian.Uint64(mem[8:]))
	}
}

// TestAnswerFaults sends responses that were not requested.
func TestAnswerFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		atomic bool // the outstanding request
		answer func(tag Tag) []byte
		want   Fault
	}{
		{"another tag", false, func(tag Tag) []byte {
			return encode(Header{Op: ReadResponse, Last: true, Tag: tag + 1}, pattern(16))
		}, FaultTag},
		{"longer than asked", false, func(tag Tag) []byte {
			return encode(Header{Op: ReadResponse, Last: true, Tag: tag}, pattern(17))
		}, FaultTagBounds},
		{"outside the sink", false, func(tag Tag) []byte {
			return encode(Header{Op: ReadResponse, Last: true, Tag: tag, TO: 16}, pattern(1))
		}, FaultTagBounds},
		{"wrapping", false, func(tag Tag) []byte {
			return encode(Header{Op: ReadResponse, Last: true, Tag: tag, TO: 1<<64 - 8}, pattern(16))
		}, FaultTagWrap},
		{"not at the front", false, func(tag Tag) []byte {
			return encode(Header{Op: ReadResponse, Last: true, Tag: tag, TO: 8}, pattern(8))
		}, FaultTagBounds},
		{"ends too early", false, func(tag Tag) []byte {
			return encode(Header{Op: ReadResponse, Last: true, Tag: tag}, pattern(8))
		}, FaultUnspecified},
		{"does not end", false, func(tag Tag) []byte {
			return encode(Header{Op: ReadResponse, Tag: tag}, pattern(16))
		}, FaultUnspecified},
		{"empty", false, func(tag Tag) []byte {
			return encode(Header{Op: ReadResponse, Last: true, Tag: tag}, nil)
		}, FaultUnspecified},
		{"an atomic instead", false, func(Tag) []byte {
			return encode(Header{Op: AtomicResponseOp, Last: true, QN: QueueAtomic, MSN: 1}, make([]byte, AtomicResponseLen))
		}, FaultOpcode},
		{"a read instead", true, func(tag Tag) []byte {
			return encode(Header{Op: ReadResponse, Last: true}, nil)
		}, FaultOpcode},
		{"atomic out of order", true, func(Tag) []byte {
			return encode(Header{Op: AtomicResponseOp, Last: true, QN: QueueAtomic, MSN: 2}, make([]byte, AtomicResponseLen))
		}, FaultMSN},
		{"atomic of another request", true, func(Tag) []byte {
			return encode(Header{Op: AtomicResponseOp, Last: true, QN: QueueAtomic, MSN: 1}, pattern(AtomicResponseLen))
		}, FaultUnspecified},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, _ := newPair(t, nil)
			var request ReadRequest
			var err error
			if c.atomic {
				_, _, err = a.stream.Fetch(1, AtomicRequest{})
			} else {
				_, request, err = a.stream.Read(1, rdma.MemOf(make([]byte, 16)), 9, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, f := a.take(c.answer(request.Sink))
			wantFault(t, "answer", f, c.want)
		})
	}
}

func TestTerminateEndsStream(t *testing.T) {
	a, b := newPair(t, nil)
	raw := encode(Header{Op: Write, Last: true, Tag: 9, TO: 5}, pattern(10))
	_, f := b.take(raw)
	wantFault(t, "Write", f, FaultTag)
	m, terminate, ok := b.stream.Terminate(f, raw, len(raw))
	if !ok {
		t.Fatal("no Terminate for the first fault")
	}
	body := make([]byte, terminate.Len())
	terminate.Put(body)
	e, f := b.send(m, body)
	if f != NoFault || e.Kind != Terminated || e.Fault != FaultTag {
		t.Fatalf("%+v, %v", e, f)
	}
	if _, _, ok := b.stream.Terminate(FaultLocal, nil, 0); ok {
		t.Fatal("a second Terminate on one stream")
	}
	for _, c := range []struct {
		h    Header
		body []byte
		want Fault
	}{
		{Header{Op: TerminateOp, Last: true, QN: QueueTerminate, MSN: 2}, body, FaultMSN},
		{Header{Op: TerminateOp, Last: true, QN: QueueTerminate, MSN: 1}, body[:3], FaultUnspecified},
	} {
		_, f := a.take(encode(c.h, c.body))
		wantFault(t, "Terminate", f, c.want)
	}
}

// TestRefusalShowsTheRequest detects the fault when the segment of the request is gone.
func TestRefusalShowsTheRequest(t *testing.T) {
	for _, c := range []struct {
		name        string
		outstanding func(a *side) (Event, Fault)
		want        Fault
		shown       Opcode
		source      Tag // of the read that is shown; 0: none
	}{
		{"read", func(a *side) (Event, Fault) { return a.read(1, make([]byte, 8), 0xabcd, 5) }, FaultSourceTag, ReadRequestOp, 0xabcd},
		{"atomic", func(a *side) (Event, Fault) { return a.fetch(1, AtomicRequest{Target: 0xabcd}) }, FaultSourceTag, AtomicRequestOp, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newPair(t, nil)
			if _, f := a.read(1, nil, 0, 0); f != NoFault { // so that it is request 2
				t.Fatal(f)
			}
			if _, f := c.outstanding(a); f != NoFault {
				t.Fatal(f)
			}
			_, f := b.answer()
			wantFault(t, "Respond", f, c.want)
			m, terminate, ok := b.stream.Refuse(f)
			if !ok {
				t.Fatal("no Terminate")
			}
			var h Header
			if _, f := h.Decode(terminate.DDP(), int(terminate.Size)); f != NoFault || h.Op != c.shown || h.MSN != 2 {
				t.Fatalf("shown: %+v, %v", h, f)
			}
			if r, ok := terminate.Request(); ok != (c.source != 0) || r.Source != c.source {
				t.Fatalf("shown: %+v, %v", r, ok)
			}
			body := make([]byte, terminate.Len())
			terminate.Put(body)
			if e, f := b.send(m, body); f != NoFault || e.Kind != Terminated || e.Fault != c.want {
				t.Fatalf("%+v, %v", e, f)
			}
			if _, _, ok := b.stream.Refuse(f); ok {
				t.Fatal("a second Terminate on one stream")
			}
		})
	}
}

// TestRefusalShowsTheRest: RFC 5040 section 4.8 requires the position at which a read was
// stopped.
func TestRefusalShowsTheRest(t *testing.T) {
	a, b := newPair(t, nil)
	_, tag := b.region(64, rdma.RemoteRead, nil)
	if _, f := a.read(1, make([]byte, 50), tag, 0x1002); f != NoFault {
		t.Fatal(f)
	}
	if _, payload, f := b.stream.Respond(20); f != NoFault || len(payload) != 20 {
		t.Fatalf("%d bytes, %v", len(payload), f)
	}
	b.table.Deregister(tag)
	_, _, f := b.stream.Respond(20)
	wantFault(t, "Respond", f, FaultSourceTag)
	_, terminate, _ := b.stream.Refuse(f)
	r, ok := terminate.Request()
	if !ok || r.SinkTO != 20 || r.SourceTO != 0x1016 || r.Size != 30 || r.Source != tag {
		t.Fatalf("%+v, %v; want the last 30 bytes", r, ok)
	}
}

func TestFlushReturnsOutstanding(t *testing.T) {
	a, b := newPair(t, nil)
	_, tag := b.region(64, rdma.RemoteRead, nil)
	a.buffers.post(1, make([]byte, 8))
	a.buffers.post(2, make([]byte, 8))
	if _, f := a.take(encode(Header{Op: Send, MSN: 1}, pattern(4))); f != NoFault {
		t.Fatal(f)
	}
	if _, f := a.read(3, make([]byte, 8), tag, 0x1000); f != NoFault {
		t.Fatal(f)
	}
	if _, f := a.fetch(4, AtomicRequest{Target: tag}); f != NoFault {
		t.Fatal(f)
	}
	var received, fetching []uint64
	var atomics []bool
	for _, s := range []*side{a, b} {
		s.stream.Flush(func(wr rdma.RecvWR) { received = append(received, wr.ID) },
			func(id uint64, atomic bool) { fetching, atomics = append(fetching, id), append(atomics, atomic) })
	}
	if !slices.Equal(received, []uint64{1}) || !slices.Equal(fetching, []uint64{3, 4}) || !slices.Equal(atomics, []bool{false, true}) {
		t.Fatalf("returned: receives %v, requests %v (atomic %v)", received, fetching, atomics)
	}
	if b.stream.ResponsesPending() {
		t.Fatal("a response is pending after the end")
	}
}

func TestRequestFaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		request AtomicRequest
		asked   Fault // when the request arrives
		done    Fault // when it is answered
	}{
		{"aligned", AtomicRequest{Code: FetchAdd, TO: 0x1008}, NoFault, NoFault},
		{"not aligned", AtomicRequest{Code: FetchAdd, TO: 0x1004}, NoFault, FaultAlignment},
		{"over the end", AtomicRequest{Code: FetchAdd, TO: 0x103c}, NoFault, FaultSourceBounds},
		{"code 1", AtomicRequest{Code: 1, TO: 0x1008}, FaultUnspecified, NoFault},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newPair(t, nil)
			_, c.request.Target = b.region(64, bothWays, nil)
			_, f := a.fetch(1, c.request)
			wantFault(t, "request", f, c.asked)
			_, f = b.answer()
			wantFault(t, "answer", f, c.done)
		})
	}
}

// TestAtomicAlignment: the memory must be aligned, not the address that peers use.
func TestAtomicAlignment(t *testing.T) {
	a, b := newPair(t, nil)
	mem := make([]byte, 64) // aligned, as Go aligns this size
	tag, err := b.table.Register(Region{Mem: rdma.MemOf(mem), Base: 0x1003, Access: bothWays, Domain: testDomain})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		to   uint64
		want Fault
	}{{0x100b, NoFault}, {0x1008, FaultAlignment}} {
		if _, f := a.fetch(1, AtomicRequest{Code: FetchAdd, Target: tag, TO: c.to, Data: 1}); f != NoFault {
			t.Fatal(f)
		}
		_, f := b.answer()
		wantFault(t, "atomic", f, c.want)
	}
	if binary.NativeEndian.Uint64(mem[8:]) != 1 || binary.NativeEndian.Uint64(mem) != 0 {
		t.Fatalf("memory is % x", mem[:16])
	}
}

// TestReadsAnsweredOutOfOrder receives the response to the second read first: it may be
// placed, as with datagrams, but not delivered.
func TestReadsAnsweredOutOfOrder(t *testing.T) {
	a, _ := newPair(t, nil)
	var requests [2]ReadRequest
	var sinks [2][]byte
	for i := range requests {
		sinks[i] = make([]byte, 8)
		var err error
		if _, requests[i], err = a.stream.Read(uint64(i), rdma.MemOf(sinks[i]), 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	second := Header{Op: ReadResponse, Last: true, Tag: requests[1].Sink}
	to, f := a.stream.Placement(&second, 0, 8)
	if f != NoFault || &to[0] != &sinks[1][0] {
		t.Fatalf("Place: %v", f)
	}
	var e Event
	wantFault(t, "Deliver out of order", a.stream.Deliver(&second, 8, nil, &e), FaultTag)
	first := Header{Op: ReadResponse, Last: true, Tag: requests[0].Sink}
	for i, h := range []Header{first, second} {
		if f := a.stream.Deliver(&h, 8, nil, &e); f != NoFault || e.ID != uint64(i) {
			t.Fatalf("answer %d: %+v, %v", i, e, f)
		}
	}
}

// TestDeliverWithoutPlacement is a device that omits a step: it is refused.
func TestDeliverWithoutPlacement(t *testing.T) {
	_, b := newPair(t, nil)
	var e Event
	h := Header{Op: Send, Last: true, MSN: 1}
	wantFault(t, "no receive", b.stream.Deliver(&h, 8, nil, &e), FaultNoBuffer)
	b.buffers.post(1, make([]byte, 4))
	wantFault(t, "too long", b.stream.Deliver(&h, 8, nil, &e), FaultTooLong)
	if e.Kind != Nothing {
		t.Fatalf("%+v after a fault", e)
	}
}

func TestPlacementDoesNotWrap(t *testing.T) {
	_, b := newPair(t, nil)
	_, tag := b.region(64, bothWays, nil)
	h := Header{Op: Write, Tag: tag, TO: 1<<64 - 4}
	_, f := b.stream.Placement(&h, 0x1004, 4) // 0x1000 beyond the end of the address space
	wantFault(t, "Place", f, FaultTagWrap)
}

func TestReadNeedsTag(t *testing.T) {
	s := NewStream(Config{Table: NewTable(strings.NewReader(""), 1), ID: 1, Outbound: 1})
	for range 2 { // and uses no entry of the queue
		if _, _, err := s.Read(1, rdma.Mem{}, 1, 0); !errors.Is(err, io.EOF) {
			t.Fatalf("%v, want the error of the random source", err)
		}
	}
}

func TestRingAgainstSlice(t *testing.T) {
	random := rand.New(seeded(7))
	r := newRing[int](3)
	var model []int
	for step := range 100 {
		if random.IntN(2) == 0 && !r.full() {
			*r.push() = step
			model = append(model, step)
		} else if len(model) > 0 {
			r.pop()
			model = model[1:]
		}
		if int(r.n) != len(model) || r.full() != (len(model) == 3) {
			t.Fatalf("step %d: %d items, want %d", step, r.n, len(model))
		}
		for i, want := range model {
			if got := *r.at(int32(i)); got != want {
				t.Fatalf("step %d: item %d is %d, want %d", step, i, got, want)
			}
		}
	}
}
