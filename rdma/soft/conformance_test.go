//go:build linux

package soft

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// TestConformance runs the suite over the loopback interface: with its large datagrams;
// with Ethernet datagrams, which segment every longer message; with a tenth of those
// lost, duplicated, reordered and corrupted each; and on a kernel that turns out not to
// accept runs.
func TestConformance(t *testing.T) {
	for _, v := range []struct {
		name  string
		cfg   Config
		share float64 // of datagrams that suffer each of the four impairments
		runs  unix.Errno
	}{
		{"loopback", Config{MaxTransfer: 6 << 20}, 0, 0},
		{"ethernet", Config{Datagram: ethernetDatagram}, 0, 0},
		{"impaired", Config{Datagram: ethernetDatagram}, 0.1, 0},
		{"encrypted", Config{Datagram: ethernetDatagram, Encrypt: true}, 0, 0},
		{"no-runs", Config{Datagram: ethernetDatagram}, 0, unix.EIO},
	} {
		if (v.share > 0 || v.runs != 0) && testing.Short() {
			continue // losses take time, and each datagram for itself as well
		}
		var exclude map[string]string
		if v.share > 0 {
			exclude = map[string]string{"lend-never-runs-out": "6000 messages wait for 1200 losses, which shows nothing that order-one-to-one does not"}
		}
		rdmatest.Run(t, rdmatest.Fixture{Name: v.name, Exclude: exclude, Unconnected: "datagrams need no connection", Open: func(t testing.TB, n int) []rdma.Device {
			var list []rdma.Device
			for i := range n {
				d := openTest(t, v.cfg)
				d.net.first.refuses = v.runs
				if v.share > 0 {
					d.outgoing.disturb = byPacket(d, impair(v.share, uint64(i)))
				}
				list = append(list, d)
			}
			return list
		}})
	}
}

// byPacket returns a function for Device.disturb that lets disturb change what is sent, packet
// by packet. It allocates nothing when it is called.
func byPacket(d interface{ sendPackets() int }, disturb func(*outbox)) func(*outbox) {
	bytes := make([]byte, 0, batchSize*maxDatagram)
	ends, from := make([]int, 0, batchSize*reliable.MaxRun), make([]packet, 0, batchSize*reliable.MaxRun) // from: to and on
	return func(o *outbox) {
		bytes, ends, from = bytes[:0], ends[:0], from[:0]
		for i := range o.packets[:o.n] {
			l := &o.packets[i]
			l.keep()
			bytes, ends = l.appendPackets(bytes, ends)
			for len(from) < len(ends) {
				from = append(from, packet{to: l.to, on: l.on})
			}
		}
		for at, next := 0, 0; next < len(ends); {
			o.n = 0
			for ; o.n < batchSize/2 && next < len(ends); o.n, next = o.n+1, next+1 { // there is room for duplicates
				l := &o.packets[o.n]
				l.data, l.to, l.on, l.index = append(l.data[:0], bytes[at:ends[next]]...), from[next].to, from[next].on, runIndex{}
				at = ends[next]
			}
			if disturb(o); next < len(ends) && o.n > 0 {
				d.sendPackets() // what is not accepted is lost
			}
		}
	}
}

// appendPackets appends the packets as the network has them, and the end of each.
func (l *packet) appendPackets(b []byte, ends []int) ([]byte, []int) {
	if l.index.packets == 0 || l.encrypted() {
		wire := len(l.data)
		if l.encrypted() {
			wire = l.wire()
		}
		for at := 0; at < len(l.data); at += wire {
			b = append(b, l.data[at:min(at+wire, len(l.data))]...)
			ends = append(ends, len(b))
		}
		return b, ends
	}
	for i := range int(l.index.count) {
		front, back := l.chunk(i)
		n, index := len(b), [indexLen]byte{}
		b = append(append(append(b, index[:]...), front...), back...)
		l.index.put((*[indexLen]byte)(b[n:]), i, l.crcs[i])
		ends = append(ends, len(b))
	}
	return b, ends
}

// impair loses, duplicates, reorders and corrupts that share of the datagrams each.
func impair(share float64, seed uint64) func(*outbox) {
	random := rand.New(rand.NewPCG(seed, 1))
	return func(o *outbox) {
		for i := 0; i < o.n; i++ {
			if random.Float64() < share { // lost: the last one fills the gap
				o.n--
				o.packets[i], o.packets[o.n] = o.packets[o.n], o.packets[i]
				i--
				continue
			}
			l := &o.packets[i]
			if random.Float64() < share {
				l.data[random.IntN(len(l.data))] ^= byte(1 + random.IntN(255))
			}
			if random.Float64() < share {
				k := random.IntN(o.n)
				o.packets[i], o.packets[k] = o.packets[k], o.packets[i]
			}
			if o.n < batchSize && random.Float64() < share {
				double := &o.packets[o.n]
				double.to, double.on, double.data, double.index = l.to, l.on, append(double.data[:0], l.data...), runIndex{}
				o.n++
				i++ // the duplicate is spared
			}
		}
	}
}

func openTest(t testing.TB, c Config) *Device {
	t.Helper()
	d, err := Open(testConfig(c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

// testConfig fills in what every device needs.
func testConfig(c Config) Config {
	if !c.Bind.IsValid() {
		c.Bind = netip.MustParseAddrPort("127.0.0.1:0")
	}
	if c.JobKey == nil {
		c.JobKey = []byte("the key of the test")
	}
	return c
}
