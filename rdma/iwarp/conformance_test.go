package iwarp

import (
	"testing"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// TestConformance runs the suite over loopback, with every frame format.
func TestConformance(t *testing.T) {
	for _, v := range []struct {
		name string
		cfg  Config
	}{
		{"crc", Config{MaxTransfer: 6 << 20}},
		{"bare", Config{NoCRC: true}},
		{"markers", Config{Markers: true}},
		{"without a thread", Config{NoThread: true}},
		{"encrypted", Config{Encrypt: true, Key: []byte("k")}},
		{"ethernet", Config{Segment: segmentFor(1448, false)}},
	} {
		if race.Enabled && v.name != "crc" && v.name != "encrypted" && (v.name != "markers" || testing.Short()) {
			continue // the same goroutines, and the race detector is slow
		}
		rdmatest.Run(t, rdmatest.Fixture{Name: v.name, Reset: rdmatest.ResetLoopback, Open: func(t testing.TB, n int) []rdma.Device {
			var list []rdma.Device
			for range n {
				list = append(list, open(t, v.cfg))
			}
			return list
		}})
	}
}

func open(t testing.TB, cfg Config) rdma.Device {
	t.Helper()
	d, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close the device: %v", err)
		}
	})
	return d
}
