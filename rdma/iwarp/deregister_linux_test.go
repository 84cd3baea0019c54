//go:build !muster_portable

package iwarp

import (
	"bytes"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// TestReadEndsAtDeregister deregisters a region while a peer reads it: the peer gets only
// earlier contents of the region, and then a refusal (RFC 5042 section 6.2.1).
func TestReadEndsAtDeregister(t *testing.T) {
	for _, noCRC := range []bool{false, true} {
		a, b := settled(t, Config{NoCRC: noCRC, NoThread: true})
		mem := bytes.Repeat([]byte{7}, 64<<20) // more than sockets hold
		mr, err := b.dev.Register(mem, rdma.RemoteRead)
		if err != nil {
			t.Fatal(err)
		}
		back := make([]byte, len(mem))
		if n, err := a.qp.PostSend([]rdma.SendWR{{ID: 1, Op: rdma.OpRead, Body: rdma.MemOf(back), Remote: mr.Base, RKey: mr.RKey}}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		out := &b.qp.(*queuePair).out
		pollUntil(t, "the answer waits for its socket", func() bool { return out.blocked }, b)
		if out.borrow != noCRC {
			t.Errorf("without CRC %v: the response is sent in place: %v", noCRC, out.borrow)
		}
		if err := b.dev.Deregister(mr); err != nil {
			t.Fatal(err)
		}
		for i := range mem {
			mem[i] = 9
		}
		pollUntil(t, "the Read has completed", func() bool { return len(a.got) == 1 }, a, b)
		if c := a.got[0]; c.Status != rdma.StatusRemoteAccess {
			t.Errorf("without CRC %v: the Read completes as %+v", noCRC, c)
		}
		if got := bytes.Count(back, []byte{7}); got == 0 || bytes.Contains(back, []byte{9}) {
			t.Errorf("without CRC %v: %d bytes of the earlier contents arrived, later contents: %v", noCRC, got, bytes.Contains(back, []byte{9}))
		}
	}
}
