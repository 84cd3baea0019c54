//go:build ofi && cgo && linux

package ofi

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Checks that the suite cannot do with these providers, because they do not report why an
// access failed: a forbidden access transfers no byte, and both sides continue.

// forged is an access that must fail.
type forged struct {
	name   string
	remote func(rdma.MR) uint64
	rkey   func(rdma.MR) uint64
	acc    rdma.Access // rights of the region
}

const regionSize, pieceSize = 1000, 40

func forgeries(op rdma.Op) []forged {
	right, wrong := rdma.RemoteRead, rdma.RemoteWrite
	if op == rdma.OpWrite {
		right, wrong = wrong, right
	}
	base := func(m rdma.MR) uint64 { return m.Base }
	key := func(m rdma.MR) uint64 { return m.RKey }
	return []forged{
		{"a byte beyond the end", func(m rdma.MR) uint64 { return m.Base + regionSize - pieceSize + 1 }, key, right},
		{"a byte before the start", func(m rdma.MR) uint64 { return m.Base - 1 }, key, right},
		{"far away", func(m rdma.MR) uint64 { return m.Base + 1<<40 }, key, right},
		{"with a wrong key", base, func(m rdma.MR) uint64 { return m.RKey ^ 1<<17 }, right},
		{"with the other right only", base, key, wrong},
		{"without any right", base, key, 0},
	}
}

func TestForbiddenAccess(t *testing.T) {
	for _, provider := range []string{"net", "tcp;ofi_rxm", "udp;ofi_rxd"} {
		t.Run(provider, func(t *testing.T) {
			for _, op := range []rdma.Op{rdma.OpRead, rdma.OpWrite} {
				for _, f := range forgeries(op) {
					t.Run(op.String()+" "+f.name, func(t *testing.T) { tryForged(t, provider, op, f) })
				}
			}
		})
	}
}

func tryForged(t *testing.T, provider string, op rdma.Op, f forged) {
	cfg := Config{Provider: provider, Job: t.Name(), Peers: 2}
	a := mustRank(t, cfg)
	cfg.Index = 1
	b := mustRank(t, cfg)
	toB, err := a.meet(b)
	if err != nil {
		t.Fatal(err)
	}
	region, here := bytes.Repeat([]byte{1}, regionSize), bytes.Repeat([]byte{2}, pieceSize)
	mr, err := b.dev.Register(region, f.acc)
	if err != nil {
		t.Fatal(err)
	}
	wr := rdma.SendWR{ID: 5, Op: op, Peer: toB, Body: rdma.MemOf(here), Remote: f.remote(mr), RKey: f.rkey(mr)}
	if err := a.post(wr); err != nil {
		t.Fatal(err)
	}
	if provider == "udp;ofi_rxd" { // it never reports it
		for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
			if a.cq.Poll(a.out)+b.cq.Poll(b.out) > 0 && a.out[0].Status == rdma.StatusOK {
				t.Fatalf("the access succeeds: %+v", a.out[0])
			}
		}
	} else if c, err := a.next(b); err != nil || c.ID != 5 || c.Status != rdma.StatusPeerGone {
		t.Fatalf("the access completes with %+v, %v; it should fail with %v", c, err, rdma.StatusPeerGone)
	}
	if !bytes.Equal(region, bytes.Repeat([]byte{1}, regionSize)) || !bytes.Equal(here, bytes.Repeat([]byte{2}, pieceSize)) {
		t.Fatal("memory has changed")
	}
	if provider == "udp;ofi_rxd" {
		return // the connection is blocked by the request
	}
	goOn(t, a, b, toB)
	good, err := b.dev.Register(region, rdma.RemoteRead|rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	wr.Remote, wr.RKey = good.Base, good.RKey
	if err := a.post(wr); err != nil {
		t.Fatal(err)
	}
	if c, err := a.next(b); err != nil || c.Status != rdma.StatusOK {
		t.Fatalf("after the forbidden access, an allowed one completes with %+v, %v", c, err)
	}
}

// goOn sends until a message arrives: the connection may break only now, and the messages
// sent over it are reported as lost.
func goOn(t *testing.T, a, b *rank, toB rdma.PeerID) {
	t.Helper()
	lost := true
	for id, end := uint64(6), time.Now().Add(testTimeout); time.Now().Before(end); {
		if lost {
			if err := a.send(toB, id, "still there"); err != nil {
				t.Fatal(err)
			}
			lost = false
		}
		if a.cq.Poll(a.out[:1]) > 0 {
			if a.out[0].ID != id || a.out[0].Status != rdma.StatusPeerGone {
				t.Fatalf("after the forbidden access a send completes with %+v", a.out[0])
			}
			lost = true
			id++
		}
		if b.cq.Poll(b.out[:1]) > 0 {
			if string(b.out[0].Data.Bytes()) != "still there" {
				t.Fatalf("after the forbidden access a message arrives as %+v", b.out[0])
			}
			return
		}
	}
	t.Fatal("after the forbidden access no message arrives")
}

// Libfabric cannot request encryption: Open fails if it is required.
func TestEncryptionIsRefused(t *testing.T) {
	dev, err := Open(Config{Provider: "tcp;ofi_rxm", Job: t.Name(), Peers: 2, Encrypt: true})
	if dev != nil || !errors.Is(err, ErrEncrypt) {
		t.Errorf("a device that is to encrypt must be refused with ErrEncrypt: %v, %v", dev, err)
	}
}
