//go:build !muster_portable

package iwarp

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Records of encrypted connections (secret.go), without a handshake.

// twoSecrets returns both ends of a connection that changes its keys after each few records.
func twoSecrets(tb testing.TB, every uint64, initiator, responder conn) (a, b *secret) {
	tb.Helper()
	secrets := make([]byte, 2*secretLen)
	for i := range secrets {
		secrets[i] = byte(i * 7)
	}
	var err error
	if a, err = newSecret(initiator, true, secrets); err == nil {
		b, err = newSecret(responder, false, secrets)
	}
	if err != nil {
		tb.Fatal(err)
	}
	for _, c := range []*recordCipher{&a.sealing, &a.opening, &b.sealing, &b.opening} {
		c.every, c.rekey = every, every
	}
	return a, b
}

// give puts bytes where the socket's would be.
func (s *secret) give(b []byte) {
	s.lo, s.hi = 0, copy(s.raw, b)
}

// TestRecordKeys opens records with keys and nonces that are computed as docs/reference/wire.md
// describes them, and checks that no nonce is the plain number of its record.
func TestRecordKeys(t *testing.T) {
	const every, records = 3, 10
	a, b := twoSecrets(t, every, -1, -1)
	if a.sealing.iv == a.opening.iv || a.sealing.iv != b.opening.iv || a.opening.iv == b.opening.iv {
		t.Error("the two directions have one IV, or the two ends have different ones")
	}
	for name, s := range map[string]*secret{"initiator": a, "responder": b} {
		at := s.sealing.secret
		ivs := map[string]bool{}
		var gcm cipher.AEAD
		var key []byte
		for i := range uint64(records) {
			if i > 0 && i%every == 0 {
				at = expand(t, at, "muster iwarp next secret", secretLen)
			}
			if i%every == 0 {
				key = expand(t, at, "muster iwarp record key", 28)
				block, err := aes.NewCipher(key[:16])
				if err != nil {
					t.Fatal(err)
				}
				if gcm, err = cipher.NewGCM(block); err != nil {
					t.Fatal(err)
				}
				ivs[string(key[16:])] = true
			}
			nonce := bytes.Clone(key[16:])
			nonce[11] ^= byte(i)
			s.out = s.out[:0]
			if err := s.seal([]byte("text")); err != nil {
				t.Fatal(err)
			}
			text, err := gcm.Open(nil, nonce, s.out[recordHeader:], s.out[:recordHeader])
			if err != nil || string(text) != "text" {
				t.Fatalf("record %d of the %s: %q, %v", i, name, text, err)
			}
		}
		if len(ivs) != (records+every-1)/every || ivs[string(make([]byte, 12))] {
			t.Errorf("the keys of the %s have the IVs %q", name, slices.Collect(maps.Keys(ivs)))
		}
	}
}

func expand(t *testing.T, secret []byte, info string, n int) []byte {
	t.Helper()
	b, err := hkdf.Expand(sha256.New, secret, info, n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRecordLimits refuses lengths that no peer sends before it has read what they announce.
func TestRecordLimits(t *testing.T) {
	for _, head := range [][]byte{
		{recordMark, 0, 0, 0},
		{recordMark, 0, 0x40, 1},
		{recordMark, 0, 0xFF, 0xFF},
		{recordMark, 1, 0, 1},
		{0x17, 3, 3, 0}, // of TLS
		{0x15, 3, 3, 0},
	} {
		_, b := twoSecrets(t, rekeyAfter, -1, -1)
		b.give(head)
		for range 2 { // and it stays that way
			if n, err := b.read(make([]byte, 100), true); n != 0 || err != errRecord || !b.more() {
				t.Errorf("a record that begins with %x: %d bytes, %v, more %v", head, n, err, b.more())
			}
		}
	}
	// A record with an empty text and a valid tag is refused too.
	a, b := twoSecrets(t, rekeyAfter, -1, -1)
	nonce, err := a.sealing.next()
	if err != nil {
		t.Fatal(err)
	}
	head := []byte{recordMark, 0, 0, 0}
	b.give(a.sealing.aead.Seal(bytes.Clone(head), nonce, nil, head))
	if n, err := b.read(make([]byte, 100), true); n != 0 || err != errRecord {
		t.Errorf("an empty record: %d bytes, %v", n, err)
	}
	if got := len(a.sealed(t, nil)); got != 0 {
		t.Errorf("no text makes %d bytes of records", got)
	}
}

// sealed returns the records of a text.
func (s *secret) sealed(tb testing.TB, text []byte) []byte {
	tb.Helper()
	s.out = s.out[:0]
	if err := s.seal(text); err != nil {
		tb.Fatal(err)
	}
	return bytes.Clone(s.out)
}

// TestRecordsOutOfOrder: a record that is dropped, moved, sent back to its sender or
// received on another connection fails, and so does all that follows it.
func TestRecordsOutOfOrder(t *testing.T) {
	a, b := twoSecrets(t, rekeyAfter, -1, -1)
	first, second := a.sealed(t, []byte("first")), a.sealed(t, []byte("second"))
	back := b.sealed(t, []byte("first"))
	_, other := twoSecrets(t, rekeyAfter, -1, -1)
	other.opening.secret[0]++
	if err := other.opening.derive(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		at     *secret
		stream [][]byte
		want   string
	}{
		"in order":           {nil, [][]byte{first, second}, "firstsecond"},
		"dropped":            {nil, [][]byte{second}, ""},
		"moved":              {nil, [][]byte{second, first}, ""},
		"repeated":           {nil, [][]byte{first, first, second}, "first"},
		"reflected":          {nil, [][]byte{back}, ""},
		"another connection": {other, [][]byte{first}, ""},
	} {
		if c.at == nil {
			_, c.at = twoSecrets(t, rekeyAfter, -1, -1)
		}
		c.at.give(bytes.Join(c.stream, nil))
		got, err := c.at.readAll()
		if string(got) != c.want || (err == errRecord) != (name != "in order") {
			t.Errorf("%s: %q, then %v", name, got, err)
		}
	}
}

// readAll reads until an error, into buffers of several lengths.
func (s *secret) readAll() (all []byte, err error) {
	for i := 0; ; i++ {
		b := make([]byte, 1+i*5%23)
		n, err := s.read(b, i%2 == 0)
		if all = append(all, b[:n]...); err != nil {
			return all, err
		}
	}
}

// TestSealChangingMemory: the program may write to the memory of a message while it is
// sealed. The text is then some of both, but the tag must be that of the ciphertext.
func TestSealChangingMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("the race is on purpose")
	}
	a, b := twoSecrets(t, 100, -1, -1)
	text := make([]byte, recordMax)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for x := byte(0); !stop.Load(); x++ {
			for i := range text {
				text[i] = x
			}
		}
	}()
	into := make([]byte, recordMax)
	mixed := 0
	for i := range 2000 {
		b.give(a.sealed(t, text[:recordMax-i%17]))
		n, err := b.read(into, false)
		if err != nil || n != recordMax-i%17 {
			t.Errorf("record %d: %d bytes, %v", i, n, err)
			break
		}
		if into[0] != into[n-1] {
			mixed++
		}
	}
	stop.Store(true)
	<-done
	if mixed == 0 {
		t.Skip("the memory has not changed while it was sealed")
	}
}

// TestTruncatedStream closes a connection in the middle of a record, and between two records
// in the middle of a frame. Nothing of the message is delivered, and the peer is lost.
func TestTruncatedStream(t *testing.T) {
	text := bytes.Repeat([]byte{0x55}, 3*recordMax)
	for _, inRecord := range []bool{true, false} {
		a, b := settled(t, encrypted)
		target := make([]byte, len(text))
		mr, err := b.dev.Register(target, rdma.RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		q := a.qp.(*queuePair)
		m := q.stream.Write(0, 0, 0)
		h, _ := m.Segment(0, 0)
		h.Tag, h.TO = ddp.Tag(mr.RKey), mr.Base
		frame := binary.BigEndian.AppendUint16(nil, uint16(h.Len()+len(text)))
		frame = append(frame, make([]byte, h.Len())...)
		h.Put(frame[fpduLength:])
		stream := append(q.secret.sealed(t, frame), q.secret.sealed(t, text)...)
		cut := len(stream) - (recordHeader + recordMax + recordTag) // the last record
		if inRecord {
			cut += 1000
		}
		for sent := 0; sent < cut; {
			n, err := send(q.fd, stream[sent:cut])
			if err != nil && err != unix.EAGAIN {
				t.Fatal(err)
			}
			sent += max(n, 0)
			b.poll()
		}
		if err := unix.Shutdown(int(q.fd), unix.SHUT_WR); err != nil {
			t.Fatal(err)
		}
		pollUntil(t, "the connection has ended", func() bool { return b.qp.(*queuePair).state == broken }, b)
		if n, err := b.qp.PostSend([]rdma.SendWR{{ID: 3, Op: rdma.OpSend}}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		pollUntil(t, "the work has completed", func() bool { return len(b.got) > 0 }, b)
		if c := b.got[0]; len(b.got) != 1 || c.ID != 3 || c.Status != rdma.StatusPeerGone {
			t.Errorf("cut inside a record %v: %+v", inRecord, b.got)
		}
		if i := bytes.IndexByte(target, 0); i != 2*recordMax {
			t.Errorf("cut inside a record %v: %d bytes are placed, want those of the two whole records", inRecord, i)
		}
	}
}

// TestForgedRecordIsNotPlaced lets one record of a Write fail that is decrypted into its
// destination. The connection ends, and the destination has nothing that the peer has not sent.
func TestForgedRecordIsNotPlaced(t *testing.T) {
	a, b := settled(t, encrypted)
	text, target := bytes.Repeat([]byte{0x55}, 4*recordMax), bytes.Repeat([]byte{0xEE}, 4*recordMax)
	mr, err := b.dev.Register(target, rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	c := &b.qp.(*queuePair).secret.opening
	c.rekey = c.count + 3 // earlier than the peer: then the tag does not match
	for _, wr := range []rdma.SendWR{{ID: 1, Op: rdma.OpWrite, Body: rdma.MemOf(text), Remote: mr.Base, RKey: mr.RKey}, {ID: 2, Op: rdma.OpSend}} {
		if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	pollUntil(t, "the connection has ended", func() bool { return b.qp.(*queuePair).state == broken }, a, b)
	b.poll()
	if len(b.got) != 0 {
		t.Errorf("what follows a forged record is delivered: %+v", b.got)
	}
	placed := 0
	for i, x := range target {
		switch x {
		case 0x55:
			placed++
		case 0, 0xEE:
		default:
			t.Fatalf("byte %d of the destination is %#x, which the peer has not sent", i, x)
		}
	}
	if placed == 0 || placed == len(target) {
		t.Errorf("%d of %d bytes are placed", placed, len(target))
	}
}

// FuzzRecords: whatever arrives, only what the peer has sent is returned, in its order.
func FuzzRecords(f *testing.F) {
	texts := [][]byte{[]byte("first"), bytes.Repeat([]byte("long "), 2000), []byte("x")}
	a, _ := twoSecrets(f, 2, -1, -1)
	var stream []byte
	for _, text := range texts {
		stream = append(stream, a.sealed(f, text)...)
	}
	all := bytes.Join(texts, nil)
	f.Add(stream)
	f.Add(stream[:len(stream)-1])
	f.Add(stream[1:])
	f.Add(append(bytes.Clone(stream[:25]), stream...))
	f.Fuzz(func(t *testing.T, in []byte) {
		_, b := twoSecrets(t, 2, -1, -1)
		b.give(in)
		got, err := b.readAll()
		if !bytes.HasPrefix(all, got) || err == nil || bytes.Equal(in, stream) && len(got) != len(all) {
			t.Errorf("%d bytes are returned, then %v", len(got), err)
		}
	})
}
