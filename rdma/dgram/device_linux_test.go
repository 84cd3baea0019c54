package dgram

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// The device against those who are not of the job, and against what is left of earlier
// ones.

// node is a device with a queue pair.
type testNode struct {
	*Device
	cq rdma.CQ
	qp rdma.QP
}

func newTestNode(t *testing.T, c Config) *testNode {
	t.Helper()
	return newStationOf(t, c, rdma.RD)
}

func newStationOf(t *testing.T, c Config, kind rdma.Transport) *testNode {
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

// poll polls until there is a completion or the time is over.
func (s *testNode) poll(limit time.Duration) (rdma.Completion, bool) {
	var out [1]rdma.Completion
	for deadline := time.Now().Add(limit); ; {
		if s.cq.Poll(out[:]) == 1 {
			return out[0], true
		}
		if time.Now().After(deadline) {
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

func TestStrangersCostNothing(t *testing.T) {
	ours := newTestNode(t, Config{})
	theirs := newTestNode(t, Config{JobKey: []byte("another job")})
	scanner, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(ours.socket.local))
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
	if c, ok := ours.poll(50 * time.Millisecond); ok {
		t.Errorf("a stranger's datagram becomes the completion %+v", c)
	}
	if len(ours.known) != 0 || len(ours.pairs[1].peers) != 0 {
		t.Error("state was made for a stranger")
	}
	if d := ours.Drops(); d.Strangers == 0 || d.Corrupt < 60 {
		t.Errorf("the drops are counted as %+v; there were 64 that are noise and some with another key", d)
	}
	if !theirs.outstanding() {
		t.Error("the stranger was given an ack")
	}
}

// outstanding reports whether something is not known to have arrived.
func (s *testNode) outstanding() bool { return s.qp.(rdma.DrainQP).Pending() > 0 }

// TestEarlierLifeIsNotHeard has a process come back on the port of one that ended.
func TestEarlierLifeIsNotHeard(t *testing.T) {
	first := newTestNode(t, Config{})
	port := first.socket.local
	peer := newTestNode(t, Config{})
	old := peer.resolve(t, first)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := newTestNode(t, Config{Bind: port})
	peer.send(t, old, "for the first")
	if c, ok := second.poll(50 * time.Millisecond); ok {
		t.Errorf("what was meant for the first process reaches the second: %+v", c)
	}
	if d := second.Drops(); d.Astray == 0 || len(second.known) != 0 {
		t.Errorf("the second process counts %+v and knows %d peers", d, len(second.known))
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

// TestPairsShareASocket: each message goes to the queue pair whose number it has.
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

// TestStandsBy: one who does nothing else waits for a message while the rank polls or not.
func TestStandsBy(t *testing.T) {
	a, b := newTestNode(t, Config{}), newTestNode(t, Config{})
	to := a.resolve(t, b)
	cq := b.cq.(rdma.ArmedCQ)
	if !cq.Arm() {
		t.Fatal("Arm says that Poll has something to do although nothing came")
	}
	ended := make(chan bool)
	go func() {
		seen := false
		for range 40 { // it may end early
			if err := cq.WaitArmed(time.Second); err != nil {
				t.Error(err)
			}
			if seen = !cq.Arm(); seen {
				break
			}
		}
		ended <- seen
	}()
	if c, ok := b.poll(5 * time.Millisecond); ok { // polling beside it is allowed
		t.Errorf("%+v came from nowhere", c)
	}
	a.send(t, to, "wake up")
	if !<-ended {
		t.Error("the message came and WaitArmed did not end with it")
	}
	if cq.Arm() {
		t.Error("Arm says that there is nothing to do although a message is there")
	}
	if c, ok := b.poll(time.Second); !ok || string(c.Data.Bytes()) != "wake up" {
		t.Errorf("%q comes", c.Data.Bytes())
	}
}

// TestIPv6 sends over the other version.
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
		t.Errorf("%q comes over IPv6", c.Data.Bytes())
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
