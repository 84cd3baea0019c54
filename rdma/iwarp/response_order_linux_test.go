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
	long, short := make([]byte, 64<<20), make([]byte, 8) // long: more than sockets hold
	read := func(from, to *end, mem []byte) {
		t.Helper()
		mr, err := to.dev.Register(mem, rdma.RemoteRead)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := from.qp.PostSend([]rdma.SendWR{{ID: 1, Op: rdma.OpRead, Body: rdma.MemOf(make([]byte, len(mem))), Remote: mr.Base, RKey: mr.RKey}}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	read(a, b, long)
	out := &b.qp.(*queuePair).out
	pollUntil(t, "the response waits for its socket", func() bool { return out.blocked }, b)
	read(b, a, short)
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
