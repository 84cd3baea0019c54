//go:build linux

package dgram

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// TestConformance runs the suite over the loopback interface: with large datagrams as
// there, with those of an Ethernet, which cut every longer message, and with a tenth of
// those lost, doubled, reordered and corrupted each; and on a kernel that turns out not to
// take runs.
func TestConformance(t *testing.T) {
	for _, v := range []struct {
		name  string
		cfg   Config
		share float64 // of datagrams that suffer each of the four fates
		runs  unix.Errno
	}{
		{"loopback", Config{MaxTransfer: 6 << 20}, 0, 0},
		{"ethernet", Config{Datagram: ethernetDatagram}, 0, 0},
		{"storm", Config{Datagram: ethernetDatagram}, 0.1, 0},
		{"encrypted", Config{Datagram: ethernetDatagram, Encrypt: true}, 0, 0},
		{"no-runs", Config{Datagram: ethernetDatagram}, 0, unix.EIO},
	} {
		if v.share > 0 && testing.Short() {
			continue // losses cost time
		}
		var exclude map[string]string
		if v.share > 0 {
			exclude = map[string]string{"lend-never-runs-out": "6000 messages wait for 1200 losses, which shows nothing that order-one-to-one does not"}
		}
		rdmatest.Run(t, rdmatest.Fixture{Name: v.name, Exclude: exclude, Unconnected: "datagrams need no connection", Open: func(t testing.TB, n int) []rdma.Device {
			var list []rdma.Device
			for i := range n {
				d := openTest(t, v.cfg)
				d.socket.refuses = v.runs
				if v.share > 0 {
					d.disturb = storm(v.share, uint64(i))
				}
				list = append(list, d)
			}
			return list
		}})
	}
}

// storm loses, doubles, exchanges and corrupts that share of the datagrams each.
func storm(share float64, seed uint64) func(*outbox) {
	random := rand.New(rand.NewPCG(seed, 1))
	return func(o *outbox) {
		for i := 0; i < o.n; i++ {
			if random.Float64() < share { // lost: the last takes its place
				o.n--
				o.letters[i], o.letters[o.n] = o.letters[o.n], o.letters[i]
				i--
				continue
			}
			l := &o.letters[i]
			if random.Float64() < share {
				l.data[random.IntN(len(l.data))] ^= byte(1 + random.IntN(255))
			}
			if random.Float64() < share {
				k := random.IntN(o.n)
				o.letters[i], o.letters[k] = o.letters[k], o.letters[i]
			}
			if o.n < batchSize && random.Float64() < share {
				double := &o.letters[o.n]
				double.to, double.data = l.to, append(double.data[:0], l.data...)
				o.n++
				i++ // the double is spared
			}
		}
	}
}

func openTest(t testing.TB, c Config) *Device {
	t.Helper()
	if !c.Bind.IsValid() {
		c.Bind = netip.MustParseAddrPort("127.0.0.1:0")
	}
	if c.JobKey == nil {
		c.JobKey = []byte("the key of the test")
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
	return d
}
