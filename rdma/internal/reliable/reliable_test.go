package reliable

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The protocol over the simulated network of network_test.go.

const (
	mss = 1400
	// peerTimeout is how long a peer may be silent before it counts as gone.
	peerTimeout = 30 * time.Second
)

// ethernet is a gigabit link.
var ethernet = impairments{delay: 30 * time.Microsecond, rate: 125e6, queue: 256 << 10, lateBy: 200 * time.Microsecond}

func TestDeliversUnderImpairments(t *testing.T) {
	for _, w := range []struct {
		name                        string
		lose, double, late, corrupt float64
		renege                      float64
	}{
		{name: "no-loss"},
		{name: "loss", lose: 0.1},
		{name: "duplication", double: 0.2},
		{name: "reordering", late: 0.3},
		{name: "corruption", corrupt: 0.1},
		{"everything", 0.1, 0.1, 0.1, 0.1, 0.002},
		{name: "reneging", renege: 0.01},
		{name: "half-lost", lose: 0.5},
	} {
		for _, params := range []Params{single(mss), runs(mss)} {
			t.Run(fmt.Sprintf("%s/run-%d", w.name, params.MaxRun), func(t *testing.T) {
				link := ethernet
				link.lose, link.double, link.late, link.corrupt, link.renege = w.lose, w.double, w.late, w.corrupt, w.renege
				n := newNetwork(t, 3, params, link)
				n.nodes[1].delayAck = true
				lengths := []int{0, 1, 64, mss - 1, mss, mss + 1, 3 * mss, 100_000}
				total := 0
				for _, length := range lengths {
					for from := range n.nodes {
						for to := range n.nodes {
							if from != to {
								n.nodes[from].post(to, length)
							}
						}
					}
					total += 2 * length
				}
				n.run("every message has arrived and is finished", 60*time.Second, func() bool {
					for i, node := range n.nodes {
						for j, p := range node.peers {
							if i != j && (p.finished < len(lengths) || p.wantID < uint64(len(lengths))) {
								return false
							}
						}
					}
					return true
				})
				for _, node := range n.nodes {
					if node.received != total {
						t.Errorf("node %d received %d bytes, want %d", node.index, node.received, total)
					}
					for j, p := range node.peers {
						if p.segments != nil || p.path(0).packets != nil || !p.Idle() || len(p.reorderBuffer) > 0 {
							t.Errorf("node %d still keeps memory for node %d although all is finished", node.index, j)
						}
					}
				}
				if w.corrupt > 0 && n.corrupted == 0 {
					t.Error("nothing was corrupted, so the test proves nothing")
				}
			})
		}
	}
}

// TestFillsALink measures the throughput over a simulated gigabit link.
func TestFillsALink(t *testing.T) {
	for _, c := range []struct {
		lose, least float64
	}{{0, 0.85}, {0.01, 0.8}, {0.03, 0.6}} {
		for _, params := range []Params{single(mss), runs(mss)} {
			t.Run(fmt.Sprintf("%g%%-lost/run-%d", c.lose*100, params.MaxRun), func(t *testing.T) {
				link := ethernet
				link.lose = c.lose
				n := newNetwork(t, 2, params, link)
				const size, messages = 1 << 20, 32
				for range messages {
					n.nodes[0].post(1, size)
				}
				n.run("all messages have arrived", 60*time.Second, func() bool { return n.nodes[0].peers[1].finished == messages })
				share := float64(size*messages) / n.now.Seconds() / link.rate
				t.Logf("%.3f of the link; %d datagrams, %d dropped in the queue, window %.0f bytes", share, n.sent, n.dropped, n.nodes[0].peers[1].path(0).cong.window)
				if share < c.least {
					t.Errorf("%.3f of the link is used at %g%% loss, want %.2f", share, c.lose*100, c.least)
				}
			})
		}
	}
}

// TestSurvivesIncast lets many senders fill one link at once, with a queue that holds
// less than one datagram of each.
func TestSurvivesIncast(t *testing.T) {
	link := ethernet
	link.queue = 64 << 10
	const senders, size = 96, 200_000
	n := newNetwork(t, senders+1, single(mss), link)
	for i := range senders {
		n.nodes[i+1].post(0, size)
	}
	n.run("everybody has got through", 60*time.Second, func() bool { return n.nodes[0].received == senders*size })
	var first, last time.Duration = Never, 0
	for _, p := range n.nodes[0].peers[1:] {
		first, last = min(first, p.gotAt), max(last, p.gotAt)
	}
	share := float64(senders*size) / n.now.Seconds() / link.rate
	t.Logf("%.3f of the link; %d datagrams, %d dropped; finished from %v to %v", share, n.sent, n.dropped, first, last)
	if share < 0.7 {
		t.Errorf("%.3f of the link is used by %d senders at once, want 0.7", share, senders)
	}
	if waste := float64(n.dropped) / float64(n.sent); waste > 0.25 {
		t.Errorf("%.2f of all datagrams were dropped in the queue: the senders do not back off", waste)
	}
}

// TestSilentPeerIsGone stops a peer while messages are in flight to it.
func TestSilentPeerIsGone(t *testing.T) {
	n := newNetwork(t, 2, single(mss), ethernet)
	n.nodes[0].post(1, 10)
	p := n.nodes[0].peers[1]
	n.run("the first message has arrived", time.Second, func() bool { return p.finished == 1 })
	n.nodes[1].dead = true
	died := n.now
	n.nodes[0].post(1, 10)
	n.nodes[0].post(1, 5*mss)
	n.run("the peer counts as gone", died+peerTimeout+time.Second, func() bool { return p.TimedOut(n.now, peerTimeout) })
	if n.now-died < peerTimeout {
		t.Errorf("the peer counts as gone after %v, before %v have passed", n.now-died, peerTimeout)
	}
	if n.sent > 1500 {
		t.Errorf("%d datagrams were sent to a dead peer", n.sent)
	}
	var ids []uint64
	for m := p.Abandon(); m != nil; m = m.Following {
		ids = append(ids, m.Info)
	}
	if !reflect.DeepEqual(ids, []uint64{1, 2}) {
		t.Errorf("abandon returns messages %v, want 1 and 2", ids)
	}
	if !p.Idle() || p.segments != nil || p.SendWake() != Never {
		t.Error("an abandoned peer still waits for something")
	}
}

// TestWaitsForPeerWithoutRoom has a receiver that sends acks but accepts nothing, for
// longer than the peer timeout.
func TestWaitsForPeerWithoutRoom(t *testing.T) {
	n := newNetwork(t, 2, single(mss), ethernet)
	n.nodes[1].deaf = true
	n.nodes[0].post(1, 5*mss)
	p := n.nodes[0].peers[1]
	n.after(2*peerTimeout, func() { n.nodes[1].deaf = false })
	n.run("the message has arrived", 3*peerTimeout, func() bool {
		if p.TimedOut(n.now, peerTimeout) {
			t.Fatalf("at %v a peer that answers counts as gone", n.now)
		}
		return p.finished == 1
	})
	if late := n.now - 2*peerTimeout; late > 2*maxRTO {
		t.Errorf("the message arrived %v after there was room for it", late)
	}
}

// TestPeerWithoutItsCore has a peer that processes packets late, as where processes share
// cores: timeouts send probes, and the window stays.
func TestPeerWithoutItsCore(t *testing.T) {
	n := newNetwork(t, 2, single(mss), ethernet)
	a := n.nodes[0]
	p := a.peers[1]
	for range 20 {
		a.post(1, 64<<10)
	}
	n.run("the path is known", time.Second, p.Idle)
	before, sent := p.path(0).cong.window, a.pool.Retransmitted
	n.delay = 10 * time.Millisecond
	a.post(1, 64<<10)
	n.run("a message has arrived late", n.now+time.Second, p.Idle)
	if after := p.path(0).cong.window; after < before/2 {
		t.Errorf("the window shrank from %v to %v though nothing was lost", before, after)
	}
	if again := a.pool.Retransmitted - sent; again > 6 {
		t.Errorf("%d packets were transmitted again though none was lost", again)
	}
	if !p.LossFree(n.now) {
		t.Error("a late ack counts as a loss")
	}
}

// TestProcessWithoutItsCore stops a process until its timers are due. The acks of its peers are in
// its socket then, and it reads them one after the other: no timer may expire meanwhile.
func TestProcessWithoutItsCore(t *testing.T) {
	const peers = 8
	n := newNetwork(t, 1+peers, single(mss), ethernet)
	a := n.nodes[0]
	done := func() bool {
		for _, p := range a.peers[1:] {
			if !p.Idle() {
				return false
			}
		}
		return true
	}
	for range 20 { // with and without a known round trip
		for to := 1; to <= peers; to++ {
			a.post(to, 100)
		}
		a.stopped = true
		n.after(2*initialRTO, a.resume)
		n.run("all have arrived", n.now+time.Second, done)
	}
	if got := a.pool.Retransmitted; got != 0 {
		t.Errorf("%d packets were retransmitted though none was lost", got)
	}
}

// TestRetransmitsOnlyLost loses the first of ten packets.
func TestRetransmitsOnlyLost(t *testing.T) {
	n := newNetwork(t, 2, single(mss), ethernet)
	a, b := n.nodes[0], n.nodes[1]
	a.post(1, 10)
	n.run("the path is known", time.Second, a.peers[1].Idle)
	n.lose = 1
	a.post(1, 10)
	n.lose = 0
	for range 9 {
		a.post(1, 10)
	}
	n.run("all have arrived", n.now+2*time.Millisecond, func() bool { return b.peers[0].wantID == 11 && a.peers[1].finished == 11 })
	if got := a.pool.Retransmitted; got != 1 {
		t.Errorf("%d packets were retransmitted for one that was lost", got)
	}
}

// TestTimeoutBackoff checks that timeouts double while a peer is silent, up to maxRTO, and
// that the message arrives soon when it is back.
func TestTimeoutBackoff(t *testing.T) {
	n := newNetwork(t, 2, single(mss), ethernet)
	a, b := n.nodes[0], n.nodes[1]
	a.post(1, 10)
	n.run("the path is known", time.Second, a.peers[1].Idle)
	b.dead = true
	started, last, pause, sent := n.now, n.now, time.Duration(0), n.sent
	a.post(1, 10)
	n.run("ten seconds have passed", started+11*time.Second, func() bool {
		if n.sent == sent {
			return n.now > started+10*time.Second
		}
		longer := n.now - last
		if longer < pause || pause > minRTO && longer < min(2*pause, maxRTO) {
			t.Fatalf("after %v a packet follows %v after the one before, which followed after %v", n.now-started, longer, pause)
		}
		sent, last, pause = n.sent, n.now, longer
		return false
	})
	if pause != maxRTO {
		t.Errorf("a peer that is silent for 10 s is sent a packet each %v, want %v", pause, maxRTO)
	}
	b.dead = false
	n.run("the message has arrived", n.now+2*maxRTO, func() bool { return b.peers[0].wantID == 2 && a.peers[1].finished == 2 })
}

// TestRequestsOvertakeResponses: messages that do not yield keep their order and go before
// those that do, except the one that is being segmented.
func TestRequestsOvertakeResponses(t *testing.T) {
	for _, v := range []struct {
		name   string
		pushed string // r yields, s does not; - segments a packet of the first
		want   string
	}{
		{"an-empty-queue", "s r", "0 1"},
		{"in-order-without-responses", "s s s", "0 1 2"},
		{"after-the-first-response", "r r r s", "0 3 1 2"},
		{"after-the-one-in-work", "r - r s r s", "0 2 4 1 3"},
		{"after-earlier-ones", "s r s r s", "0 2 4 1 3"},
		{"responses-in-order", "r r s r", "0 2 1 3"},
	} {
		s := NewPeer(NewPool[int](Params{Single: 1000, MaxRun: 1, AckEvery: 16, AckDelay: time.Millisecond, LongAckDelay: time.Millisecond}))
		n := 0
		for _, kind := range strings.Fields(v.pushed) {
			if kind == "-" {
				s.Next(0, 0, 0)
				continue
			}
			s.Push(&Message[int]{Length: 1500, Yields: kind == "r", Info: n})
			n++
		}
		var got []string
		for m := s.Oldest(); m != nil; m = m.Following {
			got = append(got, strconv.Itoa(m.Info))
		}
		if order := strings.Join(got, " "); order != v.want {
			t.Errorf("%s: the order is %s, expected %s", v.name, order, v.want)
		}
	}
}
