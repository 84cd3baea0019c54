//go:build linux

package iwarp

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

const allocatesRecords = "crypto/tls allocates for each record that it reads"

// TestConformance runs the suite over loopback, with every frame format.
func TestConformance(t *testing.T) {
	for _, v := range []struct {
		name    string
		cfg     Config
		exclude map[string]string
	}{
		{"crc", Config{MaxTransfer: 6 << 20}, nil},
		{"bare", Config{NoCRC: true}, nil},
		{"markers", Config{Markers: true}, nil},
		{"without a thread", Config{NoThread: true}, nil},
		{"encrypted", Config{Encrypt: true, Key: []byte("k")}, map[string]string{
			"steady-inline-send": allocatesRecords, "steady-send": allocatesRecords,
			"steady-read": allocatesRecords, "steady-write": allocatesRecords,
		}},
		{"ethernet", Config{Segment: segmentFor(1448, false)}, nil},
	} {
		if raceDetector && v.name != "crc" && v.name != "markers" && v.name != "encrypted" {
			continue // same code, and the race detector is slow
		}
		rdmatest.Run(t, rdmatest.Fixture{Name: v.name, Exclude: v.exclude, Reset: rdmatest.ResetLoopback, Open: func(t testing.TB, n int) []rdma.Device {
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
