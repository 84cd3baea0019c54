package soft

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"testing"
)

// TestEpochKeys opens datagrams with keys that are computed as docs/reference/wire.md
// describes them, on both sides of a change of the key.
func TestEpochKeys(t *testing.T) {
	master, err := hkdf.Key(sha256.New, []byte("ours"), nil, "muster datagram 2, epochs", 16)
	if err != nil {
		t.Fatal(err)
	}
	k, peer := encryptingKeyring(t, "ours"), encryptingKeyring(t, "ours")
	keys := map[string]bool{}
	for _, serial := range []uint64{0, 1<<22 - 2, 1<<22 - 1, 2<<22 - 1, 1<<40 + 5, lastSerial - 1} {
		k.serial = serial
		d := sealed(k, "text")
		block, err := aes.NewCipher(master)
		if err != nil {
			t.Fatal(err)
		}
		key := binary.BigEndian.AppendUint64(make([]byte, 8, 16), (serial+1)>>22)
		block.Encrypt(key, key)
		keys[string(key)] = true
		if block, err = aes.NewCipher(key); err != nil {
			t.Fatal(err)
		}
		gcm, err := cipher.NewGCM(block)
		if err != nil {
			t.Fatal(err)
		}
		n := len(d) - sealLen
		text := append(bytes.Clone(d[headerLen:n]), d[n+crcLen:]...)
		if text, err = gcm.Open(nil, nonceOf(d), text, d[:headerLen]); err != nil || !bytes.HasSuffix(text, []byte("text")) {
			t.Errorf("serial number %#x: %q, %v", serial+1, text, err)
		}
		if got, err := peer.check(d); err != nil || !bytes.HasSuffix(got, []byte("text")) {
			t.Errorf("serial number %#x at the peer: %q, %v", serial+1, got, err)
		}
	}
	if len(keys) != 5 { // two of the serial numbers are in one epoch
		t.Errorf("there are %d keys, want 5", len(keys))
	}
}

// TestEpochsOfStrangers: serial numbers that somebody outside the job invents leave nothing
// behind, and peers in many epochs do not exceed the limit.
func TestEpochsOfStrangers(t *testing.T) {
	k, peer, stranger := encryptingKeyring(t, "ours"), encryptingKeyring(t, "ours"), encryptingKeyring(t, "another")
	for i := range uint64(100) {
		stranger.serial = i << epochBits
		if _, err := k.check(sealed(stranger, "hello")); !errors.Is(err, errStranger) {
			t.Fatalf("a stranger's datagram: %v", err)
		}
	}
	if len(k.epochs.known) != 1 || k.epochs.coming.number != 0 {
		t.Errorf("datagrams of strangers leave %d keys", len(k.epochs.known))
	}
	for i := range uint64(3 * maxEpochs) {
		for _, number := range []uint64{i, 0} { // one peer advances, another does not
			peer.serial = number << epochBits
			if _, err := k.check(sealed(peer, "hello")); err != nil {
				t.Fatalf("a datagram of epoch %d: %v", number, err)
			}
		}
		if len(k.epochs.known) > maxEpochs {
			t.Fatalf("%d keys are kept", len(k.epochs.known))
		}
	}
	// A datagram is not valid in another epoch.
	d := sealed(peer, "hello")
	d[serialAt] ^= 1
	n := len(d) - sealLen
	binary.LittleEndian.PutUint32(d[n:], k.sum(d[:n]))
	if _, err := k.check(d); !errors.Is(err, errStranger) {
		t.Errorf("a datagram that was moved to another epoch: %v", err)
	}
}

// TestEpochsDoNotAllocate alternates between two peers in different epochs.
func TestEpochsDoNotAllocate(t *testing.T) {
	k := encryptingKeyring(t, "ours")
	first, second := encryptingKeyring(t, "ours"), encryptingKeyring(t, "ours")
	second.serial = 5 << epochBits
	room := make([]byte, 0, 2048)
	var h header
	got := testing.AllocsPerRun(100, func() {
		for _, peer := range []*keyring{first, second} {
			h = header{kind: kindUnreliable}
			peer.stampHeader(&h)
			if _, err := k.check(peer.seal(append(h.append(room), "hello"...))); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got != 0 {
		t.Errorf("datagrams of two epochs allocate %v times", got)
	}
}
