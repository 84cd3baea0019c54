package rail

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/dgram"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// TestConformance runs the suite on two rails of datagrams over the loopback interface,
// and on one and three rails of the reference device, which has no file to sleep on.
func TestConformance(t *testing.T) {
	rdmatest.Run(t, rdmatest.Fixture{Name: "datagrams", Unconnected: "datagrams need no connection", Open: openDatagrams})
	for _, rails := range []int{1, 3} {
		rdmatest.Run(t, rdmatest.Fixture{
			Name: fmt.Sprintf("reference-%d", rails), Unconnected: "its peers are objects of one heap",
			Open: func(t testing.TB, n int) []rdma.Device { return openReferences(t, n, rails) },
			Exclude: map[string]string{
				"steady-inline-send": "the reference allocates", "steady-send": "the reference allocates",
				"steady-read": "the reference allocates", "steady-write": "the reference allocates",
			},
		})
	}
}

// openDatagrams opens devices of two rails each, on 127.0.0.1 and 127.0.0.2.
func openDatagrams(t testing.TB, n int) []rdma.Device {
	t.Helper()
	return openRails(t, n, 2, func(_, rail int) rdma.Device { return openDatagram(t, rail) })
}

func openDatagram(t testing.TB, rail int) rdma.Device {
	t.Helper()
	d, err := dgram.Open(dgram.Config{Bind: netip.MustParseAddrPort(fmt.Sprintf("127.0.0.%d:0", 1+rail)), JobKey: []byte("the key of the test")})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func openReferences(t testing.TB, n, rails int) []rdma.Device {
	t.Helper()
	var nets [][]rdma.Device
	for range rails {
		nets = append(nets, rdmatest.NewReference(n))
	}
	return openRails(t, n, rails, func(node, rail int) rdma.Device { return nets[rail][node] })
}

// openRails opens n devices with the given number of rails each.
func openRails(t testing.TB, n, rails int, open func(node, rail int) rdma.Device) (list []rdma.Device) {
	t.Helper()
	for node := range n {
		c := Config{Name: uint32(100 + node)}
		for rail := range rails {
			c.Rails = append(c.Rails, Rail{Name: fmt.Sprintf("rail%d", rail), Network: fmt.Sprintf("10.%d.0.0/24", rail), Device: open(node, rail)})
		}
		d, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		list = append(list, d)
	}
	return list
}
