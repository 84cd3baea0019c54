package dgram

import (
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// Devices with several paths, on 127.0.0.1, 127.0.0.2 and so on.

func pathsConfig(name uint32, n int) Config {
	c := Config{Name: name, JobKey: []byte("the key of the test"), Datagram: ethernetDatagram}
	for i := range n {
		c.Paths = append(c.Paths, Path{Name: fmt.Sprintf("rail%d", i), Bind: netip.MustParseAddrPort(fmt.Sprintf("127.0.0.%d:0", 1+i)), Network: netip.MustParsePrefix(fmt.Sprintf("127.0.0.%d/32", 1+i))})
	}
	return c
}

func openPaths(t testing.TB, name uint32, n int) *Device {
	t.Helper()
	return openTest(t, pathsConfig(name, n))
}

// dropOn drops the packets of paths that are cut, and counts them.
func dropOn(cut func(path int) bool, dropped *atomic.Int64) func(*outbox) {
	return func(o *outbox) {
		kept := 0
		for i := range o.packets[:o.n] {
			if cut(int(o.packets[i].on)) {
				dropped.Add(1)
				continue
			}
			o.packets[kept], o.packets[i] = o.packets[i], o.packets[kept]
			kept++
		}
		o.n = kept
	}
}

// TestConformanceOnPaths runs the suite on devices with 2 and 3 paths.
func TestConformanceOnPaths(t *testing.T) {
	for _, n := range []int{2, 3} {
		if n > 2 && raceDetector {
			continue // it takes minutes, and shows nothing that 2 do not
		}
		rdmatest.Run(t, rdmatest.Fixture{Name: fmt.Sprint(n), Unconnected: "datagrams need no connection", Open: func(t testing.TB, k int) (list []rdma.Device) {
			for i := range k {
				list = append(list, openPaths(t, uint32(100+i), n))
			}
			return list
		}})
	}
}

// TestConformanceOnFlakyPaths runs the suite on two paths of which one is cut, or both
// alternately.
func TestConformanceOnFlakyPaths(t *testing.T) {
	if testing.Short() {
		t.Skip("cuts take time")
	}
	start := time.Now()
	for _, v := range []struct {
		name string
		cut  func(path int) bool
	}{
		{"dead", func(path int) bool { return path == 1 }},
		{"dead-first", func(path int) bool { return path == 0 }},
		{"alternating", func(path int) bool { // one is cut for 100 ms, then none for 100 ms, then the other
			return time.Since(start)/(100*time.Millisecond)%4 == time.Duration(2*path)
		}},
	} {
		if v.name != "alternating" && raceDetector {
			continue // likewise
		}
		var dropped atomic.Int64
		rdmatest.Run(t, rdmatest.Fixture{Name: v.name, Unconnected: "datagrams need no connection", Open: func(t testing.TB, k int) (list []rdma.Device) {
			for i := range k {
				d := openPaths(t, uint32(100+i), 2)
				d.disturb = dropOn(v.cut, &dropped)
				list = append(list, d)
			}
			return list
		}})
		if dropped.Load() < 100 {
			t.Errorf("%s: only %d datagrams were dropped, so the test proves nothing", v.name, dropped.Load())
		}
	}
}

func TestMatchPaths(t *testing.T) {
	ours := func(networks ...string) (list []Path) {
		for _, n := range networks {
			p := Path{}
			if n != "" {
				p.Network = netip.MustParsePrefix(n)
			}
			list = append(list, p)
		}
		return list
	}
	for _, v := range []struct {
		ours   []Path
		theirs string
		want   string
	}{
		{nil, "10.0.0.1:1", "10.0.0.1:1"},
		{ours("10.0.0.0/24", "10.1.0.0/24"), "10.1.0.2:1,10.0.0.2:2", "10.0.0.2:2,10.1.0.2:1"},
		{ours("10.0.0.0/24", "10.1.0.0/24"), "10.1.0.2:1", "10.1.0.2:1,10.1.0.2:1"},
		{ours("10.1.0.0/24"), "10.0.0.2:1,10.1.0.2:2", "10.1.0.2:2"},
		{ours("", ""), "10.1.0.2:1,10.0.0.2:2", "10.1.0.2:1,10.0.0.2:2"},
		{ours("10.9.0.0/24", "10.1.0.0/24"), "10.1.0.2:1,10.0.0.2:2", "10.0.0.2:2,10.1.0.2:1"},
		{ours("10.0.0.0/24", "10.0.0.0/24"), "10.0.0.2:1,10.0.0.2:2", "10.0.0.2:1,10.0.0.2:2"},
		{ours("10.0.0.0/24", "10.1.0.0/24", "10.2.0.0/24"), "10.0.0.2:1", "10.0.0.2:1,10.0.0.2:1,10.0.0.2:1"},
	} {
		_, theirs, err := parseAddress(rdma.Addr(v.theirs + "/1/0123456789ab/0"))
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, e := range match(v.ours, theirs) {
			words = append(words, e.addrPort.String())
		}
		if got := strings.Join(words, ","); got != v.want {
			t.Errorf("%v and %s are paired as %s, want %s", v.ours, v.theirs, got, v.want)
		}
	}
}

func TestAddressesWithPaths(t *testing.T) {
	d := newTestNode(t, pathsConfig(12, 3))
	a, ends, err := parseAddress(d.qp.Addr())
	if err != nil || a.incarnation != d.keys.incarnation || a.name != 12 || len(ends) != 3 {
		t.Fatalf("%s is read as %v with %d endpoints, %v", d.qp.Addr(), &a, len(ends), err)
	}
	for i, e := range ends {
		if e.addrPort != d.socketOf(i).local || e.raw.addrPort() != e.addrPort {
			t.Errorf("endpoint %d is %v, the socket %v", i, e.addrPort, d.socketOf(i).local)
		}
	}
	const rest = "/1/0123456789ab/0"
	for _, text := range []string{"", ",", "10.0.0.1:1,", ",10.0.0.1:1", "10.0.0.1:1,10.0.0.2", "10.0.0.1:1,10.0.0.2:0", strings.Repeat("10.0.0.1:1,", 8) + "10.0.0.1:1"} {
		if _, _, err := parseAddress(rdma.Addr(text + rest)); err == nil {
			t.Errorf("%q is accepted as an address", text+rest)
		}
	}
}
