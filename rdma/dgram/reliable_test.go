package dgram

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// RD over the simulated network of network_test.go.

const mss = 1400

// ethernet is a gigabit link.
var ethernet = impairments{delay: 30 * time.Microsecond, rate: 125e6, queue: 256 << 10, lateBy: 200 * time.Microsecond}

func TestDeliversUnderImpairments(t *testing.T) {
	for _, w := range []struct {
		name                        string
		lose, double, late, corrupt float64
	}{
		{name: "no-loss"},
		{name: "loss", lose: 0.1},
		{name: "duplication", double: 0.2},
		{name: "reordering", late: 0.3},
		{name: "corruption", corrupt: 0.1},
		{"everything", 0.1, 0.1, 0.1, 0.1},
		{name: "half-lost", lose: 0.5},
	} {
		t.Run(w.name, func(t *testing.T) {
			link := ethernet
			link.lose, link.double, link.late, link.corrupt = w.lose, w.double, w.late, w.corrupt
			n := newNetwork(t, 3, mss, link)
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
					if p.sendWindow != nil || !p.idle() || len(p.reorderBuffer) > 0 {
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

// TestFillsALink measures the throughput over a simulated gigabit link.
func TestFillsALink(t *testing.T) {
	for _, c := range []struct {
		lose, least float64
	}{{0, 0.85}, {0.01, 0.8}, {0.03, 0.6}} {
		t.Run(fmt.Sprintf("%g%%-lost", c.lose*100), func(t *testing.T) {
			link := ethernet
			link.lose = c.lose
			n := newNetwork(t, 2, mss, link)
			const size, messages = 1 << 20, 32
			for range messages {
				n.nodes[0].post(1, size)
			}
			n.run("all messages have arrived", 60*time.Second, func() bool { return n.nodes[0].peers[1].finished == messages })
			share := float64(size*messages) / n.now.Seconds() / link.rate
			t.Logf("%.3f of the link; %d datagrams, %d dropped in the queue, window %.0f bytes", share, n.sent, n.dropped, n.nodes[0].peers[1].cong.window)
			if share < c.least {
				t.Errorf("%.3f of the link is used at %g%% loss, want %.2f", share, c.lose*100, c.least)
			}
		})
	}
}

// TestSurvivesIncast lets many senders fill one link at once, with a queue that holds
// less than one datagram of each.
func TestSurvivesIncast(t *testing.T) {
	link := ethernet
	link.queue = 64 << 10
	const senders, size = 96, 200_000
	n := newNetwork(t, senders+1, mss, link)
	for i := range senders {
		n.nodes[i+1].post(0, size)
	}
	n.run("everybody has got through", 60*time.Second, func() bool { return n.nodes[0].received == senders*size })
	var first, last time.Duration = never, 0
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

// TestIdlePeerIsSmall checks the size that the documentation promises.
func TestIdlePeerIsSmall(t *testing.T) {
	// The map entry counts twice because maps keep spare room.
	name := reflect.TypeFor[uint64]().Size() + reflect.TypeFor[rdma.PeerID]().Size()
	size := reflect.TypeFor[peer]().Size() + reflect.TypeFor[address]().Size() + 2*name
	t.Logf("%d bytes, %d of them for the conversation", size, reflect.TypeFor[peer]().Size())
	if size > 512 {
		t.Errorf("an idle peer costs %d bytes, want at most 512", size)
	}
	if p := newPeer(new(windowPool), mss); p.sendWindow != nil {
		t.Error("a new peer has a send window")
	}
}

// TestSilentPeerIsGone stops a peer while messages are in flight to it.
func TestSilentPeerIsGone(t *testing.T) {
	n := newNetwork(t, 2, mss, ethernet)
	n.nodes[0].post(1, 10)
	p := n.nodes[0].peers[1]
	n.run("the first message has arrived", time.Second, func() bool { return p.finished == 1 })
	n.nodes[1].dead = true
	died := n.now
	n.nodes[0].post(1, 10)
	n.nodes[0].post(1, 5*mss)
	n.run("the peer counts as gone", died+defaultPeerTimeout+time.Second, func() bool { return p.timedOut(n.now, defaultPeerTimeout) })
	if n.now-died < defaultPeerTimeout {
		t.Errorf("the peer counts as gone after %v, before %v have passed", n.now-died, defaultPeerTimeout)
	}
	if n.sent > 1500 {
		t.Errorf("%d datagrams were sent to a dead peer", n.sent)
	}
	var ids []uint64
	for m := p.abandon(); m != nil; m = m.following {
		ids = append(ids, m.id)
	}
	if !reflect.DeepEqual(ids, []uint64{1, 2}) {
		t.Errorf("abandon returns messages %v, want 1 and 2", ids)
	}
	if !p.idle() || p.sendWindow != nil || p.sender.wake() != never {
		t.Error("an abandoned peer still waits for something")
	}
}

// TestWaitsForPeerWithoutRoom has a receiver that sends acks but accepts nothing, for
// longer than the peer timeout.
func TestWaitsForPeerWithoutRoom(t *testing.T) {
	n := newNetwork(t, 2, mss, ethernet)
	n.nodes[1].deaf = true
	n.nodes[0].post(1, 5*mss)
	p := n.nodes[0].peers[1]
	n.after(2*defaultPeerTimeout, func() { n.nodes[1].deaf = false })
	n.run("the message has arrived", 3*defaultPeerTimeout, func() bool {
		if p.timedOut(n.now, defaultPeerTimeout) {
			t.Fatalf("at %v a peer that answers counts as gone", n.now)
		}
		return p.finished == 1
	})
	if late := n.now - 2*defaultPeerTimeout; late > 2*maxRTO {
		t.Errorf("the message arrived %v after there was room for it", late)
	}
}
