package shm

import (
	"runtime"
	"testing"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// TestConformance runs the suite on every mode of the device. The devices are in one
// process here even where they could be in several; the tests with real processes are in
// process_linux_test.go.
func TestConformance(t *testing.T) {
	for _, v := range []struct {
		name string
		cfg  Config
		heap bool
	}{
		{"heap", Config{}, true},
		{"heap-without-rings", Config{Rings: -1}, true},
		{"heap-by-messages", Config{NoProcessVM: true}, true},
		{"memfd", Config{}, false},
		{"memfd-by-messages", Config{NoProcessVM: true}, false},
		{"file", Config{NoMemfd: true}, false},
	} {
		if !v.heap && runtime.GOOS != "linux" {
			continue
		}
		if race.Enabled && !v.heap {
			continue // the race detector does not track mapped memory
		}
		rdmatest.Run(t, rdmatest.Fixture{Name: v.name, Unconnected: "memory is shared, nothing connects", Open: func(t testing.TB, n int) []rdma.Device {
			cfg := v.cfg
			cfg.Peers = n
			if v.heap {
				cfg.Host = NewHost()
			} else {
				cfg.ShmDir = t.TempDir()
			}
			var list []rdma.Device
			for i := range n {
				cfg.Index = i
				d, err := Open(cfg)
				if err != nil {
					t.Fatalf("open device %d of %d: %v", i, n, err)
				}
				t.Cleanup(func() {
					if err := d.Close(); err != nil {
						t.Errorf("close device %d: %v", i, err)
					}
				})
				list = append(list, d)
			}
			return list
		}})
	}
}
