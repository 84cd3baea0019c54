package soft

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/seeded"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Two devices on UD: Write-Records over a good and a bad network, messages that the
// peer refuses, and RD beside them.

// pollBoth polls two nodes until done returns true for a completion.
func pollBoth(t *testing.T, a, b *testNode, done func(onA bool, c *rdma.Completion) bool) {
	t.Helper()
	var out [16]rdma.Completion
	for limit := time.Now().Add(testTimeout); ; {
		for i, s := range []*testNode{a, b} {
			for _, c := range out[:s.cq.Poll(out[:])] {
				if done(i == 0, &c) {
					return
				}
			}
		}
		if time.Now().After(limit) {
			t.Fatal("the expected completion does not arrive")
		}
	}
}

func TestWriteRecord(t *testing.T) {
	for _, v := range []struct {
		name string
		cfg  Config
	}{
		{"plain", Config{Datagram: ethernetDatagram}},
		{"encrypted", Config{Datagram: ethernetDatagram, Encrypt: true}},
	} {
		t.Run(v.name, func(t *testing.T) {
			a, b := newTestNodeOf(t, v.cfg, rdma.UD), newTestNodeOf(t, v.cfg, rdma.UD)
			to := a.resolve(t, b)
			region := make([]byte, 1<<20)
			mr, err := b.Register(region, rdma.RemoteWrite)
			if err != nil {
				t.Fatal(err)
			}
			cut, random := a.recordCut(), seeded.Random(t)
			for i, size := range []int{0, 1, 1000, cut - 1, cut, cut + 1, 3 * cut, 50_000} {
				body := make([]byte, size)
				for k := range body {
					body[k] = byte(random.Uint32())
				}
				id, offset := uint64(i)<<40+uint64(size), 17*i
				wr := rdma.SendWR{ID: id, Op: rdma.OpWriteRecord, Peer: to, Body: rdma.MemOf(body), Remote: mr.Base + uint64(offset), RKey: mr.RKey}
				post := func() {
					if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
						t.Fatal(err)
					}
				}
				post()
				pollBoth(t, a, b, func(onA bool, c *rdma.Completion) bool {
					switch {
					case onA && (c.Op != rdma.OpWriteRecord || c.ID != id || c.Status != rdma.StatusOK || c.Len != uint64(size)):
						t.Fatalf("the write-record completes as %+v", c)
					case !onA && (c.Op != rdma.OpRecord || c.ID != id || c.Len != uint64(size)):
						t.Fatalf("the target gets the completion %+v", c)
					}
					if !onA && c.Data.Len() < size {
						post() // on a busy machine it may arrive in parts
					}
					return !onA && c.Data.Len() == size
				})
				if !bytes.Equal(region[offset:offset+size], body) {
					t.Errorf("%d bytes are not what was sent", size)
				}
			}
		})
	}
}

// TestWriteRecordUnderLoss checks that every reported range has arrived and everything
// else is unchanged. Every message writes its number all over its own range.
func TestWriteRecordUnderLoss(t *testing.T) {
	cfg := Config{Datagram: ethernetDatagram}
	a, b := newTestNodeOf(t, cfg, rdma.UD), newTestNodeOf(t, cfg, rdma.UD)
	to := a.resolve(t, b)
	a.outgoing.disturb = byPacket(a, impair(0.1, 1))
	const messages, size = 200, 20_000
	region := make([]byte, messages*size)
	mr, err := b.Register(region, rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	reported := make([]bool, messages*size)
	whole, partial, received := 0, 0, 0
	note := func(onA bool, c *rdma.Completion) bool {
		if onA {
			return true
		}
		if c.Op != rdma.OpRecord || c.Len != size || c.ID >= messages {
			t.Fatalf("the target gets the completion %+v", c)
		}
		lo := int(c.Data.Addr() - mr.Base)
		if lo/size != int(c.ID) || (lo+c.Data.Len()-1)/size != int(c.ID) {
			t.Fatalf("message %d is reported in [%d, %d)", c.ID, lo, lo+c.Data.Len())
		}
		for i := range c.Data.Len() {
			if reported[lo+i] {
				t.Fatalf("byte %d of message %d is reported twice", lo+i, c.ID)
			}
			reported[lo+i] = true
		}
		if received += c.Data.Len(); c.Data.Len() == size {
			whole++
		} else {
			partial++
		}
		return false
	}
	for i := range messages {
		body := bytes.Repeat([]byte{byte(i%255 + 1)}, size)
		wr := rdma.SendWR{ID: uint64(i), Op: rdma.OpWriteRecord, Peer: to, Body: rdma.MemOf(body), Remote: mr.Base + uint64(i*size), RKey: mr.RKey}
		for {
			n, err := a.qp.PostSend([]rdma.SendWR{wr})
			if n == 1 {
				break
			}
			if !errors.Is(err, rdma.ErrAgain) {
				t.Fatal(err)
			}
			a.cq.Poll(nil)
		}
		pollBoth(t, a, b, note) // until it is sent
	}
	var out [16]rdma.Completion
	for quiet := time.Now(); time.Since(quiet) < 5*recordSilent; {
		for _, c := range out[:b.cq.Poll(out[:])] {
			note(false, &c)
			quiet = time.Now()
		}
	}
	t.Logf("%d messages arrived whole, %d ranges of others; %.2f of the bytes; %+v", whole, partial, float64(received)/(messages*size), b.Drops())
	for i, c := range region {
		if want := byte(i/size%255 + 1); reported[i] && c != want {
			t.Fatalf("byte %d is reported and is %d instead of %d", i, c, want)
		}
	}
	if partial == 0 || received < messages*size/3 {
		t.Errorf("%d ranges of messages with losses and %d bytes of %d are reported", partial, received, messages*size)
	}
}

// refusing returns a node, a peer with posted buffers of 100 bytes, and its handle.
func refusing(t *testing.T) (a, b *testNode, to rdma.PeerID) {
	t.Helper()
	a = newTestNodeOf(t, Config{}, rdma.UD)
	b = &testNode{Device: openTest(t, Config{})}
	var err error
	if b.cq, err = b.NewCQ(64); err != nil {
		t.Fatal(err)
	}
	if b.qp, err = b.NewQP(rdma.QPConfig{Type: rdma.UD, SendCQ: b.cq, RecvCQ: b.cq}); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if _, err := b.qp.PostRecv([]rdma.RecvWR{{ID: uint64(i), Body: rdma.MemOf(make([]byte, 100))}}); err != nil {
			t.Fatal(err)
		}
	}
	return a, b, a.resolve(t, b)
}

// TestRefusedMessages checks T1 6.3.3: an error message names the message at fault, and
// both queue pairs keep working.
func TestRefusedMessages(t *testing.T) {
	a, b, to := refusing(t)
	region := make([]byte, 100)
	mr, err := b.Register(region, rdma.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	long := rdma.MemOf(make([]byte, 101))
	for i, c := range []struct {
		name string
		wr   rdma.SendWR
		want rdma.Status
	}{
		{"too-long", rdma.SendWR{Op: rdma.OpSend, Body: long}, rdma.StatusTooLong},
		{"too-long-inline", rdma.SendWR{Op: rdma.OpSend, Body: long, Flags: rdma.Inline}, rdma.StatusTooLong},
		{"right-not-given", rdma.SendWR{Op: rdma.OpWriteRecord, Body: rdma.MemOf(make([]byte, 10)), Remote: mr.Base, RKey: mr.RKey}, rdma.StatusRemoteAccess},
		{"no-such-key", rdma.SendWR{Op: rdma.OpWriteRecord, Body: rdma.MemOf(make([]byte, 10)), Remote: mr.Base, RKey: 1 << 40}, rdma.StatusRemoteAccess},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.wr.ID, c.wr.Peer = uint64(100+i), to
			if n, err := a.qp.PostSend([]rdma.SendWR{c.wr}); n != 1 {
				t.Fatal(err)
			}
			pollBoth(t, a, b, func(onA bool, got *rdma.Completion) bool {
				switch {
				case !onA && (got.Op != rdma.OpRecv || got.Status != rdma.StatusTooLong):
					t.Fatalf("the receiver gets %+v", got)
				case onA && got.Op != rdma.OpRefused && got.Status != rdma.StatusOK:
					t.Fatalf("the send completes as %+v", got)
				case onA && got.Op == rdma.OpRefused:
					if got.ID != c.wr.ID || got.Peer != to || got.Status != c.want {
						t.Errorf("the sender gets %+v for request %d to peer %d, want %v", got, c.wr.ID, to, c.want)
					}
					return true
				}
				return false
			})
		})
	}
	a.send(t, to, "still here")
	pollBoth(t, a, b, func(onA bool, c *rdma.Completion) bool {
		return !onA && c.Op == rdma.OpRecv && string(c.Data.Bytes()) == "still here"
	})
}

// TestForeignRefusalsIgnored: a peer can refuse only what was sent to it, and only
// once.
func TestForeignRefusalsIgnored(t *testing.T) {
	g := newTarget(t, 10)
	at := rawOf(g.net.first.local)
	g.feed(header{kind: kindUnreliable}, nil) // makes the peer known
	self := g.peers.id(g.peerKeys.incarnation, 1, 0, &at)
	other := g.peers.id(newIncarnation(), 1, 0, &at)
	mine := g.q.remember(7, self)
	others := g.q.remember(8, other)
	refusal := func(number uint32) []byte {
		return appendTerminate(make([]byte, 0, 200), number, ddp.FaultTooLong, nil)
	}
	sent := g.keys.serial
	for _, number := range []uint32{0, others, mine + 1000, mine + remembered, mine, mine} {
		g.feed(header{kind: kindError}, refusal(number))
	}
	g.feed(header{kind: kindError}, []byte("nonsense"))
	var out [8]rdma.Completion
	n := g.q.sendCQ.Poll(out[:])
	if n != 1 || out[0].Op != rdma.OpRefused || out[0].ID != 7 || out[0].Peer != self || out[0].Status != rdma.StatusTooLong {
		t.Errorf("got completions %+v, want one refusal with ID 7", out[:n])
	}
	if g.keys.serial != sent {
		t.Errorf("%d datagrams were sent in reply to error messages", g.keys.serial-sent)
	}
}

// TestRefusalRateLimit: a faulty peer cannot make a device send many error messages.
func TestRefusalRateLimit(t *testing.T) {
	g := newTarget(t, 10)
	g.clock.now = time.Second
	sent := g.keys.serial
	for range 1000 {
		g.feed(header{kind: kindUnreliable}, []byte("nonsense"))
	}
	if got := g.keys.serial - sent; got != refusalBurst {
		t.Errorf("%d error messages for 1000 datagrams at once, want %d", got, refusalBurst)
	}
	g.clock.now += 5*refusalEvery + refusalEvery/2
	for range 1000 {
		g.feed(header{kind: kindUnreliable}, []byte("nonsense"))
	}
	if got := g.keys.serial - sent; got < refusalBurst+5 || got > refusalBurst+6 {
		t.Errorf("%d error messages after %v more, want 5 or 6 more than %d", got, 5*refusalEvery, refusalBurst)
	}
	if d := g.Drops(); d.Malformed != 2000 {
		t.Errorf("the drops are %+v", d)
	}
}

// TestPairsAreIndependent: RD continues in order while UD on the same sockets loses
// messages and is refused, in both directions.
func TestPairsAreIndependent(t *testing.T) {
	a, b := newTestNode(t, Config{}), newTestNode(t, Config{})
	var ud [2]*testNode
	var peers [2]rdma.PeerID
	for i, s := range []*testNode{a, b} {
		ud[i] = &testNode{Device: s.Device}
		var err error
		if ud[i].cq, err = s.NewCQ(64); err != nil {
			t.Fatal(err)
		}
		if ud[i].qp, err = s.NewQP(rdma.QPConfig{Type: rdma.UD, SendCQ: ud[i].cq, RecvCQ: ud[i].cq}); err != nil {
			t.Fatal(err)
		}
	}
	peers[0], peers[1] = ud[0].resolve(t, ud[1]), ud[1].resolve(t, ud[0])
	to := a.resolve(t, b)
	const messages = 300
	refused, forged := 0, rdma.MemOf(make([]byte, 10))
	var out [16]rdma.Completion
	limit := time.Now().Add(testTimeout)
	for i, next := 0, 0; next < messages; {
		if time.Now().After(limit) {
			t.Fatalf("%d of %d messages have arrived", next, messages)
		}
		if i < messages {
			a.send(t, to, string(rune('a'+i%26)))
			i++
		}
		for k, s := range ud {
			if i < messages {
				// A send for which there is no buffer, and a write-record of a forged key.
				wrs := []rdma.SendWR{
					{Op: rdma.OpSend, Peer: peers[k], Body: forged, Flags: rdma.Inline},
					{Op: rdma.OpWriteRecord, Peer: peers[k], Body: forged, Flags: rdma.Inline, RKey: 12345},
				}
				if _, err := s.qp.PostSend(wrs); err != nil && !errors.Is(err, rdma.ErrAgain) {
					t.Fatal(err)
				}
			}
			for _, c := range out[:s.cq.Poll(out[:])] {
				if c.Op != rdma.OpRefused || c.Status != rdma.StatusRemoteAccess {
					t.Fatalf("a UD queue pair gets %+v", c)
				}
				refused++
			}
		}
		a.cq.Poll(nil)
		for _, c := range out[:b.cq.Poll(out[:])] {
			if c.Op != rdma.OpRecv || string(c.Data.Bytes()) != string(rune('a'+next%26)) {
				t.Fatalf("message %d arrives as %+v", next, c)
			}
			next++
		}
	}
	if refused == 0 {
		t.Error("no error message arrived")
	}
	// A datagram of one kind for a queue pair of the other is malformed.
	before := b.Drops().Malformed
	h := header{kind: kindRecord, to: b.qp.(*pair).number, toIncarnation: b.keys.incarnation}
	peerKeys := testKeyring(t, "the key of the test")
	peerKeys.stampHeader(&h)
	b.mu.Lock()
	s := b.incoming.store.take()
	s.n = copy(s.data, peerKeys.seal(h.append(nil)))
	b.arrive(s)
	b.mu.Unlock()
	if b.Drops().Malformed != before+1 {
		t.Error("an RD queue pair accepts a Write-Record")
	}
}

// TestWriteRecordAllocatesNothing checks both origin and target.
func TestWriteRecordAllocatesNothing(t *testing.T) {
	cfg := Config{Datagram: ethernetDatagram, NoThread: true}
	a, b := newTestNodeOf(t, cfg, rdma.UD), newTestNodeOf(t, cfg, rdma.UD)
	to := a.resolve(t, b)
	region := make([]byte, 10_000)
	mr, err := b.Register(region, rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	body := rdma.MemOf(make([]byte, 10_000))
	wrs := []rdma.SendWR{{Op: rdma.OpWriteRecord, Peer: to, Body: body, Remote: mr.Base, RKey: mr.RKey}}
	var out [16]rdma.Completion
	round := func() {
		if n, err := a.qp.PostSend(wrs); n != 1 {
			t.Fatal(err)
		}
		for limit := time.Now().Add(testTimeout); b.cq.Poll(out[:]) == 0; {
			a.cq.Poll(out[:])
			if time.Now().After(limit) {
				t.Fatal("a write-record does not arrive")
			}
		}
		a.cq.Poll(out[:])
	}
	for range 100 {
		round()
	}
	if got := testing.AllocsPerRun(200, round); got != 0 {
		t.Errorf("a write-record allocates %v times", got)
	}
}

// TestWriteRecordBursts: a message longer than a burst continues while its origin polls
// or waits, and Close flushes what was not sent.
func TestWriteRecordBursts(t *testing.T) {
	cfg := Config{Datagram: minDatagram, NoThread: true}
	a, b := newTestNodeOf(t, cfg, rdma.UD), newTestNodeOf(t, cfg, rdma.UD)
	to := a.resolve(t, b)
	size := 2 * recordBurst
	region := make([]byte, size)
	mr, err := b.Register(region, rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	wrs := []rdma.SendWR{{ID: 9, Op: rdma.OpWriteRecord, Peer: to, Body: rdma.MemOf(bytes.Repeat([]byte{7}, size)), Remote: mr.Base, RKey: mr.RKey}}
	if n, err := a.qp.PostSend(wrs); n != 1 {
		t.Fatal(err)
	}
	if !a.outstanding() {
		t.Error("it was sent at once")
	}
	if err := a.cq.Wait(testTimeout); err != nil {
		t.Fatal(err)
	}
	if _, ok := a.poll(testTimeout); !ok || a.outstanding() {
		t.Fatal("it is not sent")
	}
	if c, ok := b.poll(testTimeout); !ok || c.Op != rdma.OpRecord || c.Len != uint64(size) {
		t.Errorf("the target gets %+v", c)
	}
	if n, err := a.qp.PostSend(wrs); n != 1 {
		t.Fatal(err)
	}
	if err := a.qp.Close(); err != nil {
		t.Fatal(err)
	}
	if c, ok := a.poll(testTimeout); !ok || c.ID != 9 || c.Status != rdma.StatusFlushed {
		t.Errorf("the rest completes as %+v", c)
	}
	wrs[0].Body = rdma.MemOf(make([]byte, maxPieces*a.recordCut()+1))
	other := newTestNodeOf(t, cfg, rdma.UD)
	wrs[0].Peer = other.resolve(t, b)
	if n, err := other.qp.PostSend(wrs); n != 0 || err == nil || errors.Is(err, rdma.ErrAgain) {
		t.Errorf("a message of too many pieces is accepted: %d, %v", n, err)
	}
}
