package p2p

import (
	"bytes"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// ringPair is a sender and a receiver with a ring and a receive queue. Packets on either
// wait until the test delivers them.
type ringPair struct {
	t        testing.TB
	from, to *Machine
	out, in  *Link // the sender's link and the receiver's
	mem      []byte
	queue    [][]byte // packets for the receive queue
	writes   []rdma.SendWR
	bodies   [][]byte
}

func newRingPair(t testing.TB, slots, slot int) *ringPair {
	attr := testAttr(0)
	p := &ringPair{t: t, from: New(Config{}, newMemory(0, 1<<16)), to: New(Config{}, newMemory(1, 1<<16)), mem: make([]byte, slots*slot)}
	p.out = &Link{Rank: 1, Attr: &attr, Open: true}
	p.in = &Link{Rank: 0, Attr: &attr, Open: true}
	p.from.SetUp(p.out)
	p.to.SetUp(p.in)
	p.to.OfferRing(p.in, p.mem, rdma.MR{Base: 1000, Len: uint64(len(p.mem)), RKey: 5}, slot)
	p.answer()
	if !p.out.HasRing() {
		t.Fatal("the sender knows of no ring")
	}
	return p
}

// answer delivers the receiver's packets to the sender.
func (p *ringPair) answer() {
	for i := range p.to.Out.WR {
		wr := &p.to.Out.WR[i]
		p.from.HandlePacket(p.out, append(bytes.Clone(wr.Head[:wr.HeadLen]), wr.Body.Bytes()...))
	}
	p.to.Out.WR, p.to.Out.Link = p.to.Out.WR[:0], p.to.Out.Link[:0]
}

// send sends an eager message and reports whether it uses the ring.
func (p *ringPair) send(tag int32, body []byte) (byRing bool) {
	if !p.from.SendNow(p.out, 0, 0, tag, body) {
		p.t.Fatal("SendNow refuses")
	}
	for i := range p.from.Out.WR {
		byRing = p.post(&p.from.Out.WR[i], 2)
	}
	p.from.Out.WR, p.from.Out.Link = p.from.Out.WR[:0], p.from.Out.Link[:0]
	return byRing
}

// post converts a packet to Writes, of which the device accepts some, or puts it into the
// queue. It reports whether it uses the ring.
func (p *ringPair) post(wr *rdma.SendWR, accepted int) (byRing bool) {
	var writes [2]rdma.SendWR
	n := p.from.ByRing(p.out, wr, &writes)
	if n == 0 {
		p.queue = append(p.queue, append(bytes.Clone(wr.Head[:wr.HeadLen]), wr.Body.Bytes()...))
		return false
	}
	accepted = min(accepted, n)
	for _, write := range writes[:accepted] {
		p.writes = append(p.writes, write)
		p.bodies = append(p.bodies, bytes.Clone(write.Body.Bytes()))
	}
	if all := p.out.Wrote(accepted, n); all != (accepted == n) {
		p.t.Errorf("Wrote of %d of %d reports %v", accepted, n, all)
	}
	return true
}

// land writes the first n bytes of the oldest Write, all of them if n is negative.
func (p *ringPair) land(n int) {
	w, b := &p.writes[0], p.bodies[0]
	if w.RKey != 5 || w.Remote < 1000 || int(w.Remote-1000)+len(b) > len(p.mem) {
		p.t.Fatalf("a write of %d bytes at %d lies outside the ring", len(b), w.Remote)
	}
	if n < 0 {
		p.writes, p.bodies = p.writes[1:], p.bodies[1:]
		n = len(b)
	}
	copy(p.mem[w.Remote-1000:], b[:n])
}

// expect receives a message and compares it.
func (p *ringPair) expect(tag int32, want []byte) {
	p.t.Helper()
	x := p.to.New()
	x.Link, x.Source, x.Tag, x.Buf = p.in, 0, tag, make([]byte, len(want)+1)
	p.to.Recv(x)
	if !x.Done() || x.Err != nil || !bytes.Equal(x.Buf[:x.Len], want) {
		p.t.Fatalf("message %d: done %v, error %v, %d bytes, want %d", tag, x.Done(), x.Err, x.Len, len(want))
	}
	p.to.Free(x)
}

func ringMessage(n, length int) []byte {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(n*7 + i)
	}
	return b
}

func TestRingOrder(t *testing.T) {
	p := newRingPair(t, 4, 256)
	ring, queue := 0, 0
	for n := range 201 {
		length := n * 37 % 400 // some are too long for a slot
		if p.send(3, ringMessage(n, length)) {
			ring++
		} else {
			queue++
		}
		if n%3 != 2 {
			continue
		}
		// Packets of the queue overtake the ring.
		for _, pkt := range p.queue {
			p.to.HandlePacket(p.in, pkt)
		}
		p.queue = nil
		for len(p.writes) > 0 {
			p.land(-1)
		}
		p.to.PollRing(p.in)
		p.answer()
		for m := n - 2; m <= n; m++ {
			p.expect(3, ringMessage(m, m*37%400))
		}
	}
	if p.out.Err != nil || p.in.Err != nil {
		t.Fatal(p.out.Err, p.in.Err)
	}
	if ring < 50 || queue < 50 || p.in.Stats.RingReceived != uint64(ring) || p.out.Stats.RingSent != uint64(ring) {
		t.Errorf("%d by the ring, %d by the queue; counted %d and %d", ring, queue, p.in.Stats.RingReceived, p.out.Stats.RingSent)
	}
}

func TestRingFull(t *testing.T) {
	p := newRingPair(t, 4, 128)
	for n := range 6 {
		if byRing := p.send(1, ringMessage(n, 8)); byRing != (n < 4) {
			t.Errorf("message %d goes by the ring: %v", n, byRing)
		}
	}
	for len(p.writes) > 0 {
		p.land(-1)
	}
	if n := p.to.PollRing(p.in); n != 4 {
		t.Errorf("%d packets came by the ring, want 4", n)
	}
	p.answer()
	if !p.send(1, ringMessage(6, 8)) {
		t.Error("a ring that was emptied takes nothing")
	}
}

// An incomplete slot is ignored, whichever bytes are missing: RDMA guarantees no order within
// a Write.
func TestRingIncompleteSlot(t *testing.T) {
	for missing := range headLen + 40 + ringTrailer {
		p := newRingPair(t, 2, 256)
		body := bytes.Repeat([]byte{0xA5}, 40)
		if !p.send(1, body) {
			t.Fatal("it does not go by the ring")
		}
		w, b := p.writes[0], p.bodies[0]
		at := int(w.Remote - 1000)
		copy(p.mem[at:], b)
		if b[missing] == 0 {
			continue // indistinguishable from a complete one
		}
		p.mem[at+missing] = 0
		if n := p.to.PollRing(p.in); n != 0 {
			t.Fatalf("without byte %d of %d the slot was taken", missing, len(b))
		}
		p.mem[at+missing] = b[missing]
		if n := p.to.PollRing(p.in); n != 1 {
			t.Fatalf("the whole slot was not taken, after byte %d was missing", missing)
		}
		p.expect(1, body)
	}
}

func TestInvalidRingPackets(t *testing.T) {
	for _, c := range []struct {
		name string
		head func(h []byte)
	}{
		{"slots that were never used", func(h []byte) { h[offKind] = byte(kindSlots); put64(h[offHandle:], 1) }},
		{"a second ring", func(h []byte) { h[offKind] = byte(kindRing); put64(h[offHandle:], 256); put64(h[offPeer:], 4) }},
		{"a ring without slots", func(h []byte) { h[offKind] = byte(kindRing); put64(h[offHandle:], 256) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newRingPair(t, 4, 256)
			pkt := make([]byte, headCTS)
			put64(pkt, uint64(p.out.recvSeq)<<32)
			c.head(pkt)
			p.from.HandlePacket(p.out, pkt)
			if p.out.Err == nil {
				t.Error("it is accepted")
			}
		})
	}
}

func TestRingNoAllocation(t *testing.T) {
	p := newRingPair(t, 8, 256)
	body := ringMessage(1, 64)
	var writes [2]rdma.SendWR
	x := p.to.New()
	buf := make([]byte, 64)
	n := testing.AllocsPerRun(200, func() {
		p.from.SendNow(p.out, 0, 0, 1, body)
		if p.from.ByRing(p.out, &p.from.Out.WR[0], &writes) != 1 {
			t.Fatal("it does not go by the ring")
		}
		copy(p.mem[writes[0].Remote-1000:], writes[0].Body.Bytes())
		p.out.Wrote(1, 1)
		p.from.Out.WR, p.from.Out.Link = p.from.Out.WR[:0], p.from.Out.Link[:0]
		p.to.PollRing(p.in)
		for i := range p.to.Out.WR {
			wr := &p.to.Out.WR[i]
			p.from.HandlePacket(p.out, wr.Head[:wr.HeadLen])
		}
		p.to.Out.WR, p.to.Out.Link = p.to.Out.WR[:0], p.to.Out.Link[:0]
		x.Link, x.Source, x.Tag, x.Buf = p.in, 0, 1, buf
		p.to.Recv(x)
		if !x.Done() {
			t.Fatal("nothing has come")
		}
		p.to.Free(x)
		x = p.to.New()
	})
	if n != 0 {
		t.Errorf("%v allocations for a message", n)
	}
}

// FuzzRing fills the ring with arbitrary bytes: nothing is read outside of it, and at worst
// the link fails.
func FuzzRing(f *testing.F) {
	p := newRingPair(f, 2, 128)
	p.send(1, ringMessage(0, 8))
	p.land(-1)
	f.Add(bytes.Clone(p.mem))
	d := newDirectPair(f, 2, 128)
	d.sendDirect(1, ringMessage(0, 8), 2)
	d.land(-1)
	d.land(-1)
	f.Add(bytes.Clone(d.mem))
	f.Fuzz(func(t *testing.T, content []byte) {
		p := newRingPair(t, 2, 128)
		copy(p.mem, content)
		p.to.PollRing(p.in)
		if p.in.Err != nil && p.in.Err.Error() == "" {
			t.Errorf("an error without words: %#v", p.in.Err)
		}
	})
}
