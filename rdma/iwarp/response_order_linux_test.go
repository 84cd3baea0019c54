//go:build !muster_portable

package iwarp

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// TestRequestsPassResponses reads from a peer that is in the middle of a long response to
// us: its own Read does not wait for the end of the response.
func TestRequestsPassResponses(t *testing.T) {
	a, b := settled(t, Config{NoThread: true})
	a.readFrom(b, 64<<20) // more than sockets hold
	out := &b.qp.(*queuePair).out
	pollUntil(t, "the response waits for its socket", func() bool { return out.blocked }, b)
	b.readFrom(a, 8)
	pollUntil(t, "the short Read has completed", func() bool { return len(b.got) == 1 }, a, b)
	if len(a.got) != 0 {
		t.Errorf("the long Read completed first: %+v", a.got)
	}
	pollUntil(t, "the long Read has completed", func() bool { return len(a.got) == 1 }, a, b)
	for _, c := range append(a.got, b.got...) {
		if c.Status != rdma.StatusOK {
			t.Errorf("a Read completes as %+v", c)
		}
	}
}

// TestAnswersPassResponses: when a message and a Read arrive together, the response waits until
// the user has handled the message. The requests of ranks that exchange long messages would else
// be behind the data of the first, in the buffer of the socket.
func TestAnswersPassResponses(t *testing.T) {
	a, b := settled(t, Config{NoThread: true})
	a.sendMore([]byte("text"), 0)
	a.readFrom(b, 1<<20)
	q := b.qp.(*queuePair)
	before := q.given()
	pollUntil(t, "the message has arrived", func() bool { return len(b.got) == 1 }, b)
	if n := q.given() - before; n > 0 {
		t.Errorf("%d bytes were sent before the message was handled", n)
	}
	b.readFrom(a, 8)
	if n := q.given() - before; n == 0 || n > 100 {
		t.Errorf("%d bytes were sent with the request", n)
	}
	pollUntil(t, "both Reads have completed", func() bool { return len(a.got) == 1 && len(b.got) == 2 }, a, b)
}

// readFrom posts a Read of n bytes of the peer's memory.
func (e *end) readFrom(peer *end, n int) {
	e.t.Helper()
	mr, err := peer.dev.Register(make([]byte, n), rdma.RemoteRead)
	if err != nil {
		e.t.Fatal(err)
	}
	if posted, err := e.qp.PostSend([]rdma.SendWR{{ID: 1, Op: rdma.OpRead, Body: rdma.MemOf(make([]byte, n)), Remote: mr.Base, RKey: mr.RKey}}); posted != 1 || err != nil {
		e.t.Fatal(posted, err)
	}
}
