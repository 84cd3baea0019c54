//go:build !muster_portable

package iwarp

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// TestReceiverDetectsReset: a firewall resets one end of an idle connection and sends
// nothing to the other. The kernel's keepalive probe detects it.
func TestReceiverDetectsReset(t *testing.T) {
	a, b := newPair(t, Config{})
	time.Sleep(200 * time.Millisecond) // real time: the kernel sends its last ack, and the connection is idle
	// A socket that is closed in repair mode sends nothing.
	if err := unix.SetsockoptInt(int(a.qp.(*queuePair).fd), unix.IPPROTO_TCP, unix.TCP_REPAIR, 1); err != nil {
		t.Skipf("a connection cannot be dropped silently: %v", err)
	}
	d := a.dev.(*device)
	d.mu.Lock()
	a.qp.(*queuePair).lose(rdma.StatusPeerGone)
	d.mu.Unlock()
	begin := time.Now()
	pollUntil(t, "both ends report it", func() bool { return len(a.ended) == 1 && len(b.ended) == 1 }, a, b)
	if took := time.Since(begin); took > 3*keepaliveIdle {
		t.Errorf("the receiving end reports it after %v", took)
	} else {
		t.Logf("reported after %v", took)
	}
	if c := b.ended[0]; c.Status != rdma.StatusPeerGone {
		t.Errorf("it reports %+v", c)
	}
}
