package soft

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
)

// The keys of encrypted datagrams. What AES-GCM reveals about texts grows with the square of
// what one key has encrypted (RFC 8446 section 5.5, RFC 9001 section 6.6), and a job may send
// for weeks. So the serial number selects the key: all datagrams whose serial numbers agree
// above the lowest epochBits have one, an epoch's. A thousand devices encrypt at most 6 TB of
// packets of 1.4 KB with it, which an attacker tells from noise with a probability of 2^-52.
//
// The key is the number of the epoch, encrypted with a key that is used for nothing else. It
// is derived when a datagram needs it, and kept when a tag has shown that a peer has used it:
// somebody outside the job can cause work with invented serial numbers, but nothing is kept.

const (
	epochBits = 22
	// maxEpochs bounds the keys that are kept, of about 1 KB each. Devices send at different
	// rates, so those of a job are in different epochs.
	maxEpochs = 256
)

// epochKey is the key of an epoch.
type epochKey struct {
	number uint64
	aead   cipher.AEAD
}

// epochs has the keys of a device that encrypts.
type epochs struct {
	master          cipher.Block
	leaving, coming epochKey // the last one used in each direction
	known           map[uint64]cipher.AEAD
	block           [aes.BlockSize]byte // for derive
}

func epochOf(nonce []byte) uint64 { return read48(nonce[nonceLen-serialLen:]) >> epochBits }

// start derives the first key of both directions.
func (e *epochs) start(jobKey []byte) (err error) {
	if e.master, err = newBlock(jobKey, "muster datagram 2, epochs"); err != nil {
		return err
	}
	if e.leaving.aead, err = e.derive(0); err != nil {
		return fmt.Errorf("soft: make the cipher of datagrams: %w", err)
	}
	e.coming = e.leaving
	e.known = map[uint64]cipher.AEAD{0: e.leaving.aead}
	return nil
}

func (e *epochs) derive(number uint64) (cipher.AEAD, error) {
	clear(e.block[:])
	binary.BigEndian.PutUint64(e.block[8:], number)
	e.master.Encrypt(e.block[:], e.block[:])
	block, err := aes.NewCipher(e.block[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// seal encrypts text with the key of our epoch and appends it and its tag to dst.
func (e *epochs) seal(dst, nonce, text, covered []byte) []byte {
	if number := epochOf(nonce); number != e.leaving.number {
		aead, err := e.derive(number)
		if err != nil {
			panic("soft: the first key of an epoch could be derived, and another cannot: " + err.Error())
		}
		e.leaving = epochKey{number, aead}
	}
	return e.leaving.aead.Seal(dst, nonce, text, covered)
}

// open decrypts what a peer has sealed to dst, and reports whether its tag is valid.
func (e *epochs) open(dst, nonce, sealed, covered []byte) bool {
	number := epochOf(nonce)
	aead := e.receiveKey(number)
	if aead == nil {
		return false
	}
	if _, err := aead.Open(dst, nonce, sealed, covered); err != nil {
		return false
	}
	if number != e.coming.number {
		e.keep(number, aead)
	}
	return true
}

// receiveKey returns the key of a peer's epoch, nil if there is none.
func (e *epochs) receiveKey(number uint64) cipher.AEAD {
	if number == e.coming.number {
		return e.coming.aead
	}
	if aead := e.known[number]; aead != nil {
		return aead
	}
	aead, err := e.derive(number)
	if err != nil {
		return nil
	}
	return aead
}

// keep makes a key the one that is expected next.
func (e *epochs) keep(number uint64, aead cipher.AEAD) {
	e.coming = epochKey{number, aead}
	if e.known[number] != nil {
		return
	}
	if len(e.known) == maxEpochs {
		clear(e.known) // those in use return
	}
	e.known[number] = aead
}
