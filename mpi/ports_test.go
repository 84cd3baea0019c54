package mpi_test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// freePorts returns the first of n adjacent ports that are free now.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	// Other processes may run this test at the same time.
	for first := 20000 + os.Getpid()%1000*10; first < 32000; first += n {
		if portsInUse("udp", first, n)+portsInUse("tcp", first, n) == 0 {
			return first
		}
	}
	t.Skip("no free ports")
	return 0
}

// portsInUse counts the ports on loopback to which nothing can be bound.
func portsInUse(network string, first, n int) (used int) {
	for port := first; port < first+n; port++ {
		at := fmt.Sprintf("127.0.0.1:%d", port)
		if network == "udp" {
			if c, err := net.ListenPacket("udp", at); err != nil {
				used++
			} else {
				c.Close()
			}
			continue
		}
		if l, err := net.Listen("tcp", at); err != nil {
			used++
		} else {
			l.Close()
		}
	}
	return used
}

// endJob lets the ranks of a job over a channel meet, and ends it.
func endJob(t *testing.T, channel string, worlds []*mpi.World) {
	t.Helper()
	done := make(chan error, len(worlds))
	for _, w := range worlds {
		go func() {
			err := w.Comm().Barrier()
			if err == nil {
				err = w.Finalize()
			}
			done <- err
		}()
	}
	for range worlds {
		if err := <-done; err != nil {
			t.Errorf("%s: %v", channel, err)
		}
	}
}

// One port does not suffice for two ranks.
func TestTooFewPorts(t *testing.T) {
	first := freePorts(t, 1)
	// The rank that has the port waits for the other one until StartTimeout.
	worlds, err := mpi.Local(2, &mpi.Config{Network: "iwarp", NoSharedMemory: true, Ports: fmt.Sprint(first), StartTimeout: 3 * time.Second})
	if err == nil || !strings.Contains(err.Error(), "MUSTER_PORTS is") || !strings.Contains(err.Error(), "in use") {
		t.Errorf("two ranks do not fit one port: %v, %v", worlds, err)
	}
	if _, err := mpi.Local(1, &mpi.Config{Ports: "9-8"}); err == nil || !strings.Contains(err.Error(), "Config.Ports (MUSTER_PORTS)") {
		t.Errorf("a bad range must be refused: %v", err)
	}
}
