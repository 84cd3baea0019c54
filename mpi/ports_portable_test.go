//go:build !linux || muster_portable

package mpi_test

import (
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/mpi"
)

func TestPorts(t *testing.T) {
	const n = 3
	first := freePorts(t, n)
	cfg := &mpi.Config{Network: "iwarp", NoSharedMemory: true, Ports: fmt.Sprintf("%d-%d", first, first+n-1)}
	worlds, err := mpi.Local(2, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := portsInUse("tcp", first, n); got != 2 {
		t.Errorf("each rank must use a TCP port of %s, %d are in use", cfg.Ports, got)
	}
	if got := portsInUse("udp", first, n); got != 0 {
		t.Errorf("the ranks must use no UDP port of %s, %d are in use", cfg.Ports, got)
	}
	endJob(t, "rc", worlds)
}
