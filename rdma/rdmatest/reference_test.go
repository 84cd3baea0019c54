package rdmatest

import (
	"testing"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
)

// slow is the reason for excluding the steady-state checks on the reference.
const slow = "the reference copies every message to fresh memory, to be simple"

func excused() map[string]string {
	return map[string]string{
		"steady-inline-send": slow, "steady-send": slow, "steady-read": slow,
		"steady-write": slow, "steady-pull": slow, "steady-register": slow,
	}
}

func openReference(attr rdma.Attr) func(testing.TB, int) []rdma.Device {
	return func(t testing.TB, n int) []rdma.Device {
		devs := NewReferenceOf(n, attr)
		t.Cleanup(func() {
			for _, d := range devs {
				if err := d.Close(); err != nil {
					t.Errorf("close a reference device: %v", err)
				}
			}
		})
		return devs
	}
}

// TestReference runs the suite on several variants of the reference, which also executes
// every branch of the suite.
func TestReference(t *testing.T) {
	for _, shape := range []struct {
		name     string
		mutation func(*rdma.Attr)
	}{
		{"plain", func(*rdma.Attr) {}},
		{"local-keys", func(a *rdma.Attr) { a.LocalKeys = true; a.Transports = rdma.RD }},
		{"remote-cpu", func(a *rdma.Attr) { a.RemoteCPU = true; a.Transports = rdma.RD }},
		{"messages-only", func(a *rdma.Attr) { a.Ops = rdma.Ops(rdma.OpSend); a.Transports = rdma.RC; a.SegmentHint = 0 }},
		{"small", func(a *rdma.Attr) { a.MaxSend, a.MaxInline, a.SegmentHint = rdma.HeadMax, 0, 0; a.Transports = rdma.RD }},
	} {
		if shape.name != "plain" && (testing.Short() || race.Enabled) {
			continue // the other variants do not differ in what goroutines share
		}
		attr := ReferenceAttr()
		shape.mutation(&attr)
		Run(t, Fixture{Name: shape.name, Unconnected: "its peers are objects of one heap", Open: openReference(attr), Exclude: excused()})
	}
}
