//go:build linux

package hybrid

import (
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// TestConformance runs the suite over loopback: on datagrams alone, with a connection for
// every peer from the first message on, with buffers for each connection, and with peers
// that are moved up and down every few messages.
func TestConformance(t *testing.T) {
	for _, v := range []struct {
		name string
		cfg  Config
	}{
		{"rd", Config{Channel: Datagrams}},
		{"rc", Config{Channel: Connections}},
		{"hybrid", Config{}},
		{"rc with own buffers", Config{Channel: Connections, ConnectionBuffers: 32}},
		{"restless", restless},
	} {
		rdmatest.Run(t, rdmatest.Fixture{Name: v.name, Open: func(t testing.TB, n int) []rdma.Device {
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

// restless moves peers up after a few messages, and down after a few more.
var restless = Config{BusyAfter: 4, tire: 12, MaxConnections: 3, Interval: time.Millisecond}

func openTest(t testing.TB, c Config) *Device {
	t.Helper()
	if c.JobKey == nil {
		c.JobKey = []byte("the key of the test")
	}
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
