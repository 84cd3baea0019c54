package hybrid

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// TestConformanceStrict runs the suite with memory that must be registered with the device
// that carries it, while peers move from one to the other.
func TestConformanceStrict(t *testing.T) {
	rdmatest.NeedLocking(t)
	if race.Enabled {
		t.Skip("same code as TestConformance, and the race detector is slow")
	}
	exclude := map[string]string{"lend-never-runs-out": "long, and sends only inline", "close-ends-access": "long, and about the sockets"}
	for _, v := range []struct {
		name string
		cfg  Config
	}{
		{"at once", Config{CountMessages: true, BusyAfter: 1, Strict: true}},
		{"own buffers", Config{CountMessages: true, BusyAfter: 1, ConnectionBuffers: 8, Strict: true}},
	} {
		if testing.Short() && v.name != "at once" {
			continue // it executes all of the code
		}
		rdmatest.Run(t, rdmatest.Fixture{Name: v.name, Exclude: exclude, Reset: resets(&v.cfg), Unconnected: unconnected, Open: func(t testing.TB, n int) []rdma.Device {
			var list []rdma.Device
			for i := range n {
				cfg := v.cfg
				cfg.Name = uint32(i)
				list = append(list, openTest(t, cfg))
			}
			return list
		}})
	}
}

// TestOneKeyForBothDevices: the key of a region is valid over either device until it is
// deregistered, and only if all of its bits are right.
func TestOneKeyForBothDevices(t *testing.T) {
	nodes := newNodes(t, 2, Config{CountMessages: true, BusyAfter: 10, Interval: time.Millisecond})
	a, b := nodes[0], nodes[1]
	there, here := []byte("the contents"), make([]byte, 12)
	mr, err := b.dev.Register(there, rdma.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	access := func(key uint64) rdma.Status {
		clear(here)
		wr := [1]rdma.SendWR{{ID: 5, Op: rdma.OpRead, Peer: a.peers[1], Body: rdma.MemOf(here), Remote: mr.Base, RKey: key}}
		until(t, "the access is accepted", nodes, func() bool {
			k, err := a.qp.PostSend(wr[:])
			if err != nil && !errors.Is(err, rdma.ErrAgain) {
				t.Fatal(err)
			}
			return k == 1
		})
		a.bad = nil
		until(t, "the access has completed", nodes, func() bool { return len(a.bad) > 0 })
		return a.bad[0].Status
	}
	check := func(way path) {
		t.Helper()
		if got := a.carriedBy(1); got != way {
			t.Fatalf("the peer is carried by path %d, want %d", got, way)
		}
		if status := access(mr.RKey); status != rdma.StatusOK || !bytes.Equal(here, there) {
			t.Errorf("over path %d the access ends with %v and %q", way, status, here)
		}
	}
	check(byDatagram)
	for _, bit := range []int{0, 31, 32, 63} {
		if status := access(mr.RKey ^ 1<<bit); status != rdma.StatusRemoteAccess {
			t.Errorf("with bit %d flipped, an access by datagram ends with %v", bit, status)
		}
		moveBoth(t, nodes)
		check(byConnection)
		if status := access(mr.RKey ^ 1<<bit); status != rdma.StatusRemoteAccess {
			t.Errorf("with bit %d flipped, an access over a connection ends with %v", bit, status)
		}
		until(t, "both are back", nodes, func() bool { return a.peerOf(1).phase == noConnection && b.peerOf(0).phase == noConnection })
	}
	moveBoth(t, nodes)
	if err := b.dev.Deregister(mr); err != nil {
		t.Fatal(err)
	}
	if status := access(mr.RKey); status != rdma.StatusRemoteAccess {
		t.Errorf("after Deregister an access over a connection ends with %v", status)
	}
	until(t, "both are back", nodes, func() bool { return a.peerOf(1).phase == noConnection && b.peerOf(0).phase == noConnection })
	if status := access(mr.RKey); status != rdma.StatusRemoteAccess {
		t.Errorf("after Deregister an access by datagram ends with %v", status)
	}
	if err := b.dev.Deregister(mr); err == nil {
		t.Error("a region is deregistered twice")
	}
}
