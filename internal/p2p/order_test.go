package p2p

// Packets that arrive early, twice, or malformed.

import (
	"errors"
	"fmt"
	"math/rand"
	"testing"
)

func TestReorderAndDuplicate(t *testing.T) {
	for seed := range int64(40) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rng := rand.New(rand.NewSource(seed))
			j := newJob(t, 2, Config{EagerLimit: 16, Credit: 2000, Rendezvous: Rendezvous()[seed%3]}, 4)
			// The sequence numbers wrap around.
			start := uint32(1<<32 - 20)
			j.nodes[0].links[1].sendSeq, j.nodes[1].links[0].recvSeq = start, start
			j.nodes[1].links[0].sendSeq, j.nodes[0].links[1].recvSeq = start, start
			var sends, recvs []*Xfer
			const messages = 60
			sizes := make([]int, messages)
			for i := range messages {
				sizes[i] = rng.Intn(24)
				mode := Standard
				if rng.Intn(4) == 0 {
					mode = Synchronous
				}
				sends = append(sends, j.send(0, 1, i%3, sizes[i], mode))
			}
			for i := range messages {
				recvs = append(recvs, j.recv(1, 0, i%3, sizes[i]))
			}
			for {
				var events []func()
				for from := range 2 {
					wi := j.wire(from, 1-from)
					for i := range wi.inFlight {
						events = append(events, func() {
							if rng.Intn(5) == 0 { // the network duplicates it
								wi.inFlight = append(wi.inFlight, wi.inFlight[i])
							}
							j.deliver(from, 1-from, i)
						})
					}
					for i := range j.nodes[from].work {
						if j.ready(from, i) {
							events = append(events, func() { j.complete(from, i) })
						}
					}
				}
				if len(events) == 0 {
					break
				}
				events[rng.Intn(len(events))]()
			}
			for i := range messages {
				j.sent(sends[i], fmt.Sprint("send ", i))
				j.got(recvs[i], 0, i%3, sizes[i], fmt.Sprint("receive ", i))
			}
			if l := j.nodes[1].links[0]; l.Stats.Held == 0 || l.Stats.Duplicates == 0 || l.Err != nil {
				t.Fatalf("%d packets were held and %d doubled, error %v: the test must disturb the order", l.Stats.Held, l.Stats.Duplicates, l.Err)
			}
			j.clean()
		})
	}
}

func TestInvalidPacketsFailLink(t *testing.T) {
	seg := func(first uint32, off, n int) []byte {
		pkt := make([]byte, headLen+n)
		put64(pkt[offKind:], uint64(kindSeg))
		put64(pkt[offFirst:], uint64(first))
		put64(pkt[offTotal:], uint64(off))
		return pkt
	}
	control := func(kind packetKind, handle, n uint64) []byte {
		pkt := make([]byte, headRTS)
		put64(pkt[offKind:], uint64(kind))
		put64(pkt[offHandle:], handle)
		put64(pkt[offTotal:], n)
		return pkt
	}
	rts := func(proto byte) []byte {
		pkt := control(kindRTS, 0, 10)
		pkt[offProto] = proto
		return pkt
	}
	setSeq := func(pkt []byte, seq uint32) []byte {
		put64(pkt[offKind:], get64(pkt[offKind:])&(1<<32-1)|uint64(seq)<<32)
		return pkt
	}
	start := eagerPacket(0, 0, 0, 5, 10, make([]byte, 4))
	for _, c := range []struct {
		name string
		pkts [][]byte
	}{
		{"nothing", [][]byte{{}}},
		{"half a header", [][]byte{make([]byte, 16)}},
		{"no kind", [][]byte{make([]byte, 64)}},
		{"a kind of the future", [][]byte{control(kindCount, 0, 0)}},
		{"an RTR without a place for the data", [][]byte{control(kindRTR, 0, 0)[:headLen]}},
		{"a kind that never was", [][]byte{control(99, 0, 0)}},
		{"negative source", [][]byte{eagerPacket(0, 0, -1, 5, 0, nil)}},
		{"negative tag", [][]byte{eagerPacket(0, 0, 0, -1, 0, nil)}},
		{"more data than the message has", [][]byte{eagerPacket(0, 0, 0, 5, 3, make([]byte, 4))}},
		{"giant length", [][]byte{eagerPacket(0, 0, 0, 5, 1<<60, nil)}},
		{"segment of nothing", [][]byte{seg(0, 4, 4)}},
		{"segment that leaves a hole", [][]byte{start, setSeq(seg(0, 6, 4), 1)}},
		{"segment again", [][]byte{start, setSeq(seg(0, 4, 4), 1), setSeq(seg(0, 4, 4), 2)}},
		{"segment beyond the end", [][]byte{start, setSeq(seg(0, 4, 7), 1)}},
		{"empty segment", [][]byte{start, setSeq(seg(0, 4, 0), 1)}},
		{"unknown rendezvous", [][]byte{rts(protocolCount)}},
		{"rendezvous by eager", [][]byte{rts(protoEager)}},
		{"too much credit", [][]byte{control(kindCredit, 0, 1)}},
		{"negative credit", [][]byte{control(kindCredit, 0, 1<<63)}},
		{"negative CTS", [][]byte{control(kindCTS, 1, 1<<63)}},
		{"ACK for a receive", [][]byte{control(kindACK, 1, 0)}},
		{"CTS for a receive", [][]byte{control(kindCTS, 1, 1)}},
		{"FIN for a receive", [][]byte{control(kindFIN, 1, 1)}},
		{"ACK for another peer's send", [][]byte{control(kindACK, 2, 1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJob(t, 3, Config{EagerLimit: 64}, 4)
			r := j.recv(1, 0, 9, 4)              // handle 1
			s := j.send(1, 2, 5, 4, Synchronous) // handle 2
			m, l := j.nodes[1].m, j.nodes[1].links[0]
			for i, pkt := range c.pkts {
				if l.Err != nil {
					t.Fatalf("the link was given up at packet %d already: %v", i, l.Err)
				}
				m.HandlePacket(l, pkt)
			}
			if !errors.Is(l.Err, ErrProtocol) {
				t.Fatalf("error is %v, want %v", l.Err, ErrProtocol)
			}
			if !errors.Is(r.Err, ErrProtocol) || !r.Done() {
				t.Fatalf("a receive from that peer is in stage %s, error %v", r.Stage(), r.Err)
			}
			if s.Done() {
				t.Fatal("a send to another peer ended")
			}
			m.HandlePacket(l, eagerPacket(uint32(len(c.pkts)), 0, 0, 5, 0, nil))
			if m.CountUnexpected() != 0 {
				t.Fatalf("%d messages wait: a peer that was given up is not listened to", m.CountUnexpected())
			}
		})
	}
}

// Answers of another protocol fail the link of a send in stage rts.
func TestWrongAnswersFailLink(t *testing.T) {
	for _, c := range []struct {
		rendezvous string
		kind       packetKind
		n          uint64
	}{
		{"get", kindCTS, 20}, {"get", kindACK, 0},
		{"put", kindACK, 0}, {"put", kindFIN, 20}, {"put", kindCTS, 21},
		{"coop", kindCTS, 20}, {"coop", kindACK, 0}, {"coop", kindFIN, 20},
	} {
		j := newJob(t, 2, Config{EagerLimit: 8, Rendezvous: c.rendezvous}, 4)
		s := j.send(0, 1, 5, 20, Standard)
		pkt := append(controlPacket(c.kind, s.Handle()), make([]byte, headCTS-headLen)...)
		put64(pkt[offTotal:], c.n)
		m, l := j.nodes[0].m, j.nodes[0].links[1]
		m.HandlePacket(l, pkt)
		if !errors.Is(l.Err, ErrProtocol) || !errors.Is(s.Err, ErrProtocol) || len(j.nodes[0].mem.regs) != 0 {
			t.Errorf("%s: %s to a send in rts: link %v, send %v, %d regions", c.rendezvous, FormatPacket(pkt), l.Err, s.Err, len(j.nodes[0].mem.regs))
		}
	}
}

// A device without RDMA Read rejects a rendezvous that needs it.
func TestUnsupportedRendezvous(t *testing.T) {
	j := newJob(t, 2, Config{EagerLimit: 8, Rendezvous: "get"}, 4)
	j.send(0, 1, 5, 20, Standard)
	less := testAttr(4)
	less.Ops = 1 << 0 // OpSend
	j.nodes[1].links[0].Attr = &less
	j.drain()
	if err := j.nodes[1].links[0].Err; !errors.Is(err, ErrProtocol) {
		t.Fatalf("error is %v, want %v", err, ErrProtocol)
	}
}

// A short packet that announces a long message makes the receiver allocate at most
// keepAhead.
func TestKeepAheadLimit(t *testing.T) {
	r := newReceiver(1)
	data := make([]byte, 100)
	r.m.HandlePacket(r.links[0], eagerPacket(0, 0, 0, 5, maxTotal, data))
	if g := r.m.Look(0, 0, 5); g == nil || g.Total != maxTotal || cap(g.data) > keepAhead {
		t.Fatalf("the message %+v should be there, with little memory", g)
	}
	x := r.m.New()
	x.Source, x.Tag, x.Buf = 0, 5, make([]byte, 10)
	r.m.Recv(x)
	if x.Stage() != "partial" {
		t.Fatalf("the receive is in stage %s, want partial", x.Stage())
	}
}

// The handle of a freed operation is not found.
func TestStaleHandles(t *testing.T) {
	j := newJob(t, 2, Config{EagerLimit: 8, Rendezvous: "get"}, 4)
	s := j.send(0, 1, 5, 20, Standard)
	r := j.recv(1, 0, 5, 20)
	old := s.Handle()
	j.drain()
	j.sent(s, "the first send")
	j.got(r, 0, 5, 20, "the first receive")
	m := j.nodes[0].m
	m.Free(s)
	again := j.send(0, 1, 6, 20, Standard)
	if again != s || again.Handle() == old {
		t.Fatalf("the operation is used again under handle %d, before it was %d", again.Handle(), old)
	}
	m.HandleCompletion(old, 0, 20)
	m.HandleTaken(old)
	m.HandleCompletion(0, 0, 0)
	m.HandleCompletion(1<<40, 0, 0)
	m.step(j.nodes[0].links[1], controlPacket(kindFIN, old), Event{Kind: EvFIN})
	j.pending(again, "rts", "what was meant for the old operation does not touch the new one")
	r = j.recv(1, 0, 6, 20)
	j.drain()
	j.got(r, 0, 6, 20, "the second receive")
	j.clean()
}

func controlPacket(kind packetKind, handle uint64) []byte {
	pkt := make([]byte, headLen)
	put64(pkt[offKind:], uint64(kind))
	put64(pkt[offHandle:], handle)
	return pkt
}
