package lab

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// datagrams sends a thousand datagrams to a host and returns how many its socket gets.
func datagrams(t *testing.T, l *Lab, from, to string) int {
	t.Helper()
	ask := l.Addr(to, 0) + ":7000"
	if l.Rails() > 1 {
		ask = l.Addr(to, 1) + ":7000"
	}
	out := result(t, l, from, "shower", l.Addr(to, 0)+":7000", "LAB_TEST_ASK="+ask)
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatalf("the receiver reports %q", out)
	}
	return n
}

func TestPacketsTwiceChangedLate(t *testing.T) {
	l := New(t, Config{Rails: 2}) // the count comes over the second rail
	a, b := l.Hosts()[0], l.Hosts()[1]
	for _, c := range []struct {
		name        string
		with        func() (func() error, error)
		least, most int
	}{
		{"duplicate", func() (func() error, error) {
			return func() error { return l.Duplicate(a, 0, 0) }, l.Duplicate(a, 0, 1)
		}, 1500, 2000},
		{"corrupt", func() (func() error, error) {
			return l.Relay(a, 0, Relay{Share: 1, Corrupt: true, Seed: 1})
		}, 350, 650},
		{"delay", func() (func() error, error) {
			return l.Relay(a, 0, Relay{Share: 1, Delay: 5 * time.Millisecond, Seed: 1})
		}, 850, 1000},
		{"nothing", func() (func() error, error) { return func() error { return nil }, nil }, 980, 1000},
	} {
		stop, err := c.with()
		if err != nil {
			t.Fatal(err)
		}
		server := startServer(t, l, a, "count", ":7000")
		if n := datagrams(t, l, b, a); n < c.least || n > c.most {
			t.Errorf("%s: %d of 1000 datagrams arrive, want %d to %d", c.name, n, c.least, c.most)
		}
		_ = server.Process.Kill()
		_ = server.Wait() // it was killed
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCorruptedPacketHasAChecksum(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	seen := 0
	for range 200 {
		packet := make([]byte, 28+random.IntN(100))
		for i := range packet {
			packet[i] = byte(random.Uint32())
		}
		packet[0], packet[9] = 0x45, 17
		binary.BigEndian.PutUint16(packet[24:], uint16(len(packet)-20))
		was := slices.Clone(packet)
		visible := corrupt(packet, random)
		if len(packet) == 28 {
			if visible {
				t.Error("a packet without data was changed")
			}
			continue
		}
		differ := 0
		for i := range packet {
			if packet[i] != was[i] && i != 26 && i != 27 {
				differ++
			}
		}
		if differ != 1 {
			t.Errorf("%d bytes of data differ", differ)
		}
		if !visible {
			continue
		}
		seen++
		sum := binary.BigEndian.Uint16(packet[26:])
		packet[26], packet[27] = 0, 0
		if want := udpChecksum(packet, 20); sum != want {
			t.Errorf("the checksum is %#x, want %#x", sum, want)
		}
	}
	if seen == 0 {
		t.Error("no change reaches the receiver")
	}
}
