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

// refusals returns the checks of forbidden accesses, without those of operations that the
// device does not support.
func refusals(why string) map[string]string {
	list := map[string]string{"assisted-write-deregister": why}
	for _, op := range []string{"read", "write"} {
		for _, way := range []string{"beyond-the-end", "before-the-start", "around-the-world", "wrong-key", "missing-right", "after-deregister"} {
			list["refuse-"+op+"-"+way] = why
		}
	}
	return list
}

// TestConformance runs the suite on the providers that need no adapter. refusal_test.go
// covers the excluded checks.
func TestConformance(t *testing.T) {
	const broken = "the target's provider answers a forbidden access by breaking the connection, without a reason: " +
		"the origin sees StatusPeerGone; and addresses count from the start of a region, so that the suite's address 1 is valid (libfabric 1.17; until its providers report a refused access, refusal_test.go checks it)"
	overTCP := refusals(broken)
	overUDP := refusals("the target's provider drops a forbidden request without an answer, and its origin repeats it forever; " +
		"and addresses count from the start of a region, so that the suite's address 1 is valid (libfabric 1.17; until it answers, refusal_test.go checks it)")
	overUDP["close-ends-access"] = "the provider repeats a request to a peer that is gone forever, and reports nothing (libfabric 1.17), until it has a limit of attempts"
	for _, v := range []struct {
		name    string
		cfg     Config
		exclude map[string]string
	}{
		{"net", Config{Provider: "net"}, overTCP},
		{"tcp;ofi_rxm", Config{Provider: "tcp;ofi_rxm"}, overTCP},
		{"udp;ofi_rxd", Config{Provider: "udp;ofi_rxd"}, overUDP},
		{"udp", Config{Provider: "udp", Transport: rdma.UD}, nil},
		{"net, connected", Config{Provider: "net", Transport: rdma.RC}, overTCP},
		{"tcp, connected", Config{Provider: "tcp", Transport: rdma.RC}, overTCP},
	} {
		rdmatest.Run(t, rdmatest.Fixture{Name: v.name, Exclude: v.exclude, Unconnected: "libfabric hides its connections: nothing outside can reset them", Open: func(t testing.TB, n int) []rdma.Device {
			return openAll(t, n, v.cfg)
		}})
	}
}
