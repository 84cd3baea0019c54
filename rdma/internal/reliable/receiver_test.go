package reliable

import (
	"math/rand/v2"
	"testing"
	"time"
)

func testPeer() *Peer[uint64] {
	p := NewPeer(NewPool[uint64](single(mss)))
	return &p
}

func TestClassify(t *testing.T) {
	start := Sequence(0xFFFFFFFE) // so that numbers wrap
	r := testPeer()
	r.next, r.nextUp = start, start
	take := func(ps ...Sequence) {
		for _, p := range ps {
			r.Accept(p)
		}
	}
	hand := func(n int) {
		for range n {
			if !r.Waiting() {
				t.Fatalf("number %d is not deliverable", r.nextUp)
			}
			r.MarkDelivered()
		}
	}
	expect := func(p Sequence, want Classification) {
		t.Helper()
		if got := r.Classify(p); got != want {
			t.Errorf("next %d, given %d: %d is classified as %d, want %d", r.next, r.nextUp, p, got, want)
		}
	}
	expect(start, InOrder)
	expect(start+1, Early)
	expect(start-1, Duplicate)
	expect(start+Window-1, Early)
	expect(start+Window, Beyond)
	take(start+1, start+Window-1)
	expect(start+1, Duplicate)
	expect(start+Window-1, Duplicate)
	expect(start, InOrder)
	take(start)
	expect(start, Duplicate)
	expect(start+2, Early) // start and start+1 are not delivered yet
	hand(2)
	expect(start+2, InOrder)
	expect(start+Window+1, Early)
	expect(start+Window+2, Beyond)
	for p := start + 2; p != start+Window-1; p++ {
		take(p)
	}
	if r.next != start+Window || r.seen != nil {
		t.Errorf("the last gap is closed, but next is %d with history %x", r.next, r.seen)
	}
	hand(Window - 2)
	if r.Waiting() {
		t.Error("something is deliverable although all was delivered")
	}
}

func TestAckDue(t *testing.T) {
	r := testPeer()
	if r.AckDue(time.Hour, 0) {
		t.Error("an ack is due without a packet")
	}
	take := func(now time.Duration, n Number, mode AckMode) {
		r.Accept(Sequence(n))
		r.RecordPackets(now, 0, n, 1, mode)
	}
	take(0, 0, AckNormal)
	if r.AckDue(ackDelay-1, 0) || !r.AckDue(ackDelay, 0) {
		t.Errorf("the ack for one packet is due at %v, want %v", r.AckWake(0, 0), ackDelay)
	}
	var got Ack
	r.WriteAck(100*time.Microsecond, 0, &got, MaxWords)
	if want := (Ack{Next: 1, End: 1, Span: 1, Held: 100}); got != want {
		t.Errorf("the ack is %+v, want %+v", got, want)
	}
	if r.AckDue(time.Hour, 0) {
		t.Error("an ack is due after it was written")
	}
	for n := range Number(ackEvery) {
		if r.AckDue(0, 0) {
			t.Errorf("an ack is due after %d packets", n)
		}
		take(0, 1+n, AckNormal)
	}
	if !r.AckDue(0, 0) {
		t.Errorf("no ack is due after %d packets", ackEvery)
	}
	r.WriteAck(0, 0, &got, MaxWords)
	end := got.End
	for _, c := range []struct {
		name  string
		cause func()
	}{
		{"a request", func() { take(0, end, AckNow) }},
		{"a gap", func() { r.RecordPackets(0, 0, end+2, 1, AckNormal) }},
		{"a late packet", func() { r.RecordPackets(0, 0, end+1, 1, AckNormal) }},
		{"a refusal", func() { r.Refuse(0, 0) }},
	} {
		if c.cause(); !r.AckDue(0, 0) {
			t.Errorf("no ack is due at once after %s", c.name)
		}
		r.WriteAck(0, 0, &got, MaxWords)
	}
}

// TestAckReportsPackets checks an ack against a list of the packets received.
func TestAckReportsPackets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, start := range []Number{0, 1<<32 - 500} {
		for range 50 {
			r := testPeer()
			r.path(0).end = start
			got, end := map[Number]bool{}, start
			for range 1 + random.IntN(400) {
				n, count := end+Number(random.IntN(8)), 1+random.IntN(MaxRun)
				if random.IntN(4) == 0 {
					n, count = end-Number(random.IntN(50)), 1
				}
				if n.Before(start) {
					continue
				}
				r.RecordPackets(0, 0, n, count, AckNormal)
				for i := range Number(count) {
					got[n+i] = true
					if end.Before(n + i + 1) {
						end = n + i + 1
					}
				}
			}
			for _, words := range []int{MaxWords, 4, 0} {
				var a Ack
				r.WriteAck(0, 0, &a, words)
				if a.End != end || int(a.Words) > words {
					t.Fatalf("the ack ends at %d with %d words, want %d and at most %d", a.End, a.Words, end, words)
				}
				for n := end - packetWindow - 10; n != end; n++ {
					switch reported := a.has(n); {
					case reported && !got[n] && !n.Before(start):
						t.Fatalf("packet %d before the end is reported and has not arrived", end-n)
					case !reported && got[n] && end-n <= Number(a.Span):
						t.Fatalf("packet %d before the end has arrived and is not reported", end-n)
					}
				}
				if a.Span == 0 && words > 0 && len(got) > 0 {
					t.Fatal("the ack reports nothing")
				}
			}
		}
	}
}

// TestSteadyTrafficAllocatesNothing runs both halves without a network.
func TestSteadyTrafficAllocatesNothing(t *testing.T) {
	for _, params := range []Params{single(mss), runs(mss)} {
		h := NewPool[uint64](params)
		a, b := NewPeer(h), NewPeer(h)
		var m Message[uint64]
		var got Ack
		now := time.Duration(0)
		round := func() {
			m = Message[uint64]{Length: 3 * mss}
			a.Push(&m)
			for !a.Idle() {
				now += 10 * time.Microsecond
				for s, more := a.Next(now, 0, 0); more; s, more = a.Next(now, 0, 0) {
					if b.Classify(s.Sequence) != InOrder {
						t.Fatalf("segment %d is not the next", s.Sequence)
					}
					b.Accept(s.Sequence)
					b.RecordPackets(now, 0, s.Number, s.Packets, AckNormal)
					b.MarkDelivered()
				}
				b.WriteAck(now, 0, &got, MaxWords)
				a.Acknowledge(now, &got)
			}
		}
		round()
		if n := testing.AllocsPerRun(100, round); n != 0 {
			t.Errorf("a message allocates %v times", n)
		}
	}
}

// FuzzPeer passes arbitrary acks and packets to a peer with messages in flight. Every
// message finishes once and in order, and what is in flight is accounted for.
func FuzzPeer(f *testing.F) {
	f.Add([]byte{0, 5, 0, 1, 1, 0, 1, 0, 2, 1, 3, 0, 3, 200, 0, 0}, true)
	f.Add([]byte{0, 50, 0, 1, 1, 1, 40, 0, 3, 255, 255, 255, 1, 1, 60, 3}, false)
	f.Fuzz(func(t *testing.T, script []byte, long bool) {
		params := single(mss)
		if long {
			params = runs(mss)
		}
		p := NewPeer(NewPool[uint64](params))
		now, posted, done := time.Duration(0), uint64(0), uint64(0)
		finish := func(m *Message[uint64]) {
			for ; m != nil; m = m.Following {
				if m.Info != done {
					t.Fatalf("message %d finishes, want %d", m.Info, done)
				}
				done++
			}
		}
		for ; len(script) >= 4; script = script[4:] {
			x, y := uint32(script[1]), uint32(script[2])<<8|uint32(script[3])
			switch script[0] % 5 {
			case 0:
				if posted < 1000 {
					p.Push(&Message[uint64]{Length: int(x) * int(y%1000), Info: posted, DelayAck: script[0]&64 != 0})
					posted++
				}
			case 1:
				a := Ack{Next: p.first + Sequence(x%64), End: p.path(0).first + Number(y%1100), Span: uint16(y), Words: uint8(x % 17), Path: uint8(x / 250)}
				for i := range a.Missing {
					a.Missing[i] = uint64(x) * uint64(y) << (i % 7)
				}
				finish(p.Acknowledge(now, &a))
			case 2:
				now += time.Duration(y) * time.Microsecond
				p.Expire(now, false)
			case 3:
				q := p.nextUp + Sequence(x)
				if c := p.Classify(q); c == InOrder || c == Early {
					p.Accept(q)
				}
				p.RecordPackets(now, 0, p.path(0).end+Number(y)-300, 1+int(x)%MaxRun, AckMode(x%3))
				for p.Waiting() && x%2 == 0 {
					p.MarkDelivered()
				}
			case 4:
				var a Ack
				p.WriteAck(now, 0, &a, int(x)%(MaxWords+1))
			}
			for range 4 {
				if _, more := p.Next(now, 0, int(x)%40); !more {
					break
				}
			}
			sum := 0
			for n := p.path(0).first; n != p.path(0).fresh; n++ {
				if e := p.path(0).packets.at(uint32(n)); e.state == underWay {
					sum += int(e.cost)
				}
			}
			if sum != p.path(0).underWay {
				t.Fatalf("a cost of %d is in flight, counted as %d", sum, p.path(0).underWay)
			}
			if p.path(0).fresh-p.path(0).first > packetWindow || p.fresh-p.first > Window {
				t.Fatal("more is in flight than a window")
			}
		}
		finish(p.Abandon())
		if done != posted {
			t.Fatalf("%d of %d messages finish", done, posted)
		}
	})
}
