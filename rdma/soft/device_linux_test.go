package soft

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// The device against datagrams from outside the job and for earlier incarnations.

// testNode is a device with a queue pair.
type testNode struct {
	*Device
	cq rdma.CQ
	qp rdma.QP
}

func newTestNode(t *testing.T, c Config) *testNode {
	t.Helper()
	return newTestNodeOf(t, c, rdma.RD)
}

func newTestNodeOf(t *testing.T, c Config, kind rdma.Transport) *testNode {
	t.Helper()
	s := &testNode{Device: openTest(t, c)}
	var err error
	if s.cq, err = s.NewCQ(64); err != nil {
		t.Fatal(err)
	}
	srq, err := s.NewSRQ(rdma.SRQConfig{Lend: true})
	if err != nil {
		t.Fatal(err)
	}
	if s.qp, err = s.NewQP(rdma.QPConfig{Type: kind, SendCQ: s.cq, RecvCQ: s.cq, SRQ: srq}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *testNode) send(t *testing.T, to rdma.PeerID, text string) {
	t.Helper()
	wr := rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Inline, Peer: to, Body: rdma.MemOf([]byte(text))}
	if n, err := s.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
		t.Fatalf("post a message: %v", err)
	}
}

// poll polls until there is a completion or the limit has passed. The last Poll is after
// the limit, however long this process was stopped before it.
func (s *testNode) poll(limit time.Duration) (rdma.Completion, bool) {
	var out [1]rdma.Completion
	for deadline := time.Now().Add(limit); ; {
		last := time.Now().After(deadline)
		if s.cq.Poll(out[:]) == 1 {
			return out[0], true
		}
		if last {
			return rdma.Completion{}, false
		}
	}
}

func (s *testNode) resolve(t *testing.T, other *testNode) rdma.PeerID {
	t.Helper()
	id, err := s.Resolve(other.qp.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestForeignDatagramsDropped(t *testing.T) {
	ours := newTestNode(t, Config{})
	theirs := newTestNode(t, Config{JobKey: []byte("another job")})
	scanner, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(ours.net.first.local))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = scanner.Close() }() // nothing depends on it
	for size := range 64 {
		if _, err := scanner.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	theirs.send(t, theirs.resolve(t, ours), "let me in")
	drops := func() bool { d := ours.Drops(); return d.Strangers > 0 && d.Corrupt >= 60 }
	for end := time.Now().Add(testTimeout); ; {
		if c, ok := ours.poll(50 * time.Millisecond); ok {
			t.Errorf("a foreign datagram makes the completion %+v", c)
		}
		if drops() || time.Now().After(end) { // a stopped process polls only twice in 50 ms
			break
		}
	}
	if len(ours.peers.known) != 0 || len(ours.pairs[1].peers) != 0 {
		t.Error("state was allocated for a foreign datagram")
	}
	if !drops() {
		t.Errorf("drops are %+v; 64 datagrams were noise and some had another key", ours.Drops())
	}
	if !theirs.outstanding() {
		t.Error("a foreign datagram was acked")
	}
}

// outstanding reports whether a message is not known to have arrived.
func (s *testNode) outstanding() bool { return s.qp.Pending() > 0 }

// TestEarlierIncarnationDropped starts a process on the port of one that has ended.
func TestEarlierIncarnationDropped(t *testing.T) {
	first := newTestNode(t, Config{})
	port := first.net.first.local
	peer := newTestNode(t, Config{})
	old := peer.resolve(t, first)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := newTestNode(t, Config{Bind: port})
	peer.send(t, old, "for the first")
	if c, ok := second.poll(50 * time.Millisecond); ok {
		t.Errorf("a message for the first process reaches the second: %+v", c)
	}
	if d := second.Drops(); d.Astray == 0 || len(second.peers.known) != 0 {
		t.Errorf("the second process has drops %+v and %d peers", d, len(second.peers.known))
	}
	now := peer.resolve(t, second)
	if now == old {
		t.Error("both processes have the same handle")
	}
	peer.send(t, now, "for the second")
	c, ok := second.poll(time.Second)
	if !ok || string(c.Data.Bytes()) != "for the second" {
		t.Errorf("the second process gets %q", c.Data.Bytes())
	}
}

// TestPairsShareASocket checks that each message reaches the queue pair that it names.
func TestPairsShareASocket(t *testing.T) {
	d := newTestNode(t, Config{})
	twin := &testNode{Device: d.Device, cq: d.cq}
	srq, err := d.NewSRQ(rdma.SRQConfig{Lend: true})
	if err != nil {
		t.Fatal(err)
	}
	if twin.cq, err = d.NewCQ(64); err != nil {
		t.Fatal(err)
	}
	if twin.qp, err = d.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: twin.cq, RecvCQ: twin.cq, SRQ: srq}); err != nil {
		t.Fatal(err)
	}
	peer := newTestNode(t, Config{})
	peer.send(t, peer.resolve(t, d), "first")
	peer.send(t, peer.resolve(t, twin), "second")
	for _, want := range []struct {
		at   *testNode
		text string
	}{{twin, "second"}, {d, "first"}} {
		if c, ok := want.at.poll(time.Second); !ok || string(c.Data.Bytes()) != want.text {
			t.Errorf("the queue pair %s gets %q instead of %q", want.at.qp.Addr(), c.Data.Bytes(), want.text)
		}
	}
}

// TestWaitArmed waits for a message in WaitArmed while another goroutine polls.
func TestWaitArmed(t *testing.T) {
	a, b := newTestNode(t, Config{}), newTestNode(t, Config{})
	to := a.resolve(t, b)
	cq := b.cq
	if cq.Arm(rdma.NotifyAny, time.Hour) <= 0 {
		t.Fatal("Arm reports work although nothing arrived")
	}
	ended := make(chan bool)
	go func() {
		seen := false
		for range 40 { // it may return early
			if err := cq.WaitArmed(time.Second); err != nil {
				t.Error(err)
			}
			if seen = cq.Arm(rdma.NotifyAny, time.Hour) <= 0; seen {
				break
			}
		}
		ended <- seen
	}()
	if c, ok := b.poll(5 * time.Millisecond); ok { // concurrent polling is allowed
		t.Errorf("unexpected completion %+v", c)
	}
	a.send(t, to, "wake up")
	if !<-ended {
		t.Error("the message did not end WaitArmed")
	}
	if cq.Arm(rdma.NotifyAny, time.Hour) > 0 {
		t.Error("Arm reports no work although a message has arrived")
	}
	if c, ok := b.poll(time.Second); !ok || string(c.Data.Bytes()) != "wake up" {
		t.Errorf("received %q", c.Data.Bytes())
	}
}

func TestIPv6(t *testing.T) {
	six := Config{Bind: netip.MustParseAddrPort("[::1]:0")}
	if c, err := net.ListenPacket("udp6", "[::1]:0"); err != nil {
		t.Skipf("the host has no IPv6: %v", err)
	} else if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	a, b := newTestNode(t, six), newTestNode(t, six)
	a.send(t, a.resolve(t, b), "over six")
	if c, ok := b.poll(time.Second); !ok || string(c.Data.Bytes()) != "over six" {
		t.Errorf("received %q over IPv6", c.Data.Bytes())
	}
	four := newTestNode(t, Config{})
	if _, err := four.Resolve(a.qp.Addr()); err == nil {
		t.Error("an IPv4 socket resolves an IPv6 peer")
	}
}

func TestOpenRefuses(t *testing.T) {
	bind := netip.MustParseAddrPort("127.0.0.1:0")
	key := []byte("key")
	for name, c := range map[string]Config{
		"no-key":          {Bind: bind},
		"no-address":      {JobKey: key},
		"foreign-address": {Bind: netip.MustParseAddrPort("192.0.2.1:0"), JobKey: key},
		"tiny-datagram":   {Bind: bind, JobKey: key, Datagram: 100},
		"huge-datagram":   {Bind: bind, JobKey: key, Datagram: 1 << 17},
	} {
		if d, err := Open(c); err == nil {
			t.Errorf("%s: a device can be opened", name)
			_ = d.Close() // it should not be there
		}
	}
}

// TestStoppedProcessKeepsItsPeers: a process is stopped for longer than the peer timeout, with
// the acks of two peers in its socket. The first call afterwards reads one of them.
func TestStoppedProcessKeepsItsPeers(t *testing.T) {
	a := newTestNode(t, Config{NoThread: true, PeerTimeout: 10 * time.Second})
	for range 2 {
		b := newTestNode(t, Config{NoThread: true})
		to := a.resolve(t, b)
		a.send(t, to, "hello")
		if _, ok := b.poll(5 * time.Second); !ok {
			t.Fatal("the message does not arrive")
		}
		b.poll(20 * time.Millisecond) // sends the ack
	}
	a.mu.Lock()
	a.clock.start = a.clock.start.Add(-time.Minute)
	a.mu.Unlock()
	for deadline := time.Now().Add(5 * time.Second); a.outstanding() && time.Now().Before(deadline); {
		if c, ok := a.poll(0); ok && c.Status != rdma.StatusOK {
			t.Errorf("a completion %+v", c)
		}
	}
	if a.outstanding() {
		t.Error("the messages are not acked")
	}
}
