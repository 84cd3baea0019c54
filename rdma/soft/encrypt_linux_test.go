package soft

import (
	"bytes"
	"hash/crc32"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Config.Encrypt between devices, with an attacker in the path of all datagrams.

// wiretap is a socket between two devices.
type wiretap struct {
	*net.UDPConn
	to netip.AddrPort // the real destination
}

// tap intercepts what s sends to other, and returns the peer's handle.
func tap(t *testing.T, s, other *testNode) (*wiretap, rdma.PeerID) {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // nothing depends on it
	w := &wiretap{conn, other.socket.local}
	here := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	_, rest, _ := strings.Cut(string(other.qp.Addr()), "/")
	id, err := s.Resolve(rdma.Addr(here.String() + "/" + rest))
	if err != nil {
		t.Fatal(err)
	}
	return w, id
}

// read returns the next intercepted datagram.
func (w *wiretap) read(t *testing.T) []byte {
	t.Helper()
	b := make([]byte, maxDatagram)
	if err := w.SetReadDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	n, err := w.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

func (w *wiretap) write(t *testing.T, b []byte) {
	t.Helper()
	if _, err := w.WriteToUDPAddrPort(b, w.to); err != nil {
		t.Fatal(err)
	}
}

func TestEncryptionHidesText(t *testing.T) {
	const text = "the quick brown fox jumps over the lazy dog"
	for _, kind := range []rdma.Transport{rdma.UD, rdma.RD} {
		for _, encrypt := range []bool{false, true} {
			a, b := newTestNodeOf(t, Config{Encrypt: encrypt}, kind), newTestNodeOf(t, Config{Encrypt: encrypt}, kind)
			line, to := tap(t, a, b)
			a.send(t, to, text)
			d := line.read(t)
			readable := false
			for i := range len(text) - 4 {
				readable = readable || bytes.Contains(d, []byte(text[i:i+4]))
			}
			if readable == encrypt {
				t.Errorf("kind %d, encrypted: %v, but text readable: %v", kind, encrypt, readable)
			}
			line.write(t, d)
			if c, ok := b.poll(testTimeout); !ok || string(c.Data.Bytes()) != text {
				t.Errorf("kind %d, encrypted: %v: the peer received %+v", kind, encrypt, c)
			}
		}
	}
}

// TestTamperedDatagramDropped checks that encryption protects every byte, even if the
// CRC is corrected.
func TestTamperedDatagramDropped(t *testing.T) {
	a, b := newTestNodeOf(t, Config{Encrypt: true}, rdma.UD), newTestNodeOf(t, Config{Encrypt: true}, rdma.UD)
	line, to := tap(t, a, b)
	a.send(t, to, strings.Repeat("x", 500))
	d := line.read(t)
	changed := 0
	for i := 0; i < len(d); i += 7 {
		if i >= len(d)-sealLen && i < len(d)-tagLen {
			continue
		}
		bad := bytes.Clone(d)
		bad[i] ^= 4
		n := len(bad) - sealLen
		sum := crc32.Checksum(bad[:n], crc32.MakeTable(crc32.Castagnoli))
		for k := range crcLen {
			bad[n+k] = byte(sum >> (8 * k))
		}
		line.write(t, bad)
		changed++
	}
	line.write(t, d)
	c, ok := b.poll(testTimeout)
	if !ok || c.Len != 500 {
		t.Fatalf("the peer received %+v", c)
	}
	if got := b.Drops(); got.Strangers != uint64(changed) {
		t.Errorf("the drops are %+v; %d datagrams were changed", got, changed)
	}
	if c, ok := b.poll(20 * time.Millisecond); ok {
		t.Errorf("a changed datagram makes the completion %+v", c)
	}
}

// TestPlainAndEncryptedDoNotMix checks that datagrams with the other setting are
// dropped and counted.
func TestPlainAndEncryptedDoNotMix(t *testing.T) {
	plain, encrypts := newTestNodeOf(t, Config{}, rdma.UD), newTestNodeOf(t, Config{Encrypt: true}, rdma.UD)
	for _, c := range []struct {
		name     string
		from, to *testNode
	}{{"plain to encrypted", plain, encrypts}, {"encrypted to plain", encrypts, plain}} {
		c.from.send(t, c.from.resolve(t, c.to), "hello")
		for limit := time.Now().Add(testTimeout); c.to.Drops().Secrecy == 0; c.to.cq.Poll(nil) {
			if time.Now().After(limit) {
				t.Fatalf("%s: the drops are %+v", c.name, c.to.Drops())
			}
		}
		if got, ok := c.to.poll(0); ok {
			t.Errorf("%s: received %+v", c.name, got)
		}
	}
}
