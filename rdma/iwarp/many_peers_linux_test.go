//go:build !muster_portable

package iwarp

import (
	"errors"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
)

// manyPeers is a device whose one completion queue serves many connections, so that it
// uses epoll to find those that are ready.
type manyPeers struct {
	hub  *end
	qps  []rdma.QP
	ends []*end
}

func newManyPeers(t *testing.T, n int) *manyPeers {
	t.Helper()
	c := &manyPeers{hub: newEnd(t, Config{NoThread: true})}
	srq, err := c.hub.dev.NewSRQ(rdma.SRQConfig{Lend: true})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		qp, err := c.hub.dev.NewQP(rdma.QPConfig{Type: rdma.RC, SendCQ: c.hub.cq, RecvCQ: c.hub.cq, SRQ: srq})
		if err != nil {
			t.Fatal(err)
		}
		e := newEnd(t, Config{NoThread: true})
		if err := errors.Join(join(qp, e.qp, 20*time.Second)); err != nil {
			t.Fatal(err)
		}
		c.qps, c.ends = append(c.qps, qp), append(c.ends, e)
	}
	return c
}

func TestOneQueueForManyConnections(t *testing.T) {
	const each = 50
	c := newManyPeers(t, 20)
	all := append([]*end{c.hub}, c.ends...)
	mem := make([]byte, 2000) // all messages use it: only their number matters
	sent := 0
	for i := range each {
		for k, e := range c.ends {
			for _, qp := range []rdma.QP{c.qps[k], e.qp} {
				wr := []rdma.SendWR{{ID: uint64(i), Op: rdma.OpSend, Body: rdma.MemOf(mem), HeadLen: 8}}
				pollUntil(t, "the message is accepted", func() bool {
					n, err := qp.PostSend(wr)
					if err != nil && !errors.Is(err, rdma.ErrAgain) {
						t.Fatal(err)
					}
					return n == 1
				}, all...)
				sent++
			}
		}
	}
	came := func(e *end) (n int) {
		for _, one := range e.got {
			if one.Status != rdma.StatusOK {
				t.Fatalf("a completion is %+v", one)
			}
			if one.Op == rdma.OpRecv {
				n++
			}
		}
		return n
	}
	pollUntil(t, "every message has arrived", func() bool {
		n := 0
		for _, e := range all {
			n += came(e)
		}
		return n == sent
	}, all...)
	if n := came(c.hub); n != each*len(c.ends) {
		t.Errorf("the hub received %d messages, expected %d", n, each*len(c.ends))
	}
}

func TestManyConnectionsDoNotAllocate(t *testing.T) {
	c := newManyPeers(t, 8)
	wrs := []rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Inline, HeadLen: 8}}
	out := make([]rdma.Completion, 16)
	next := 0
	exchange := func() {
		next = (next + 1) % len(c.qps)
		peer := c.ends[next]
		if n, err := peer.qp.PostSend(wrs); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		for c.hub.cq.Poll(out) == 0 {
			peer.cq.Poll(nil) // the first messages wait until the connection is complete
		}
	}
	for range 100 {
		exchange()
	}
	if got := testing.AllocsPerRun(200, exchange); got != 0 && !race.Enabled {
		t.Errorf("a message and its Poll make %v allocations", got)
	}
}
