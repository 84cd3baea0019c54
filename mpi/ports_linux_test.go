//go:build !muster_portable

package mpi_test

import (
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/mpi"
)

func TestPorts(t *testing.T) {
	for channel, want := range map[string]struct{ udp, tcp int }{"hybrid": {2, 2}, "rc": {0, 2}, "rd": {2, 0}, "ud": {2, 0}} {
		const n = 3
		first := freePorts(t, n)
		cfg := &mpi.Config{Network: "iwarp", NoSharedMemory: true, Channel: channel, Ports: fmt.Sprintf("%d-%d", first, first+n-1)}
		worlds, err := mpi.Local(2, cfg)
		if err != nil {
			t.Fatalf("%s: %v", channel, err)
		}
		if got := portsInUse("udp", first, n); got != want.udp {
			t.Errorf("%s: the ranks must use %d UDP ports of %s, %d are in use", channel, want.udp, cfg.Ports, got)
		}
		if got := portsInUse("tcp", first, n); got != want.tcp {
			t.Errorf("%s: the ranks must use %d TCP ports of %s, %d are in use", channel, want.tcp, cfg.Ports, got)
		}
		endJob(t, channel, worlds)
	}
}
