package reliable

import (
	"testing"
	"time"
)

// Acks of messages whose completion nobody waits for.

func TestDelayedAcksPiggyback(t *testing.T) {
	const rounds, pause = 100, time.Millisecond
	for _, delayAck := range []bool{false, true} {
		n := newNetwork(t, 2, single(1400), impairments{delay: 20 * time.Microsecond})
		for _, node := range n.nodes {
			node.delayAck = delayAck
		}
		for i := range rounds {
			from := n.nodes[i%2]
			from.post(1-i%2, 4000) // three datagrams
			n.after(pause, func() {})
			until := n.now + pause
			n.run("the pause is over", until, func() bool { return n.now >= until })
		}
		want := 3 * rounds
		if !delayAck {
			want += rounds // each requested an ack
		}
		if n.sent < want || n.sent > want+want/50 {
			t.Errorf("delayed acks: %v: %d datagrams were sent for %d messages, want about %d", delayAck, n.sent, rounds, want)
		}
	}
}

func TestDelayedAckTimeout(t *testing.T) {
	n := newNetwork(t, 2, single(1400), impairments{delay: 20 * time.Microsecond})
	a := n.nodes[0]
	p := a.peers[1]
	done := func() bool { return p.Idle() }
	a.post(1, 4000) // measures the round trip
	n.run("the first message is done", time.Second, done)
	a.delayAck = true

	// A lone message is acked in time, and nothing is retransmitted for lack of an ack.
	begin, sent := n.now, n.sent
	a.post(1, 4000)
	n.run("a lone message is done", n.now+longAckDelay+time.Millisecond, done)
	if took := n.now - begin; took < longAckDelay {
		t.Errorf("the ack arrived after %v, before the delay of %v", took, longAckDelay)
	}
	if got := n.sent - sent; got != 4 {
		t.Errorf("%d datagrams were sent for a message of three and its ack", got)
	}
	// Several consecutive messages share an ack.
	begin = n.now
	for range 8 {
		a.post(1, 4000)
	}
	n.run("some of many messages are done", begin+time.Millisecond, func() bool { return p.finished >= 4 })
	n.run("all of them are", begin+longAckDelay+time.Millisecond, done)

	// The ack of a message that is waited for covers the others.
	a.post(1, 100)
	a.delayAck = false
	begin = n.now
	a.post(1, 100)
	n.run("a message that is waited for is done", begin+ackDelay+100*time.Microsecond, done)

	// A loss is repaired soon, and acks are not delayed for a while after it.
	a.delayAck = true
	begin = n.now
	n.lose = 1
	a.post(1, 100)
	n.lose = 0
	n.run("a lost message is done", begin+longAckDelay+2*time.Millisecond, done)
	begin = n.now
	a.post(1, 100)
	n.run("the one after it is done", begin+ackDelay+100*time.Microsecond, done)
	if a.pool.Retransmitted != 1 {
		t.Errorf("%d datagrams were retransmitted and one was lost", a.pool.Retransmitted)
	}
	n.after(LossMemory+time.Millisecond, func() {})
	lossFree := n.now + LossMemory + time.Millisecond
	n.run("it is calm again", lossFree, func() bool { return n.now >= lossFree })
	if !p.LossFree(n.now) {
		t.Error("the loss is remembered for longer than it should be")
	}
}
