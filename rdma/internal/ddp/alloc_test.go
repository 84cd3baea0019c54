package ddp

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// oneBuffer is an inexhaustible receive queue.
type oneBuffer struct{ wr rdma.RecvWR }

func (b *oneBuffer) Take() (rdma.RecvWR, bool) { return b.wr, true }

// TestSteadyTrafficAllocatesNothing sends, writes, reads and adds, through the bytes of
// every header, once the rings are allocated.
func TestSteadyTrafficAllocatesNothing(t *testing.T) {
	mem := make([]byte, 64)
	table := NewTable(seeded(1), 8)
	tag, err := table.Register(Region{Mem: rdma.MemOf(mem), Access: bothWays})
	if err != nil {
		t.Fatal(err)
	}
	receive := &oneBuffer{rdma.RecvWR{Body: rdma.MemOf(make([]byte, 64))}}
	a := NewStream(Config{Table: table, ID: 1, Buffers: receive, Inbound: 2, Outbound: 2})
	b := NewStream(Config{Table: table, ID: 2, Buffers: receive, Inbound: 2, Outbound: 2})
	wire, body, payload := make([]byte, 256), make([]byte, ControlMax), make([]byte, 64)
	sink := rdma.MemOf(make([]byte, 64))
	var h Header
	var e Event
	carry := func(to *Stream, from Header, payload []byte) {
		n := from.Put(wire)
		size := n + copy(wire[n:], payload)
		if _, f := h.Decode(wire[:size], size); f != NoFault {
			t.Fatal(f)
		}
		placement, f := to.Placement(&h, 0, size-n)
		copy(placement, wire[n:size])
		if f != NoFault {
			t.Fatal(f)
		}
		if f := to.Deliver(&h, size-n, wire[n:size], &e); f != NoFault {
			t.Fatal(f)
		}
	}
	whole := func(to *Stream, m Message, payload []byte) {
		h, _ := m.Segment(0, 100)
		carry(to, h, payload[:m.Len])
	}
	round := func() {
		whole(b, a.Send(Send, 64, 0), payload)
		whole(b, a.Write(tag, 0, 64), payload)
		m, r, err := a.Read(1, sink, tag, 0)
		if err != nil {
			t.Fatal(err)
		}
		r.Put(body)
		whole(b, m, body)
		m, atomic, err := a.Fetch(2, AtomicRequest{Code: FetchAdd, Target: tag, Data: 1})
		if err != nil {
			t.Fatal(err)
		}
		atomic.Put(body)
		whole(b, m, body)
		for b.ResponsesPending() {
			h, answer, f := b.Respond(100)
			if f != NoFault {
				t.Fatal(f)
			}
			carry(a, h, answer)
		}
		if e.Kind != Fetched || e.ID != 2 {
			t.Fatalf("the round ends with %+v", e)
		}
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations in a round", n)
	}
}
