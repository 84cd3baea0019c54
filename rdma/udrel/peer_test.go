package udrel

import (
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// TestIdlePeerIsSmall bounds the memory of an idle peer, which the documentation
// promises.
func TestIdlePeerIsSmall(t *testing.T) {
	if n := sizeOf[peer]() + uint64(reliable.PathSize()); n > 512 {
		t.Errorf("an idle peer takes %d bytes, want 512 at most", n)
	} else {
		t.Logf("%d bytes, %d of them for the path", n, reliable.PathSize())
	}
}

// TestAcksAreFew checks T1 6.6.1: in one direction there is an ack for about 50
// messages that nobody waits for.
func TestAcksAreFew(t *testing.T) {
	for _, every := range []int{defaultAckEvery, 10} {
		c := Config{Packet: 1400, AckEvery: every}
		pool := reliable.NewPool[posted](c.params())
		a, b := reliable.NewPeer(pool), reliable.NewPeer(pool)
		const messages = 1000
		finished, acks := 0, 0
		now := time.Duration(0)
		for range messages {
			a.Push(&message{Length: 1, DelayAck: true})
			s, ok := a.Next(now, 0, 0)
			if !ok {
				t.Fatal("a message is not sent")
			}
			now += 5 * time.Microsecond
			h := header{flags: flagDelayAck}
			if s.Urgent {
				h.flags |= flagUrgent
			}
			if b.Classify(s.Sequence) != reliable.InOrder {
				t.Fatal("a message is not the next")
			}
			b.Accept(s.Sequence)
			b.Received(now, 0, s.Number, 1, h.ackMode())
			b.MarkDelivered()
			if b.AckDue(now, 0) {
				var r reliable.Ack
				b.WriteAck(now, 0, &r, maxWords)
				acks++
				for m := a.Acknowledge(now, &r); m != nil; m = m.Following {
					finished++
				}
			}
		}
		if acks < messages/every || acks > messages/every+2 || finished < messages-every {
			t.Errorf("%d acks were sent for %d messages, of which %d are acked; want one for %d", acks, messages, finished, every)
		}
	}
}
