package iwarp

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// TestAnEndThatOnlyReceivesLearnsOfAReset: a firewall resets one end of an idle connection and
// says nothing to the other. The kernel's probe finds out.
func TestAnEndThatOnlyReceivesLearnsOfAReset(t *testing.T) {
	a, b := newPair(t, Config{})
	time.Sleep(200 * time.Millisecond) // the last ack has gone: it is idle
	// A socket that is closed under repair leaves without a word.
	if err := unix.SetsockoptInt(a.qp.(*queuePair).fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, 1); err != nil {
		t.Skipf("a connection cannot be forgotten in silence: %v", err)
	}
	d := a.dev.(*device)
	d.mu.Lock()
	a.qp.(*queuePair).lose(rdma.StatusPeerGone)
	d.mu.Unlock()
	begin := time.Now()
	pollUntil(t, "both are told", func() bool { return len(a.ended) == 1 && len(b.ended) == 1 }, a, b)
	if took := time.Since(begin); took > 3*keepaliveIdle {
		t.Errorf("the end that only receives is told after %v", took)
	} else {
		t.Logf("it is told after %v", took)
	}
	if c := b.ended[0]; c.Status != rdma.StatusPeerGone {
		t.Errorf("it is told %+v", c)
	}
}
