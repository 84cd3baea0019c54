package soft

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Long inline bodies: the caller may change them as soon as PostSend returns, and a
// retransmission still carries the original.

func TestInlineBodyReusable(t *testing.T) {
	for _, size := range []int{shortBody, shortBody + 1, minBody, minBody + 1, gatherAbove, 8 << 10, maxInline} {
		a, b := newTestNode(t, Config{}), newTestNode(t, Config{})
		lost := false
		a.outgoing.disturb = byPacket(a, func(o *outbox) { // drop everything once
			if !lost {
				lost, o.n = true, 0
			}
		})
		body := bytes.Repeat([]byte{'a'}, size)
		want := bytes.Clone(body)
		wr := rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Inline, Peer: a.resolve(t, b), Body: rdma.MemOf(body)}
		if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
			t.Fatal(err)
		}
		clear(body)
		var out [1]rdma.Completion
		deadline := time.Now().Add(testTimeout)
		for b.cq.Poll(out[:]) == 0 && time.Now().Before(deadline) {
			a.cq.Poll(out[:])
		}
		if !bytes.Equal(out[0].Data.Bytes(), want) {
			t.Errorf("%d bytes: received %d that differ", size, out[0].Data.Len())
		}
	}
}

func TestCopiesAreBounded(t *testing.T) {
	a, b := newTestNode(t, Config{NoThread: true}), newTestNode(t, Config{NoThread: true})
	to := a.resolve(t, b)
	body := make([]byte, maxInline)
	posted := 0
	for {
		n, err := a.qp.PostSend([]rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Inline, Peer: to, Body: rdma.MemOf(body)}})
		if n == 0 {
			if !errors.Is(err, rdma.ErrAgain) {
				t.Fatal(err)
			}
			break
		}
		posted++
	}
	if posted != maxKept/maxInline {
		t.Errorf("%d messages were accepted, want %d", posted, maxKept/maxInline)
	}
	var out [8]rdma.Completion
	got := 0
	for deadline := time.Now().Add(testTimeout); (got < posted || a.outstanding()) && time.Now().Before(deadline); {
		got += b.cq.Poll(out[:])
		a.cq.Poll(out[:])
	}
	if got != posted || a.outstanding() {
		t.Fatalf("%d of %d messages arrived", got, posted)
	}
	// The memory can be used for other sizes now.
	wrs := []rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Inline, Peer: to, Body: rdma.MemOf(body[:1000])}}
	if n, err := a.qp.PostSend(wrs); n != 1 {
		t.Errorf("a shorter message is not accepted: %v", err)
	}
	if a.outgoing.bodies.made > maxKept {
		t.Errorf("%d bytes are kept, more than %d", a.outgoing.bodies.made, maxKept)
	}
}
