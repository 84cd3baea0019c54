package soft

import (
	"bytes"
	"errors"
	"testing"

	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Properties of the two seals beyond those of the plain one in wire_test.go.

func encryptingKeyring(t testing.TB, key string) *keyring {
	t.Helper()
	k, err := newKeyring([]byte(key), true)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestTagCoversTheHeaders: the tag of a plain datagram must cover where its payload
// goes.
func TestTagCoversTheHeaders(t *testing.T) {
	if headers := longestHeader + ddp.UntaggedLen; coveredLen < headers {
		t.Fatalf("the tag covers %d bytes, and the headers may have %d", coveredLen, headers)
	}
	k := testKeyring(t, "ours")
	d := sealed(k, string(bytes.Repeat([]byte("x"), 1000)))
	for i := range d[:coveredLen] {
		bad := bytes.Clone(d)
		bad[i] ^= 1
		n := len(bad) - sealLen
		good := k.seal(bytes.Clone(bad[:n])) // a forger can compute the CRC
		copy(bad[n:n+crcLen], good[n:])
		if _, err := k.check(bad); !errors.Is(err, errStranger) {
			t.Fatalf("byte %d and the CRC changed: %v", i, err)
		}
	}
}

func TestEncryptedSeal(t *testing.T) {
	ours, peerKeys, stranger := encryptingKeyring(t, "ours"), encryptingKeyring(t, "ours"), encryptingKeyring(t, "theirs")
	for _, size := range []int{0, 1, 15, 16, 17, coveredLen, 5000} {
		text := bytes.Repeat([]byte("secret"), size/6+1)[:size]
		d := sealed(peerKeys, string(text))
		if size >= 15 && bytes.Contains(d, text[:15]) {
			t.Fatalf("the text is readable in the datagram: %x", d)
		}
		content, err := ours.check(bytes.Clone(d))
		if err != nil || !bytes.Equal(content[headerLen:], text) {
			t.Fatalf("%d bytes are not restored: %v", size, err)
		}
		if _, err := ours.check(sealed(stranger, string(text))); !errors.Is(err, errStranger) {
			t.Errorf("%d bytes with another key: %v", size, err)
		}
	}
	d := sealed(peerKeys, "hello, this is for you alone")
	for i := range d[:len(d)-sealLen] {
		bad := bytes.Clone(d)
		bad[i] ^= 0x40
		if _, err := ours.check(bytes.Clone(bad)); !errors.Is(err, errCorrupt) {
			t.Errorf("a change in byte %d: %v", i, err)
		}
		// A forger corrects the CRC.
		n := len(bad) - sealLen
		plain := testKeyring(t, "any key").seal(bytes.Clone(bad[:n]))
		copy(bad[n:n+crcLen], plain[n:])
		if _, err := ours.check(bad); !errors.Is(err, errStranger) {
			t.Errorf("a change in byte %d with the right CRC: %v", i, err)
		}
	}
	for n := range d {
		if _, err := ours.check(bytes.Clone(d[:n])); err == nil {
			t.Errorf("a datagram truncated to %d bytes is accepted", n)
		}
	}
}

// TestEncryptionMustAgree: an encrypting device accepts no plain datagram.
func TestEncryptionMustAgree(t *testing.T) {
	encrypts, plain := encryptingKeyring(t, "ours"), testKeyring(t, "ours")
	if _, err := encrypts.check(sealed(plain, "open")); !errors.Is(err, errSecrecy) {
		t.Errorf("a plain datagram at an encrypting device: %v", err)
	}
	if _, err := plain.check(sealed(encrypts, "secret")); !errors.Is(err, errSecrecy) {
		t.Errorf("an encrypted datagram at a plain device: %v", err)
	}
	// Setting the flag is not enough: the keys differ.
	d := sealed(plain, "open")
	d[1] |= flagEncrypted
	n := len(d) - sealLen
	copy(d[n:n+crcLen], testKeyring(t, "ours").seal(bytes.Clone(d[:n]))[n:])
	if _, err := encrypts.check(d); !errors.Is(err, errStranger) {
		t.Errorf("a plain datagram that is marked as encrypted: %v", err)
	}
}

func TestEncryptingAllocatesNothing(t *testing.T) {
	k := encryptingKeyring(t, "ours")
	room := make([]byte, 0, 2048)
	h := header{kind: kindUnreliable}
	payload := make([]byte, 1400)
	got := testing.AllocsPerRun(100, func() {
		k.stampHeader(&h)
		if _, err := k.check(k.seal(append(h.append(room), payload...))); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("encrypting and decrypting a datagram allocates %v times", got)
	}
}

// BenchmarkSeal measures sealing and checking a datagram with the two seals.
func BenchmarkSeal(b *testing.B) {
	for _, v := range []struct {
		name    string
		encrypt bool
	}{{"plain", false}, {"encrypted", true}} {
		for _, size := range []struct {
			name string
			n    int
		}{{"64", 64}, {"1400", 1400}, {"16384", 16384}} {
			b.Run(v.name+"-"+size.name, func(b *testing.B) {
				k, err := newKeyring([]byte("ours"), v.encrypt)
				if err != nil {
					b.Fatal(err)
				}
				h := header{kind: kindUnreliable}
				room := make([]byte, size.n, size.n+200)
				b.SetBytes(int64(size.n))
				for b.Loop() {
					k.stampHeader(&h)
					h.append(room[:0])
					if _, err := k.check(k.seal(room[:size.n])); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// stampHeader sets incarnation and next serial number. It returns false when the serial
// numbers are exhausted; the device then needs a new incarnation.
func (k *keyring) stampHeader(h *header) bool {
	if !k.advance() {
		return false
	}
	h.fromIncarnation, h.serial = k.incarnation, k.serial
	return true
}
