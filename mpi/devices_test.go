package mpi

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/netprobe"
	"github.com/muster-mpi/muster/rdma"
)

// A channel that cannot prove interfaces needs one that is selected.
func TestNoSelectedInterface(t *testing.T) {
	candidates := []netprobe.Candidate{{Possible: true}}
	_, err := onInterface(&Config{}, nil, candidates, func(netip.AddrPort) (rdma.Device, error) {
		t.Error("a device was opened")
		return nil, nil
	})
	if err == nil || !strings.Contains(err.Error(), "MUSTER_INTERFACE") {
		t.Errorf("the error is %v", err)
	}
}
