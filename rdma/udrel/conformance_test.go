//go:build linux

package udrel

import (
	"net/netip"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/dgram"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// TestConformance runs the suite as RD: over UD of package dgram, with loopback
// packets, and with Ethernet packets of which a tenth each are lost, duplicated and
// reordered; and over the reference device.
func TestConformance(t *testing.T) {
	for _, v := range []struct {
		name   string
		packet int
		share  float64 // of packets that suffer each of the three impairments
		open   func(t testing.TB, n int) []rdma.Device
	}{
		{"loopback", 0, 0, openDgram},
		{"impaired", 1400, 0.1, openDgram},
		{"reference", 1400, 0, func(_ testing.TB, n int) []rdma.Device { return rdmatest.NewReference(n) }},
	} {
		if v.name != "loopback" && (testing.Short() || raceDetector) {
			continue // losses take time
		}
		exclude := map[string]string{}
		if v.share > 0 {
			exclude["lend-never-runs-out"] = "6000 messages wait for 600 losses, which shows nothing that order-one-to-one does not"
			for _, name := range []string{"steady-inline-send", "steady-send", "steady-read", "steady-write"} {
				exclude[name] = "the code that simulates losses allocates"
			}
		}
		if v.name == "reference" {
			for _, name := range []string{"steady-inline-send", "steady-send", "steady-read", "steady-write"} {
				exclude[name] = "the reference device allocates"
			}
		}
		rdmatest.Run(t, rdmatest.Fixture{Name: v.name, Exclude: exclude, Unconnected: "datagrams need no connection", Open: func(t testing.TB, n int) []rdma.Device {
			var list []rdma.Device
			for i, below := range v.open(t, n) {
				if v.share > 0 {
					below = rdmatest.Wrap(below, rdmatest.Faults{Seed: uint64(i), Drop: v.share, Duplicate: v.share, Reorder: v.share})
				}
				list = append(list, openTest(t, Config{Device: below, Packet: v.packet, PeerTimeout: time.Second, MaxTransfer: 6 << 20}))
			}
			return list
		}})
	}
}

// openDgram opens devices without a progress thread, as channel ud does: that of this
// package services them.
func openDgram(t testing.TB, n int) []rdma.Device {
	t.Helper()
	var list []rdma.Device
	for i := range n {
		d, err := dgram.Open(dgram.Config{Bind: netip.MustParseAddrPort("127.0.0.1:0"), JobKey: []byte("the key of the test"), Name: uint32(i), NoThread: true})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
	return list
}

func openTest(t testing.TB, c Config) rdma.Device {
	t.Helper()
	d, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d
}
