package p2p

import (
	"bytes"
	"errors"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// directPair is a ringPair whose sender uses registered buffers.
type directPair struct {
	*ringPair
	sources *testSources
}

func newDirectPair(t testing.TB, slots, slot int) *directPair {
	p := newRingPair(t, slots, slot)
	p.out.Attr.LocalKeys = true
	s := &testSources{from: true}
	p.from.UseSources(s)
	p.from.mem = s
	p.from.SourceFrom(p.out, 1)
	return &directPair{p, s}
}

// sendDirect sends a message from a registered buffer; the device accepts some Writes.
func (p *directPair) sendDirect(tag int32, body []byte, accepted int) *Xfer {
	p.t.Helper()
	wr, x := p.from.SendShort(p.out, 0, 0, tag, body, true)
	if wr == nil || x == nil {
		p.t.Fatal("SendShort does not send from the buffer")
	}
	if !p.post(&wr[0], accepted) {
		p.t.Fatal("the message does not go by the ring")
	}
	return x
}

func TestRingDirect(t *testing.T) {
	p := newDirectPair(t, 4, 256)
	for n := range 50 {
		body := ringMessage(n, 1+n*3)
		x := p.sendDirect(2, body, 2)
		if w := p.writes[0]; w.LKey != 77 || w.Flags&rdma.Inline != 0 || w.ID != x.Handle() || w.Body.Addr() != rdma.MemOf(body).Addr() {
			t.Fatalf("the first Write is %+v, want one from the buffer", w)
		}
		if w := p.writes[1]; w.Flags&rdma.Inline == 0 || w.ID != RingID {
			t.Fatalf("the second Write is %+v, want an inline one of the ring", w)
		}
		if n%2 == 1 { // RDMA guarantees no order of Writes within the target's memory
			p.writes[0], p.writes[1] = p.writes[1], p.writes[0]
			p.bodies[0], p.bodies[1] = p.bodies[1], p.bodies[0]
		}
		p.land(-1)
		if got := p.to.PollRing(p.in); got != 0 {
			t.Fatalf("message %d was taken after one of its two Writes", n)
		}
		p.land(-1)
		if got := p.to.PollRing(p.in); got != 1 {
			t.Fatalf("message %d was not taken", n)
		}
		p.answer()
		p.expect(2, body)
		if x.Done() {
			t.Fatal("the send has completed before the Write from its buffer")
		}
		p.from.HandleCompletion(x.Handle(), rdma.StatusOK, len(body))
		if !x.Done() || x.Err != nil {
			t.Fatalf("after the Write: done %v, %v", x.Done(), x.Err)
		}
		p.from.Free(x)
	}
	if s := p.out.Stats; s.RingSent != 50 || s.RingDirect != 50 || p.sources.released != 50 {
		t.Errorf("%d by the ring, %d from the buffer, %d registrations released, want 50 each", s.RingSent, s.RingDirect, p.sources.released)
	}
}

// A slot whose second Write the device does not accept is completed later, even if the
// buffer has changed.
func TestRingDirectHalf(t *testing.T) {
	p := newDirectPair(t, 2, 256)
	body := ringMessage(1, 100)
	want := bytes.Clone(body)
	wr, x := p.from.SendShort(p.out, 0, 0, 2, body, true)
	waiting := wr[0]
	p.post(&waiting, 0)
	p.post(&waiting, 1)
	p.from.HandleCompletion(x.Handle(), rdma.StatusOK, len(body))
	if !x.Done() {
		t.Fatal("the send has not completed with the Write from its buffer")
	}
	clear(body)
	p.post(&waiting, 0)
	if p.post(&waiting, 1); len(p.writes) != 2 || p.out.Stats.RingSent != 1 || p.out.Stats.RingDirect != 1 {
		t.Fatalf("%d Writes, counted %+v", len(p.writes), p.out.Stats)
	}
	p.land(-1)
	p.land(-1)
	if p.to.PollRing(p.in) != 1 {
		t.Fatal("the slot was not taken")
	}
	p.expect(2, want)
	if !p.send(2, ringMessage(2, 8)) {
		t.Fatal("the next message does not go by the ring")
	}
	p.land(-1)
	if p.to.PollRing(p.in) != 1 {
		t.Fatal("the next slot was not taken")
	}
	p.expect(2, ringMessage(2, 8))
}

func TestRingDirectIncompleteSlot(t *testing.T) {
	const length = 40
	for missing := range length + headLen + ringTrailer {
		p := newDirectPair(t, 2, 256)
		body := bytes.Repeat([]byte{0xA5}, length)
		p.sendDirect(1, body, 2)
		p.land(-1)
		p.land(-1)
		at := 256 - ringTrailer - headLen - length + missing
		if was := p.mem[at]; was != 0 { // else it is indistinguishable
			p.mem[at] = 0
			if n := p.to.PollRing(p.in); n != 0 {
				t.Fatalf("without byte %d the slot was taken", missing)
			}
			p.mem[at] = was
		}
		if n := p.to.PollRing(p.in); n != 1 {
			t.Fatalf("the whole slot was not taken, after byte %d was missing", missing)
		}
		p.expect(1, body)
	}
}

// A message that does not fit a slot, or finds none, goes from the buffer by the receive
// queue.
func TestRingDirectByQueue(t *testing.T) {
	p := newDirectPair(t, 2, 256)
	room := 256 - ringTrailer - 2*headLen
	for _, c := range []struct {
		length int
		byRing bool
	}{{room + 1, false}, {room, true}, {1, true}, {1, false}} {
		wr, _ := p.from.SendShort(p.out, 0, 0, 2, make([]byte, c.length), true)
		if byRing := p.post(&wr[0], 2); byRing != c.byRing {
			t.Errorf("%d bytes go by the ring: %v", c.length, byRing)
		}
	}
	if len(p.queue) != 2 || p.out.Stats.RingDirect != 2 {
		t.Errorf("%d by the queue, %d from the buffer by the ring", len(p.queue), p.out.Stats.RingDirect)
	}
}

// After a failed Write its slot stays incomplete, so the link has failed.
func TestRingDirectFails(t *testing.T) {
	p := newDirectPair(t, 2, 256)
	x := p.sendDirect(1, ringMessage(1, 64), 2)
	p.from.HandleCompletion(x.Handle(), rdma.StatusRemoteAccess, 0)
	if !errors.Is(x.Err, ErrTransport) || !errors.Is(p.out.Err, ErrTransport) || p.sources.released != 1 {
		t.Errorf("the send %v, the link %v, %d registrations released", x.Err, p.out.Err, p.sources.released)
	}
}

func TestRingDirectNoAllocation(t *testing.T) {
	p := newDirectPair(t, 8, 256)
	p.out.credit = 1 << 50
	body := ringMessage(1, 64)
	var writes [2]rdma.SendWR
	round := func() {
		p.sources.asked = p.sources.asked[:0]
		wr, x := p.from.SendShort(p.out, 0, 0, 1, body, true)
		if p.from.ByRing(p.out, &wr[0], &writes) != 2 {
			t.Fatal("it does not go by the ring")
		}
		p.out.Wrote(2, 2)
		p.out.out.freed++
		p.from.HandleCompletion(x.Handle(), rdma.StatusOK, len(body))
		p.from.Free(x)
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations for a message", n)
	}
}
