//go:build linux

package hybrid

import (
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// TestConformance runs the suite over loopback: with a connection for every peer from the
// first message on, on datagrams until a peer is busy, with buffers for each connection, and
// with peers that are moved up and down every few messages, with a thread and without.
func TestConformance(t *testing.T) {
	moves := map[string]string{}
	for _, name := range []string{"steady-inline-send", "steady-send", "steady-read", "steady-write"} {
		moves[name] = "a move allocates, and this variant moves all the time"
	}
	for _, v := range []struct {
		name    string
		cfg     Config
		exclude map[string]string
	}{
		{"at once", Config{CountMessages: true, BusyAfter: 1, MaxTransfer: 6 << 20}, nil},
		{"hybrid", Config{}, nil},
		{"own buffers", Config{CountMessages: true, BusyAfter: 1, ConnectionBuffers: 32, ConnectionCRC: true}, nil},
		{"migrating", migrating, moves},
		{"combining", combining, moves},
	} {
		if (v.name == "hybrid" || v.name == "own buffers") && testing.Short() || v.name != "at once" && v.name != "migrating" && race.Enabled {
			continue // the others execute all of the code
		}
		rdmatest.Run(t, rdmatest.Fixture{Name: v.name, Exclude: v.exclude, Reset: resets(&v.cfg), Unconnected: unconnected, Open: func(t testing.TB, n int) []rdma.Device {
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

// resets returns the fixture's Reset, nil if the device has no connections by then.
func resets(c *Config) func() int {
	if c.CountMessages {
		return rdmatest.ResetLoopback
	}
	return nil
}

const unconnected = "the device has no connection, or makes one after more messages than the check sends"

// migrating moves peers up after a few messages, and down after a few more.
var migrating = Config{CountMessages: true, BusyAfter: 4, recycleAfter: 12, MaxConnections: 3, Interval: time.Millisecond, MaxTransfer: 6 << 20}

// combining does so without a progress thread: then connections hold messages of a burst back.
var combining = Config{CountMessages: true, BusyAfter: 4, recycleAfter: 12, MaxConnections: 3, Interval: time.Millisecond, MaxTransfer: 6 << 20, NoThread: true}

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
