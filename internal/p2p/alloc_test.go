package p2p

// The steady state does not allocate, and the machine alone costs a few tens of nanoseconds
// for a short message.

import (
	"strings"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// twins are two machines connected without a device: the output of one goes to the other at
// once.
type twins struct {
	m    [2]*Machine
	link [2]*Link // link[i] is m[i]'s link to the other
	buf  [2][]byte
	pkt  [2][]byte
	mem  [2]noMemory

	early bool // receives send an RTR, which arrives before the send
}

// noMemory accepts every registration and counts them.
type noMemory struct{ registered, deregistered int }

func (n *noMemory) Register(*Link, []byte, rdma.Access) (rdma.MR, error) {
	n.registered++
	return rdma.MR{RKey: 1}, nil
}
func (n *noMemory) Deregister(*Link, rdma.MR) { n.deregistered++ }

func newTwins(cfg Config, size, segment int) *twins {
	tw := &twins{}
	for i := range 2 {
		attr := testAttr(segment)
		tw.m[i], tw.link[i] = New(cfg, &tw.mem[i]), &Link{Rank: 1 - i, Attr: &attr, Open: true}
		tw.m[i].SetUp(tw.link[i])
		tw.buf[i], tw.pkt[i] = make([]byte, size), make([]byte, 0, 1<<17)
	}
	tw.buf[0][0] = 42
	return tw
}

// flush passes the output of machine i on, until both have none.
func (tw *twins) flush(i int) {
	for len(tw.m[0].Out.WR)+len(tw.m[1].Out.WR) > 0 {
		m := tw.m[i]
		for k := 0; k < len(m.Out.WR); k++ {
			wr := &m.Out.WR[k]
			if wr.Op != rdma.OpSend {
				if wr.Op != rdma.OpPush {
					copy(tw.buf[1], tw.buf[0])
				}
				m.HandleCompletion(wr.ID, rdma.StatusOK, wr.Body.Len())
				continue
			}
			pkt := append(append(tw.pkt[i][:0], wr.Head[:wr.HeadLen]...), wr.Body.Bytes()...)
			if wr.ID != 0 {
				m.HandleTaken(wr.ID)
			}
			tw.m[1-i].HandlePacket(tw.link[1-i], pkt)
		}
		m.Out.WR, m.Out.Link = m.Out.WR[:0], m.Out.Link[:0]
		i = 1 - i
	}
}

func (tw *twins) recv() *Xfer {
	r := tw.m[1].New()
	r.Buf, r.Link, r.Source, r.Tag = tw.buf[1], tw.link[1], 0, 5
	tw.m[1].Recv(r)
	if tw.early {
		tw.m[1].Offer(r)
	}
	return r
}

// exchange sends one message from 0 to 1.
func (tw *twins) exchange(mode Mode, late bool) bool {
	var r *Xfer
	if !late {
		r = tw.recv()
		tw.flush(1)
	}
	s := tw.m[0].New()
	s.Buf, s.Link, s.Source, s.Tag, s.Mode = tw.buf[0], tw.link[0], 0, 5, mode
	tw.m[0].Send(s)
	tw.flush(0)
	if late {
		r = tw.recv()
		tw.flush(1)
	}
	ok := r.Done() && s.Done() && r.Err == nil && s.Err == nil && r.Len == len(tw.buf[0])
	tw.m[0].Free(s)
	tw.m[1].Free(r)
	return ok
}

// now sends one message by the fast path.
func (tw *twins) now() bool {
	r := tw.recv()
	wr := tw.m[0].SendOne(tw.link[0], 0, 0, 5, tw.buf[0])
	if wr == nil {
		return false
	}
	pkt := append(append(tw.pkt[0][:0], wr[0].Head[:wr[0].HeadLen]...), wr[0].Body.Bytes()...)
	tw.m[1].HandlePacket(tw.link[1], pkt)
	if len(tw.m[1].Out.WR) > 0 {
		tw.flush(1)
	}
	ok := r.Done()
	tw.m[1].Free(r)
	return ok
}

func TestNoAllocation(t *testing.T) {
	never := Config{EagerLimit: -1}
	for _, c := range []struct {
		name string
		cfg  Config
		size int
		mode Mode
		late bool
		spec bool
	}{
		{"eager", Config{}, 8, Standard, false, false},
		{"eager, unexpected", Config{}, 8, Standard, true, false},
		{"eager, unexpected and larger", Config{}, 8192, Standard, true, false},
		{"eager, synchronous", Config{}, 8, Synchronous, false, false},
		{"eager, segments", Config{}, 20000, Standard, false, false},
		{"eager, segments, unexpected", Config{}, 20000, Standard, true, false},
		{"get", Config{Rendezvous: "get", EagerLimit: never.EagerLimit}, 8, Standard, false, false},
		{"get, unexpected", Config{Rendezvous: "get", EagerLimit: never.EagerLimit}, 8, Standard, true, false},
		{"put", Config{Rendezvous: "put", EagerLimit: never.EagerLimit}, 8, Standard, false, false},
		{"put, unexpected", Config{Rendezvous: "put", EagerLimit: never.EagerLimit}, 8, Standard, true, false},
		{"coop", Config{Rendezvous: "coop", EagerLimit: never.EagerLimit}, 8, Standard, false, false},
		{"coop, unexpected", Config{Rendezvous: "coop", EagerLimit: never.EagerLimit}, 8, Standard, true, false},
		{"speculative", Config{EagerLimit: never.EagerLimit, Speculate: "auto"}, 8, Standard, false, true},
		{"speculative, synchronous", Config{EagerLimit: never.EagerLimit, Speculate: "auto"}, 8, Synchronous, false, true},
		{"speculative, but eager", Config{EagerLimit: 4, Speculate: "always"}, 4, Standard, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tw := newTwins(c.cfg, c.size, 4096)
			ok := true
			exchange := func() { ok = tw.exchange(c.mode, c.late) && ok }
			if tw.early = c.spec; tw.early {
				tw.buf[1] = make([]byte, c.size+1)
			}
			exchange()
			if n := testing.AllocsPerRun(2000, exchange); n != 0 {
				t.Errorf("%v allocations for a message, want none", n)
			}
			if !ok || tw.buf[1][0] != 42 {
				t.Error("a message did not come through")
			}
			if sent := tw.link[0].Stats.SpecSent; c.spec && c.size > c.cfg.EagerLimit && sent != tw.link[0].Stats.Sent {
				t.Errorf("%d of %d messages were written at once", sent, tw.link[0].Stats.Sent)
			}
			if s := tw.link[1].Stats; c.spec && s.RTRSent != s.Received {
				t.Errorf("%d RTRs for %d messages", s.RTRSent, s.Received)
			}
			for i := range 2 {
				if tw.mem[i].registered != tw.mem[i].deregistered {
					t.Errorf("rank %d registered %d and gave back %d regions", i, tw.mem[i].registered, tw.mem[i].deregistered)
				}
			}
		})
	}
	t.Run("SendOne", func(t *testing.T) {
		tw, ok := newTwins(Config{}, 8, 4096), true
		if n := testing.AllocsPerRun(2000, func() { ok = tw.now() && ok }); n != 0 || !ok {
			t.Errorf("%v allocations for a message, want none (came through: %v)", n, ok)
		}
	})
	t.Run("tags that never come again", func(t *testing.T) {
		tw, ok, tag := newTwins(Config{}, 8, 4096), true, int32(0)
		exchange := func() {
			r := tw.m[1].New()
			r.Buf, r.Link, r.Tag = tw.buf[1], tw.link[1], tag
			tw.m[1].Recv(r)
			ok = tw.m[0].SendNow(tw.link[0], 0, 0, tag, tw.buf[0]) && ok
			tw.flush(0)
			ok = ok && r.Done()
			tw.m[1].Free(r)
			tag++
		}
		for range 1000 {
			exchange()
		}
		if n := testing.AllocsPerRun(2000, exchange); n != 0 || !ok {
			t.Errorf("%v allocations for a message, want none (came through: %v)", n, ok)
		}
	})
}

// BenchmarkMachine measures the machine alone for a message of 8 bytes: send, arrive, match,
// without a device. The benchmark copies the packet.
func BenchmarkMachine(b *testing.B) {
	b.Run("SendOne", func(b *testing.B) {
		tw := newTwins(Config{}, 8, 4096)
		b.ReportAllocs()
		for b.Loop() {
			if !tw.now() {
				b.Fatal("a message did not come through")
			}
		}
	})
	b.Run("Send", func(b *testing.B) {
		tw := newTwins(Config{}, 8, 4096)
		for b.Loop() {
			if !tw.exchange(Standard, false) {
				b.Fatal("a message did not come through")
			}
		}
	})
	b.Run("unexpected", func(b *testing.B) {
		tw := newTwins(Config{}, 8, 4096)
		for b.Loop() {
			if !tw.exchange(Standard, true) {
				b.Fatal("a message did not come through")
			}
		}
	})
	for _, force := range append(Rendezvous(), "spec") {
		b.Run(force, func(b *testing.B) {
			tw := newTwins(Config{EagerLimit: -1, Rendezvous: strings.TrimSuffix(force, "spec")}, 8, 4096)
			tw.early = force == "spec"
			for b.Loop() {
				if !tw.exchange(Standard, false) {
					b.Fatal("a message did not come through")
				}
			}
		})
	}
	// The parts of the fast path.
	b.Run("only SendOne", func(b *testing.B) {
		tw := newTwins(Config{Credit: 1 << 60}, 8, 4096)
		for b.Loop() {
			if tw.m[0].SendOne(tw.link[0], 0, 0, 5, tw.buf[0]) == nil {
				b.Fatal("a message was refused")
			}
		}
	})
	b.Run("only SendNow", func(b *testing.B) {
		tw := newTwins(Config{Credit: 1 << 60}, 8, 4096)
		m := tw.m[0]
		for b.Loop() {
			m.SendNow(tw.link[0], 0, 0, 5, tw.buf[0])
			m.Out.WR, m.Out.Link = m.Out.WR[:0], m.Out.Link[:0]
		}
	})
	b.Run("only Recv and Arrived", func(b *testing.B) {
		tw := newTwins(Config{Credit: 1 << 60}, 8, 4096)
		m, l := tw.m[1], tw.link[1]
		pkt := eagerPacket(0, 0, 0, 5, 8, tw.buf[0])
		for b.Loop() {
			r := tw.recv()
			put64(pkt, uint64(kindEager)|uint64(l.recvSeq)<<32)
			m.HandlePacket(l, pkt)
			if !r.Done() {
				b.Fatal("a message did not come through")
			}
			m.Free(r)
		}
	})
}
