package rdmatest

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Connections that are reset from outside: by a firewall, a load balancer or an
// administrator.

func resetChecks() []check {
	return []check{
		{name: "reset-while-receiving", on: reliable, run: resetWhileReceiving,
			rule: "a connection that is reset while both sides only receive is reported to both within a second, or messages continue"},
	}
}

// resetLimit is the time within which both sides must report a reset.
const resetLimit = time.Second

func resetWhileReceiving(r *rig) {
	if r.reset == nil {
		if r.unconnected == "" {
			r.t.Fatal("the fixture has neither Reset nor a reason in Unconnected")
		}
		r.t.Skipf("there is no connection to reset: %s", r.unconnected)
	}
	a, b := r.nodes[0], r.nodes[1]
	resets := 0
	for end := time.Now().Add(r.hangTimeout); resets == 0; resets = r.reset() {
		if r.exchangeOnce(); time.Now().After(end) {
			r.t.Fatal("Fixture.Reset finds no connection after many messages")
		}
		r.settle()
	}
	for end := time.Now().Add(min(resetLimit, r.hangTimeout)); time.Now().Before(end) && (len(a.ended) == 0 || len(b.ended) == 0); {
		r.step()
	}
	switch {
	case len(a.ended) > 0 && len(b.ended) > 0:
		return
	case len(a.ended)+len(b.ended) > 0:
		r.t.Fatalf("%v after a reset node 0 has reported %v and node 1 %v: both must report it", resetLimit, a.ended, b.ended)
	}
	first, second := len(a.arrived), len(b.arrived)
	r.post(a, a.sendInline(1, 8, 0))
	r.post(b, b.sendInline(0, 8, 0))
	r.pollUntil("messages continue after a reset that was not reported", func() bool {
		return len(a.arrived) > first && len(b.arrived) > second
	}, a, b)
	for i, n := range r.nodes[:2] {
		if got := n.arrived[len(n.arrived)-1]; got.from != 1-i || got.status != rdma.StatusOK {
			r.t.Errorf("after a reset node %d receives %+v", i, got)
		}
	}
}
