//go:build ofi && cgo && linux

package ofi

import (
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// openAll opens n devices of a provider, on the loopback interface if none is named.
func openAll(t testing.TB, n int, cfg Config) []rdma.Device {
	t.Helper()
	cfg.Peers = n
	if cfg.Interface == "" {
		cfg.Interface = "127.0.0.1"
	}
	if cfg.Job == "" {
		cfg.Job = fmt.Sprintf("%s %p", t.Name(), &cfg)
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
}

func TestConformance(t *testing.T) {
	for _, v := range []struct {
		provider string
		exclude  map[string]string
	}{
		{"net", nil},
		{"tcp;ofi_rxm", nil},
		{"udp;ofi_rxd", nil},
	} {
		rdmatest.Run(t, rdmatest.Fixture{Name: v.provider, Exclude: v.exclude, Open: func(t testing.TB, n int) []rdma.Device {
			return openAll(t, n, Config{Provider: v.provider})
		}})
	}
}
