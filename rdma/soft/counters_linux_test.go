package soft

import (
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

func countsOf(d *Device) map[rdma.Counter]uint64 {
	got := map[rdma.Counter]uint64{}
	d.Count(func(name rdma.Counter, value uint64) { got[name] += value })
	return got
}

// TestCount drops one datagram and checks the counters on both sides.
func TestCount(t *testing.T) {
	const messages = 20
	a, b := newTestNode(t, Config{}), newTestNode(t, Config{})
	to := a.resolve(t, b)
	dropped := false
	a.outgoing.disturb = byPacket(a, func(o *outbox) {
		if !dropped && o.n > 0 {
			dropped, o.n = true, 0
		}
	})
	for i := range messages {
		a.send(t, to, "hello")
		deadline := time.Now().Add(20 * time.Second)
		for _, ok := b.poll(0); !ok; _, ok = b.poll(0) {
			a.poll(0)
			if time.Now().After(deadline) {
				t.Fatalf("message %d has not arrived", i)
			}
		}
	}
	sent, got := countsOf(a.Device), countsOf(b.Device)
	if sent[rdma.DatagramsRetransmitted] == 0 {
		t.Errorf("a datagram was dropped and none retransmitted: %v", sent)
	}
	if got[rdma.DatagramsReceived] < messages || got[rdma.DatagramsReceived] > sent[rdma.DatagramsSent] {
		t.Errorf("%d messages arrived in %d datagrams, %d were sent", messages, got[rdma.DatagramsReceived], sent[rdma.DatagramsSent])
	}
	if n := got[rdma.DatagramsDuplicate]; n > sent[rdma.DatagramsRetransmitted] {
		t.Errorf("%d duplicates, but %d retransmissions", n, sent[rdma.DatagramsRetransmitted])
	}
	for _, name := range []rdma.Counter{rdma.MemoryReceive, rdma.MemorySend, rdma.MemoryPeers, rdma.MemoryKernel} {
		if got[name] == 0 {
			t.Errorf("%s is 0", name)
		}
	}
	if got[rdma.Sockets] != 1 || got[rdma.PeersKnown] != 1 {
		t.Errorf("one socket and one peer: %v", got)
	}
	b.Close()
	if after := countsOf(b.Device); after[rdma.DatagramsReceived] != got[rdma.DatagramsReceived] || after[rdma.MemoryReceive] != 0 {
		t.Errorf("after Close: %v", after)
	}
}
