package soft

import (
	"bytes"
	"hash/crc32"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
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
	w := &wiretap{conn, other.net.first.local}
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
		sum := crc32.Checksum(bad[:min(n, coveredLen)], crc32.MakeTable(crc32.Castagnoli))
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

// TestWholeEncryptedRun passes the packets of a Write to the peer as the kernel coalesces
// them: as they were sent, in which case they are decrypted into the target and not
// collected, and with one that was changed, which alone is sent again. The key changes
// inside the run.
func TestWholeEncryptedRun(t *testing.T) {
	for _, spoil := range []int{-1, 0, 1, 7, 9} {
		want := 0
		if spoil >= 0 {
			want = 1
		}
		// One more may be a probe. A pause of the machine makes timers expire and more
		// probes due, but it does not recur.
		again := wholeEncryptedRun(t, spoil)
		for attempt := 1; len(again) > want+1 && attempt < 3; attempt++ {
			again = wholeEncryptedRun(t, spoil)
		}
		if len(again) > want+1 {
			t.Errorf("packet %d changed: packets %v were sent again", spoil, again)
		}
	}
}

// wholeEncryptedRun returns the packets that were sent again.
func wholeEncryptedRun(t *testing.T, spoil int) map[int]bool {
	t.Helper()
	c := Config{Datagram: ethernetDatagram, Encrypt: true, NoThread: true}
	a, b := newTestNode(t, c), newTestNode(t, c)
	if !a.net.first.runs() {
		t.Skip("this kernel has no UDP_SEGMENT")
	}
	to := a.resolve(t, b)
	source, target := make([]byte, 20_000), make([]byte, 20_000)
	for i := range source {
		source[i] = byte(i % 251)
	}
	mr, err := b.Register(target, rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	runs, again := 0, map[int]bool{}
	var sequence reliable.Sequence
	a.outgoing.disturb = func(o *outbox) {
		for i := range o.packets[:o.n] {
			l := &o.packets[i]
			if l.index.count == 1 && runs > 0 && l.index.sequence == sequence {
				again[int(l.index.position)] = true
			}
			if l.index.count < 2 || runs > 0 {
				continue
			}
			runs, sequence = 1, l.index.sequence
			if spoil >= 0 {
				l.data[spoil*l.wire()+sealedAt+100]++
			}
			b.mu.Lock()
			for rest := bytes.Clone(l.data); len(rest) > 0; {
				rest = rest[b.takeRun(&b.incoming.part, rest, l.wire()):]
			}
			if p := b.qp.(*pair).peers[0]; (p.reorderBuffer == nil) != (spoil < 0) {
				t.Errorf("packet %d changed: collected: %v", spoil, p.reorderBuffer != nil)
			}
			b.mu.Unlock()
			o.n--
			o.packets[i], o.packets[o.n] = o.packets[o.n], o.packets[i]
			return
		}
	}
	for id, wr := range []rdma.SendWR{{Op: rdma.OpSend, Body: rdma.MemOf(make([]byte, 10))}, {Op: rdma.OpWrite, Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey}} {
		wr.ID, wr.Peer = uint64(id), to
		a.mu.Lock()
		if id == 1 {
			a.keys.serial = 1<<epochBits - 6
		}
		a.mu.Unlock()
		if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
			t.Fatal(err)
		}
		pollBoth(t, a, b, func(onA bool, c *rdma.Completion) bool { return onA && c.ID == uint64(id) })
	}
	if got := b.keys.epochs.coming.number; got != 1 {
		t.Errorf("packet %d changed: the last packet was of epoch %d, want 1", spoil, got)
	}
	want := uint64(0)
	if spoil >= 0 {
		want = 1
	}
	if drops := b.Drops(); runs != 1 || again[spoil] != (spoil >= 0) || drops.Strangers != want || !bytes.Equal(source, target) {
		t.Errorf("packet %d changed: %d runs, packets %v were sent again, drops %+v, bytes equal: %v", spoil, runs, again, drops, bytes.Equal(source, target))
	}
	return again
}

// TestEncryptionDoesNotAllocate writes 16 MB in runs, in long datagrams and in short ones.
func TestEncryptionDoesNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for name, c := range map[string]Config{
		"runs":      {Encrypt: true, Datagram: ethernetDatagram},
		"datagrams": {Encrypt: true},
		"packets":   {Encrypt: true, Datagram: ethernetDatagram, NoRuns: true},
	} {
		w := newWriter(t, c)
		w.give()
		// The runtime allocates if it starts a thread, which a pause of the machine may
		// cause. That does not recur.
		n := testing.AllocsPerRun(2, w.give)
		for attempt := 1; n > 0 && attempt < 3; attempt++ {
			n = testing.AllocsPerRun(2, w.give)
		}
		if n > 0 {
			t.Errorf("%s: writing %d MB allocates %g times", name, megabytes, n)
		}
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
