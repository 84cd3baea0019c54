package mpi

import (
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/netprobe"
)

// A channel that cannot prove interfaces needs one that is selected.
func TestNoSelectedInterface(t *testing.T) {
	a := agreement{candidates: []netprobe.Candidate{{Possible: true}}}
	if _, err := a.paths(false); err == nil || !strings.Contains(err.Error(), "MUSTER_INTERFACE") {
		t.Errorf("the error is %v", err)
	}
}
