//go:build !muster_portable

package iwarp

import (
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// TestConformanceStrict runs the suite with memory that must be registered to be sent.
func TestConformanceStrict(t *testing.T) {
	rdmatest.NeedLocking(t)
	if race.Enabled {
		t.Skip("same code as TestConformance, and the race detector is slow")
	}
	exclude := map[string]string{"lend-never-runs-out": "long, and sends only inline", "close-ends-access": "long, and about the sockets"}
	rdmatest.Run(t, rdmatest.Fixture{Name: "strict", Exclude: exclude, Reset: rdmatest.ResetLoopback, Open: func(t testing.TB, n int) []rdma.Device {
		var list []rdma.Device
		for range n {
			list = append(list, open(t, Config{NoCRC: true, Strict: true}))
		}
		return list
	}})
}

func TestRegistrationLocksPagesInStrictMode(t *testing.T) {
	rdmatest.NeedLocking(t)
	d := open(t, Config{Strict: true}).(*device)
	if a := d.Attr(); !a.LocalKeys || !a.Pins {
		t.Errorf("a strict device has LocalKeys %v, Pins %v", a.LocalKeys, a.Pins)
	}
	mem := make([]byte, 5*4096)
	mr, err := d.Register(mem[:4*4096], 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := d.LockedPages(); n < 4 || n > 5 {
		t.Errorf("%d pages are locked for four", n)
	}
	inside, outside := rdma.MemOf(mem[4095:4*4096]), rdma.MemOf(mem[4095:4*4096+1])
	if err := d.CheckLocal("send", inside, mr.LKey); err != nil {
		t.Errorf("memory of the region: %v", err)
	}
	if err := d.CheckLocal("send", outside, mr.LKey); err == nil || !strings.Contains(err.Error(), "strict mode") {
		t.Errorf("memory beyond the region: %v", err)
	}
	if err := d.CheckLocal("send", inside, mr.LKey+1); err == nil {
		t.Error("an invalid key is accepted")
	}
	if err := d.Deregister(mr); err != nil || d.LockedPages() != 0 {
		t.Errorf("after Deregister (%v) %d pages are locked", err, d.LockedPages())
	}
	if _, err := d.Register(mem, rdma.RemoteRead); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil || d.LockedPages() != 0 {
		t.Errorf("after Close (%v) %d pages are locked", err, d.LockedPages())
	}
}
