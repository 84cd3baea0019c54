package soft

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

func testKeyring(t testing.TB, key string) *keyring {
	k, err := newKeyring([]byte(key), false)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestHeaderOnTheWire(t *testing.T) {
	seen := reliable.Ack{Next: 0x11223344, End: 0x55667788, Span: 0x1234, Held: 0x99AA, Path: 5}
	far := seen
	far.Words, far.Missing[0], far.Missing[2] = 3, 2, 4
	for _, c := range []struct {
		name string
		h    header
		want string
	}{
		{"unreliable", header{kind: kindUnreliable, to: 1, from: 2, toIncarnation: 0xA1A2A3A4A5A6, fromIncarnation: 0xB1B2B3B4B5B6, serial: 7, name: 0xD1D2D3D4},
			"2100" + "0001" + "0002" + "a1a2a3a4a5a6" + "b1b2b3b4b5b6" + "000000000007" + "d1d2d3d4"},
		{"record", header{kind: kindRecord, record: recordHeader{number: 0xD1D2D3D4, total: 0x01020304, cut: 0x0506, index: 0x0708, id: 0xE1E2E3E4E5E6E7E8}},
			"2400" + "00000000" + "000000000000" + "000000000000" + "000000000000" + "00000000" + "d1d2d3d4" + "01020304" + "0506" + "0708" + "e1e2e3e4e5e6e7e8"},
		{"error", header{kind: kindError, to: 3},
			"2500" + "00030000" + "000000000000" + "000000000000" + "000000000000" + "00000000"},
		{"segment", header{kind: kindSegment, urgent: true, path: 7, number: 0xC1C2C3C4, sequence: 9},
			"221d" + "00000000" + "000000000000" + "000000000000" + "000000000000" + "00000000" + "c1c2c3c4" + "00000009"},
		{"ack", header{kind: kindAck, hasAck: true, ack: seen},
			"2302" + "00000000" + "000000000000" + "000000000000" + "000000000000" + "00000000" + "11223344" + "55667788" + "1234" + "99aa" + "05000000"},
		{"segment-with-history", header{kind: kindSegment, hasAck: true, ack: far},
			"2202" + "00000000" + "000000000000" + "000000000000" + "000000000000" + "00000000" + "00000000" + "00000000" +
				"11223344" + "55667788" + "1234" + "99aa" + "05030000" + "0000000000000002" + "0000000000000000" + "0000000000000004"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wire := c.h.append(nil)
			if got := hex.EncodeToString(wire); got != c.want {
				t.Fatalf("encoded as\n%s, want\n%s", got, c.want)
			}
			var back header
			rest, err := back.parse(wire)
			if err != nil || len(rest) > 0 || back != c.h {
				t.Errorf("decoded as %+v with %d more bytes, %v, want %+v", back, len(rest), err, c.h)
			}
			for n := range wire {
				if _, err := back.parse(wire[:n]); !errors.Is(err, errShort) {
					t.Errorf("its first %d bytes are accepted: %v", n, err)
				}
			}
		})
	}
}

func TestHeaderRefusals(t *testing.T) {
	valid := (&header{kind: kindSegment}).append(nil)
	for _, c := range []struct {
		name   string
		change func(b []byte) []byte
		want   error
	}{
		{"version", func(b []byte) []byte { b[0] = 0x12; return b }, errVersion},
		{"kind-0", func(b []byte) []byte { b[0] = 0x20; return b }, errKind},
		{"kind-15", func(b []byte) []byte { b[0] = 0x2F; return b }, errKind},
		{"spare-bytes", func(b []byte) []byte { b[1] = flagAck; return append(b, append(make([]byte, ackLen-1), 1)...) }, errAck},
		{"too-many-words", func(b []byte) []byte {
			b[1] = flagAck
			b = append(b, make([]byte, 999)...)
			b[len(valid)+13] = reliable.MaxWords + 1
			return b
		}, errAck},
		{"ack-on-UD", func(b []byte) []byte { b[0], b[1] = 0x21, flagAck; return append(b, make([]byte, ackLen)...) }, errAck},
		{"ack-on-a-record", func(b []byte) []byte { b[0], b[1] = 0x24, flagAck; return append(b, make([]byte, 40)...) }, errAck},
		{"ack-without-ack", func(b []byte) []byte { b[0] = 0x23; return b }, errAck},
		{"ack-with-segment", func(b []byte) []byte { b[0], b[1] = 0x23, flagAck; return append(b, make([]byte, 20)...) }, errAck},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h header
			if _, err := h.parse(c.change(bytes.Clone(valid))); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func sealed(k *keyring, text string) []byte {
	h := header{kind: kindUnreliable}
	k.stampHeader(&h)
	return k.seal(append(h.append(nil), text...))
}

func TestSealRejectsForeignKeys(t *testing.T) {
	ours, peerKeys, stranger := testKeyring(t, "ours"), testKeyring(t, "ours"), testKeyring(t, "theirs")
	d := sealed(peerKeys, "hello")
	if content, err := ours.check(d); err != nil || string(content[headerLen:]) != "hello" {
		t.Fatalf("a datagram of our job is rejected: %q, %v", content, err)
	}
	if _, err := ours.check(sealed(stranger, "hello")); !errors.Is(err, errStranger) {
		t.Errorf("a datagram with another key: %v", err)
	}
	if _, err := newKeyring(nil, false); err == nil {
		t.Error("a device without a key can be made")
	}
	for i := range d {
		bad := bytes.Clone(d)
		bad[i] ^= 0x40
		if _, err := ours.check(bad); err == nil {
			t.Errorf("a change in byte %d goes unnoticed", i)
		}
	}
	for n := range d {
		if _, err := ours.check(d[:n]); err == nil {
			t.Errorf("a datagram truncated to %d bytes is accepted", n)
		}
	}
}

// TestNoncesNeverRepeat: two datagrams with one nonce would compromise the key.
func TestNoncesNeverRepeat(t *testing.T) {
	k := testKeyring(t, "ours")
	a, b := sealed(k, "x"), sealed(k, "x")
	if bytes.Equal(a[nonceAt:nonceAt+nonceLen], b[nonceAt:nonceAt+nonceLen]) {
		t.Error("two datagrams have the same nonce")
	}
	k.serial = lastSerial
	if k.stampHeader(new(header)) {
		t.Error("serial numbers restart after the last")
	}
	if other := testKeyring(t, "ours"); other.incarnation == k.incarnation {
		t.Error("two devices have the same incarnation")
	}
}

func TestSealingAllocatesNothing(t *testing.T) {
	k := testKeyring(t, "ours")
	room := make([]byte, 0, 2048)
	var h, back header
	payload := make([]byte, 1400)
	got := testing.AllocsPerRun(100, func() {
		h.kind, h.hasAck = kindSegment, true
		k.stampHeader(&h)
		d := k.seal(append(h.append(room), payload...))
		content, err := k.check(d)
		if err == nil {
			_, err = back.parse(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("sealing and checking a datagram allocates %v times", got)
	}
}

// FuzzHeader looks for datagrams that crash the parser or are encoded differently
// again.
func FuzzHeader(f *testing.F) {
	var full header
	full.kind, full.hasAck = kindSegment, true
	full.ack.Words, full.ack.Missing[reliable.MaxWords-1] = reliable.MaxWords, 1
	f.Add(full.append(nil))
	f.Add((&header{kind: kindUnreliable, serial: 1}).append(nil))
	f.Add((&header{kind: kindRecord, record: recordHeader{number: 1, total: 2, cut: 3, index: 4, id: 5}}).append(nil))
	f.Add((&header{kind: kindError}).append(nil))
	f.Add((&header{kind: kindClose, hasAck: true}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again header
		rest, err := h.parse(b)
		if err != nil {
			return
		}
		more, err := again.parse(append(h.append(nil), rest...))
		if err != nil || again != h || !bytes.Equal(more, rest) {
			t.Errorf("%x is %+v; written again it is %+v, %v", b, h, again, err)
		}
	})
}
