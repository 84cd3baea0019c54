//go:build !muster_portable

package iwarp

import (
	"errors"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// meshEnd is a mesh under test.
type meshEnd struct {
	dev rdma.Device
	cq  rdma.CQ
	qp  rdma.QP
}

func newMeshEnd(t *testing.T, cfg Config, name uint32) *meshEnd {
	t.Helper()
	dev, err := OpenMesh(cfg, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	e := &meshEnd{dev: dev}
	srq, err := dev.NewSRQ(rdma.SRQConfig{Lend: true})
	if err == nil {
		e.cq, err = dev.NewCQ(64)
	}
	if err == nil {
		e.qp, err = dev.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: e.cq, RecvCQ: e.cq, SRQ: srq})
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestMeshKeepsBusyPeers: a peer whose program computes for longer than Config.Timeout, and
// whose receive buffers are all taken, is not silent: its kernel acks.
func TestMeshKeepsBusyPeers(t *testing.T) {
	const timeout = 500 * time.Millisecond
	a, b := newMeshEnd(t, Config{Timeout: timeout}, 0), newMeshEnd(t, Config{Timeout: timeout, ConnectionBuffers: 2}, 1)
	to, err := a.dev.Resolve(b.qp.Addr())
	if err != nil {
		t.Fatal(err)
	}
	out := make([]rdma.Completion, 64)
	poll := func(e *meshEnd) (received int) {
		t.Helper()
		for _, c := range out[:e.cq.Poll(out)] {
			if c.Op == rdma.OpDisconnected || c.Status != rdma.StatusOK {
				t.Fatalf("a completion of peer %d is %v with %v: %v", c.Peer, c.Op, c.Status, e.dev.Caps().Explain(c.Peer))
			}
			if c.Op == rdma.OpRecv {
				received++
			}
		}
		return received
	}
	body, sent := make([]byte, 60<<10), 0
	for end := time.Now().Add(leastTimeout + time.Second); time.Now().Before(end); { // b computes
		n, err := a.qp.PostSend([]rdma.SendWR{{Op: rdma.OpSend, Peer: to, Body: rdma.MemOf(body)}})
		if sent += n; err != nil {
			if !errors.Is(err, rdma.ErrAgain) {
				t.Fatal(err)
			}
			if err := a.cq.Wait(time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		poll(a)
	}
	for end := time.Now().Add(20 * time.Second); sent > 0; sent -= poll(b) {
		if poll(a); time.Now().After(end) {
			t.Fatalf("%d messages have not arrived", sent)
		}
	}
}
