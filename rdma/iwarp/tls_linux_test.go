//go:build !muster_portable

package iwarp

import (
	"bytes"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
)

var encrypted = Config{Encrypt: true, Key: []byte("a key of the job"), NoThread: true}

// onTheWire returns the unread data in the socket of an end.
func (e *end) onTheWire(atLeast int) []byte {
	e.t.Helper()
	b := make([]byte, 1<<20)
	for deadline := time.Now().Add(20 * time.Second); ; {
		n, _, err := unix.Recvfrom(int(e.qp.(*queuePair).fd), b, unix.MSG_PEEK|unix.MSG_DONTWAIT)
		if err == nil && n >= atLeast {
			return b[:n]
		}
		if time.Now().After(deadline) {
			e.t.Fatalf("after 5 s there are %d bytes on the wire, %v; expected %d", n, err, atLeast)
		}
	}
}

// settled returns a pair that has exchanged a message in both directions.
func settled(t *testing.T, cfg Config) (a, b *end) {
	t.Helper()
	a, b = newPair(t, cfg)
	a.sendSome()
	b.sendSome()
	pollUntil(t, "both messages have arrived", func() bool { return len(a.got) == 1 && len(b.got) == 1 }, a, b)
	a.got, b.got = nil, nil
	return a, b
}

// TestNoPlaintextOnTheWire examines a Send, a Write and the response to a Read, with
// encryption and, as a control, without.
func TestNoPlaintextOnTheWire(t *testing.T) {
	text := bytes.Repeat([]byte("what nobody else may read. "), 100)
	for _, cfg := range []Config{encrypted, {Key: encrypted.Key, NoThread: true}} {
		a, b := settled(t, cfg)
		there := bytes.Clone(text)
		mr, err := b.dev.Register(there, rdma.RemoteRead|rdma.RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		back := make([]byte, len(text))
		for _, c := range []struct {
			op     rdma.Op
			body   []byte
			reader *end // the end whose socket receives it
		}{{rdma.OpSend, text, b}, {rdma.OpWrite, text, b}, {rdma.OpRead, back, a}} {
			a.got, b.got = nil, nil
			if n, err := a.qp.PostSend([]rdma.SendWR{{ID: 1, Op: c.op, Body: rdma.MemOf(c.body), Remote: mr.Base, RKey: mr.RKey}}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			if c.reader == a {
				b.onTheWire(1)
				b.poll() // answers
			}
			seen := bytes.Contains(c.reader.onTheWire(len(text)), text[:20])
			if seen == cfg.Encrypt {
				t.Errorf("encrypted %v: the bytes of a %v are visible on the wire: %v", cfg.Encrypt, c.op, seen)
			}
			pollUntil(t, "the work has completed", func() bool { return len(a.got) == 1 }, a, b)
			if c := a.got[0]; c.Status != rdma.StatusOK {
				t.Errorf("encrypted %v: completes as %+v", cfg.Encrypt, c)
			}
		}
		if !bytes.Equal(back, text) {
			t.Errorf("encrypted %v: the wrong data was read", cfg.Encrypt)
		}
	}
}

// TestChangedBitEndsConnection changes each part of a record.
func TestChangedBitEndsConnection(t *testing.T) {
	for _, at := range []int{0, 1, 4, 30, -1} { // mark, zero, text, text, tag
		a, b := settled(t, encrypted)
		s := a.qp.(*queuePair).secret
		if err := s.seal(make([]byte, 60)); err != nil {
			t.Fatal(err)
		}
		record := s.out[s.sent:]
		record[(at+len(record))%len(record)] ^= 1
		if n, err := send(s.fd, record); n != len(record) || err != nil {
			t.Fatal(n, err)
		}
		pollUntil(t, "the connection has ended", func() bool { return b.qp.(*queuePair).state == broken }, b)
		if n, err := b.qp.PostSend([]rdma.SendWR{{ID: 3, Op: rdma.OpSend}}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		pollUntil(t, "the work has completed", func() bool { return len(b.got) == 1 }, b)
		if c := b.got[0]; c.ID != 3 || c.Status != rdma.StatusFault {
			t.Errorf("with byte %d changed the connection ends with %+v", at, c)
		}
	}
}

// TestRecords sends texts of many lengths from one secret to another, which reads them into
// buffers of many lengths. The keys change every few records.
func TestRecords(t *testing.T) {
	near, far := newBare(t, 1)
	secrets := bytes.Repeat([]byte("0123456789abcdef"), 2*secretLen/16)
	for i := range secrets {
		secrets[i] += byte(i)
	}
	a, err := newSecret(near.fd, true, secrets)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newSecret(far.fd, false, secrets)
	if err != nil {
		t.Fatal(err)
	}
	a.sealing.every, a.sealing.rekey, b.opening.every, b.opening.rekey = 3, 3, 3, 3
	if a.sealing.aead == a.opening.aead || bytes.Equal(a.sealing.secret, a.opening.secret) {
		t.Fatal("both directions have one key")
	}
	first := bytes.Clone(a.sealing.secret)
	for i, n := range []int{1, 60, directAbove, recordMax - 1, recordMax, recordMax + 1, 100_000, 20, 5 * recordMax} {
		for _, room := range []int{1 << 20, 3, 1000, recordMax, 50_000} {
			for _, short := range []bool{false, true} {
				text := bytes.Repeat([]byte{byte(i + room)}, n)
				text[n/2]++
				got := make([]byte, 0, n)
				pieces := []unix.Iovec{pieceOf(text[:n/3]), pieceOf(text[n/3:])}
				if n/3 == 0 {
					pieces = pieces[1:]
				}
				for sent := false; len(got) < n; {
					if !sent {
						k, err := a.gather(pieces)
						if sent = k == n; !sent && err != unix.EAGAIN {
							t.Fatal(k, err)
						}
					}
					part := make([]byte, room)
					k, err := b.read(part, short)
					if err != nil && err != unix.EAGAIN || k > room {
						t.Fatal(k, err)
					}
					got = append(got, part[:k]...)
				}
				if !bytes.Equal(got, text) || b.more() {
					t.Fatalf("%d bytes read by %d: equal %v, more %v", n, room, bytes.Equal(got, text), b.more())
				}
			}
		}
	}
	if a.sealing.count < 100 || bytes.Equal(first, a.sealing.secret) || !bytes.Equal(a.sealing.secret, b.opening.secret) {
		t.Errorf("after %d records the key has not changed, or differs", a.sealing.count)
	}
	// A record that is repeated is not the next one.
	if err := a.seal([]byte("once")); err != nil {
		t.Fatal(err)
	}
	record := a.out[a.sent:]
	near.send(record)
	near.send(record)
	part := make([]byte, 8)
	deadline := time.Now().Add(20 * time.Second)
	for total := 0; ; {
		n, err := b.read(part, true)
		if total += n; err != nil && err != unix.EAGAIN || time.Now().After(deadline) {
			if err != errRecord || total != 4 {
				t.Errorf("a repeated record: %d bytes, then %v", total, err)
			}
			break
		}
	}
}

// TestEncryptedStreamDoesNotAllocate writes and reads megabytes over an encrypted connection.
func TestEncryptedStreamDoesNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, op := range []rdma.Op{rdma.OpWrite, rdma.OpRead} {
		w := pairStream(t, encrypted, op, 1<<20, 8)
		w.step()
		// The runtime allocates if it starts a thread, which a pause of the machine may
		// cause. That does not recur.
		n := testing.AllocsPerRun(3, w.step)
		for attempt := 1; n > 0 && attempt < 3; attempt++ {
			n = testing.AllocsPerRun(3, w.step)
		}
		if n > 0 {
			t.Errorf("%v of 8 MB allocates %g times", op, n)
		}
	}
}

// TestEncryptionMustMatch: both ends must have the same setting and key; a device without
// a key cannot encrypt.
func TestEncryptionMustMatch(t *testing.T) {
	other := encrypted
	other.Key = []byte("another")
	for _, cfg := range []Config{{Key: encrypted.Key, NoThread: true}, other} {
		a, b := newEnd(t, encrypted), newEnd(t, cfg)
		if errA, errB := join(a.qp, b.qp, 300*time.Millisecond); errA == nil || errB == nil {
			t.Errorf("with a peer of %+v: %v, %v; both should fail", cfg, errA, errB)
		}
	}
	if d, err := Open(Config{Encrypt: true}); err == nil {
		t.Error("a device without a key can encrypt")
		_ = d.Close()
	}
}

// TestCloseDuringHandshake: a caller that proves the key and then stalls must not keep the
// device from closing.
func TestCloseDuringHandshake(t *testing.T) {
	e, peer := newEnd(t, encrypted), newEnd(t, encrypted)
	at, token, _, err := parseAddr(e.qp.Addr())
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, sockaddr(at)); err != nil {
		t.Fatal(err)
	}
	w := preferences{p2p: true, ready: readyWrite, ird: 1, ord: 1}
	req := w.request(encrypted.greeting(greetRequest, token, e.qp.Addr(), peer.qp.Addr()))
	frame, err := req.append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(fd, frame); err != nil {
		t.Fatal(err)
	}
	q := e.qp.(*queuePair)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) { // a real socket
		q.dev.mu.Lock()
		q.dev.serviceListenerLocked(time.Now())
		greeted := q.greeted
		q.dev.mu.Unlock()
		if greeted {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the caller is not greeted for 5 s")
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- e.dev.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(handshakeTimeout / 2):
		t.Error("a stalled handshake keeps the device from closing")
	}
}
