package soft

import (
	"strings"
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// TestConformanceStrict runs the suite where memory must be registered to be sent.
func TestConformanceStrict(t *testing.T) {
	rdmatest.NeedLocking(t)
	exclude := map[string]string{"lend-never-runs-out": "it is long, and sends inline alone", "close-ends-access": "it is long, and about the sockets"}
	rdmatest.Run(t, rdmatest.Fixture{Name: "strict", Exclude: exclude, Unconnected: "datagrams need no connection", Open: func(t testing.TB, n int) []rdma.Device {
		var list []rdma.Device
		for range n {
			list = append(list, openTest(t, Config{Strict: true}))
		}
		return list
	}})
}

func TestRegistrationLocksPagesInStrictMode(t *testing.T) {
	rdmatest.NeedLocking(t)
	d := openTest(t, Config{Strict: true})
	if a := d.Attr(); !a.LocalKeys || !a.Pins {
		t.Errorf("a strict device has LocalKeys %v, Pins %v", a.LocalKeys, a.Pins)
	}
	mem := make([]byte, 5*4096)
	mr, err := d.Register(mem[:4*4096], 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := d.soft.LockedPages(); n < 4 || n > 5 {
		t.Errorf("%d pages are locked for four", n)
	}
	inside, outside := rdma.MemOf(mem[4095:4*4096]), rdma.MemOf(mem[4095:4*4096+1])
	if err := d.soft.CheckLocal("send", inside, mr.LKey); err != nil {
		t.Errorf("memory of the region: %v", err)
	}
	if err := d.soft.CheckLocal("send", outside, mr.LKey); err == nil || !strings.Contains(err.Error(), "strict mode") {
		t.Errorf("memory beyond the region: %v", err)
	}
	if err := d.soft.CheckLocal("send", inside, mr.LKey+1); err == nil {
		t.Error("an unknown key is accepted")
	}
	if err := d.Deregister(mr); err != nil || d.soft.LockedPages() != 0 {
		t.Errorf("after Deregister (%v) %d pages are locked", err, d.soft.LockedPages())
	}
	if _, err := d.Register(mem, rdma.RemoteRead); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil || d.soft.LockedPages() != 0 {
		t.Errorf("after Close (%v) %d pages are locked", err, d.soft.LockedPages())
	}
}
