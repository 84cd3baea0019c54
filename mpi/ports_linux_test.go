//go:build !muster_portable

package mpi_test

import (
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/mpi"
)

func TestPorts(t *testing.T) {
	for channel, tcp := range map[string]int{"hybrid": 2, "rc": 2, "rd": 0, "ud": 0} {
		const n = 3
		first := freePorts(t, n)
		cfg := &mpi.Config{Network: "iwarp", NoSharedMemory: true, Channel: channel, Ports: fmt.Sprintf("%d-%d", first, first+n-1)}
		worlds, err := mpi.Local(2, cfg)
		if err != nil {
			t.Fatalf("%s: %v", channel, err)
		}
		if got := portsInUse("udp", first, n); got != 2 {
			t.Errorf("%s: each rank must use a UDP port of %s, %d are in use", channel, cfg.Ports, got)
		}
		if got := portsInUse("tcp", first, n); got != tcp {
			t.Errorf("%s: the ranks must use %d TCP ports of %s, %d are in use", channel, tcp, cfg.Ports, got)
		}
		endJob(t, channel, worlds)
	}
}
