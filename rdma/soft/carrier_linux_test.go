package soft

import (
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/guard"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// TestConformanceOverDevice runs the suite as RD over another device: over UD of this
// package, with loopback datagrams, and with Ethernet datagrams of which a tenth each are
// lost, duplicated and reordered; and over the reference device.
func TestConformanceOverDevice(t *testing.T) {
	for _, v := range []struct {
		name     string
		datagram int
		share    float64 // of packets that suffer each of the three impairments
		open     func(t testing.TB, n int) []rdma.Device
	}{
		{"loopback", 0, 0, openUD},
		{"impaired", 1400, 0.1, openUD},
		{"reference", 1400, 0, func(_ testing.TB, n int) []rdma.Device { return rdmatest.NewReference(n) }},
	} {
		if v.name != "loopback" && (testing.Short() || race.Enabled) {
			continue // losses take time
		}
		exclude := map[string]string{}
		if v.share > 0 {
			exclude["lend-never-runs-out"] = "6000 messages wait for 600 losses, which shows nothing that order-one-to-one does not"
			for _, name := range []string{"steady-inline-send", "steady-send", "steady-read", "steady-write"} {
				exclude[name] = "the code that simulates losses allocates"
			}
		}
		if v.name == "reference" {
			for _, name := range []string{"steady-inline-send", "steady-send", "steady-read", "steady-write"} {
				exclude[name] = "the reference device allocates"
			}
		}
		rdmatest.Run(t, rdmatest.Fixture{Name: v.name, Exclude: exclude, Unconnected: "datagrams need no connection", Open: func(t testing.TB, n int) []rdma.Device {
			var list []rdma.Device
			for i, below := range v.open(t, n) {
				if v.share > 0 {
					below = rdmatest.Wrap(below, rdmatest.Faults{Seed: uint64(i), Drop: v.share, Duplicate: v.share, Reorder: v.share})
				}
				list = append(list, openOverTest(t, Config{Device: below, Datagram: v.datagram, PeerTimeout: time.Second, MaxTransfer: 6 << 20}))
			}
			return list
		}})
	}
}

// openUD opens devices without a progress thread, as channel ud does: that of the device
// above services them.
func openUD(t testing.TB, n int) (list []rdma.Device) {
	t.Helper()
	for range n {
		d, err := Open(testConfig(Config{NoThread: true}))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
	return list
}

// openOverTest opens a device over another and closes both at the end.
func openOverTest(t testing.TB, c Config) *Device {
	t.Helper()
	d := openTest(t, c)
	if d.net.below == nil {
		t.Fatal("the device has a socket")
	}
	return d
}

func TestKeyGuessingOverDevice(t *testing.T) {
	rdmatest.RunGuesses(t, guard.MaxStrikes, func(t testing.TB, n int) (list []rdma.Device) {
		for i, below := range openUD(t, n) {
			list = append(list, openOverTest(t, Config{Device: below, Name: uint32(i)}))
		}
		return list
	})
}

// TestKeysAreNotConsecutive: one key must reveal nothing about the next.
func TestKeysAreNotConsecutive(t *testing.T) {
	d := openOverTest(t, Config{Device: openUD(t, 1)[0]})
	seen := map[uint64]bool{}
	var last uint64
	for range 200 {
		mr, err := d.Register(make([]byte, 8), rdma.RemoteRead)
		if err != nil {
			t.Fatal(err)
		}
		if secret := mr.RKey; seen[secret] || secret-last+8 < 16 {
			t.Fatalf("a key is %#x after %#x", secret, last)
		} else {
			seen[secret], last = true, secret
		}
	}
}

// TestAcksAreFew checks T1 6.6.1: in one direction there is an ack for about 50
// messages that nobody waits for.
func TestAcksAreFew(t *testing.T) {
	for _, every := range []int{ackEveryUD, 10} {
		c := Config{Datagram: 1400, AckEvery: every}
		pool := reliable.NewPool[posted](c.carriedParams(1200))
		a, b := reliable.NewPeer(pool), reliable.NewPeer(pool)
		const messages = 1000
		finished, acks := 0, 0
		now := time.Duration(0)
		for range messages {
			a.Push(&message{Length: 1, DelayAck: true})
			s, ok := a.Next(now, 0, 0)
			if !ok {
				t.Fatal("a message is not sent")
			}
			now += 5 * time.Microsecond
			h := header{delayAck: true, urgent: s.Urgent}
			if b.Classify(s.Sequence) != reliable.InOrder {
				t.Fatal("a message is not the next")
			}
			b.Accept(s.Sequence)
			b.RecordPackets(now, 0, s.Number, 1, h.ackMode())
			b.MarkDelivered()
			if b.AckDue(now, 0) {
				var r reliable.Ack
				b.WriteAck(now, 0, &r, reliable.MaxWords)
				acks++
				for m := a.Acknowledge(now, &r); m != nil; m = m.Following {
					finished++
				}
			}
		}
		if acks < messages/every || acks > messages/every+2 || finished < messages-every {
			t.Errorf("%d acks were sent for %d messages, of which %d are acked; want one for %d", acks, messages, finished, every)
		}
	}
}
