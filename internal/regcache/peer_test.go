package regcache_test

// A peer reads and writes through the cache's registrations, over a device that checks keys,
// bounds and rights.

import (
	"bytes"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/regcache"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// access performs one read or write, and returns its status.
func access(t *testing.T, qp rdma.QP, cq rdma.CQ, peer rdma.PeerID, op rdma.Op, here []byte, mr rdma.MR) rdma.Status {
	t.Helper()
	wr := []rdma.SendWR{{ID: 1, Op: op, Peer: peer, Body: rdma.MemOf(here), Remote: mr.Base, RKey: mr.RKey}}
	if n, err := qp.PostSend(wr); n != 1 {
		t.Fatalf("post a %v: %v", op, err)
	}
	var done [1]rdma.Completion
	for deadline := time.Now().Add(10 * time.Second); cq.Poll(done[:]) == 0; {
		if time.Now().After(deadline) {
			t.Fatalf("a %v of %d bytes did not complete in ten seconds", op, len(here))
		}
	}
	return done[0].Status
}

func TestPeerAccess(t *testing.T) {
	devs := rdmatest.NewReference(2)
	var cqs [2]rdma.CQ
	var qps [2]rdma.QP
	for i, d := range devs {
		var err error
		if cqs[i], err = d.NewCQ(0); err != nil {
			t.Fatal(err)
		}
		if qps[i], err = d.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: cqs[i], RecvCQ: cqs[i]}); err != nil {
			t.Fatal(err)
		}
		defer d.Close()
	}
	owner, err := devs[1].Resolve(qps[0].Addr())
	if err != nil {
		t.Fatal(err)
	}
	c := regcache.New(devs[0], regcache.Config{})
	mem := make([]byte, 10_000)
	for i := range mem {
		mem[i] = byte(i * 7)
	}
	parts := [][2]int{{0, 10_000}, {0, 100}, {4321, 5432}, {9999, 10_000}}
	var last rdma.MR
	for _, p := range parts {
		part := mem[p[0]:p[1]]
		if last, err = c.Get(part, rdma.RemoteRead|rdma.RemoteWrite); err != nil {
			t.Fatal(err)
		}
		here := make([]byte, len(part))
		if s := access(t, qps[1], cqs[1], owner, rdma.OpRead, here, last); s != rdma.StatusOK || !bytes.Equal(here, part) {
			t.Errorf("bytes %d to %d: the peer reads other data (%v)", p[0], p[1], s)
		}
		for i := range here {
			here[i]++
		}
		if s := access(t, qps[1], cqs[1], owner, rdma.OpWrite, here, last); s != rdma.StatusOK || !bytes.Equal(here, part) {
			t.Errorf("bytes %d to %d: the peer's write does not arrive (%v)", p[0], p[1], s)
		}
		if err := c.Put(last); err != nil {
			t.Fatal(err)
		}
	}
	if s := c.Stats(); s.Misses != 1 || s.Hits != uint64(len(parts)-1) {
		t.Errorf("%d misses and %d hits, want 1 and %d", s.Misses, s.Hits, len(parts)-1)
	}
	if err := c.Drop(mem); err != nil {
		t.Fatal(err)
	}
	if s := access(t, qps[1], cqs[1], owner, rdma.OpRead, make([]byte, 1), last); s != rdma.StatusRemoteAccess {
		t.Errorf("a read after Drop ends with %v, want %v", s, rdma.StatusRemoteAccess)
	}
}
