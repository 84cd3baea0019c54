package soft

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/muster-mpi/muster/rdma/internal/crc32c"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// The seal of a datagram: seal closes an outgoing datagram, and check verifies an
// incoming one before anything in it is trusted and before anything is allocated for
// it.
//
// The CRC is the one that T1 6.3 keeps. It is checked first because that is
// inexpensive, and because a wrong CRC means a bad cable, while a wrong tag behind a
// good CRC means a sender outside the job: the two are counted separately. The tag is
// AES-GCM under a key that only the processes of the job have. Its nonce is incarnation
// and serial number of the source, which never repeat. There are two kinds of seal,
// each with its own keys:
//
//   - Plain: additional authenticated data are the first bytes, which include the
//     whole header and that of DDP, and the CRC, which binds the rest. Nobody outside
//     the job can make a datagram or redirect one. An attacker who can change
//     datagrams in transit can change payload bytes, because a CRC is no secret. With
//     Config.NoCRC the CRC covers those first bytes alone, for peers on one host.
//   - Encrypted (Config.Encrypt): the datagram is readable up to the nonce. Everything
//     behind it is encrypted, acks too, and everything is authenticated. The CRC
//     covers the first bytes alone, because the tag reveals every changed bit behind
//     them. A datagram that was changed there counts as one from outside the job. The
//     key changes with the serial number (epoch.go).

const (
	crcLen  = 4
	tagLen  = 16
	sealLen = crcLen + tagLen

	nonceAt  = 12 // incarnation and serial number in the header
	serialAt = 18
	nonceLen = 12

	// coveredLen is how much of a plain datagram the tag covers besides the CRC: at
	// least the headers, and whole cipher blocks.
	coveredLen = 7*aes.BlockSize - crcLen

	lastSerial = 1<<48 - 1
)

var (
	errCorrupt  = errors.New("soft: the checksum of the datagram is wrong")
	errStranger = errors.New("soft: the datagram was not sealed with the key of this job")
	errSecrecy  = errors.New("soft: the datagram is encrypted and this device does not encrypt, or the other way round")
)

// keyring seals and checks the datagrams of one device.
type keyring struct {
	aead        cipher.AEAD // of plain datagrams
	epochs      epochs      // of encrypted ones
	encrypt     bool
	carried     bool         // the device below delivers intact datagrams: there is no seal
	tokens      cipher.Block // of packets of runs (run.go)
	pads        cipher.Block // of their CRCs
	flags       byte         // of every datagram: flagPartial, or 0
	incarnation incarnation
	serial      uint64 // of the last datagram

	// What the tag of a plain datagram covers, joined, for each direction.
	leaving, coming [coveredLen + crcLen]byte
	// The same of a run.
	leavingRun, comingRun [coveredLen + crcLen*reliable.MaxRun]byte
	token16               [aes.BlockSize]byte // for token
	nonce12               [nonceLen]byte      // for nonce
}

// newKeyring draws an incarnation and derives the key from the job's key, which may
// have any length except 0.
func newKeyring(jobKey []byte, encrypt bool) (*keyring, error) {
	if len(jobKey) == 0 {
		return nil, errors.New("soft: no job key is given: without one anyone could send to this process; give every process of the job the same random key")
	}
	block, err := newBlock(jobKey, "muster datagram 2, plain")
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("soft: make the authentication tag: %w", err)
	}
	k := &keyring{aead: aead, encrypt: encrypt, incarnation: newIncarnation()}
	if encrypt {
		k.flags = flagPartial
		if err := k.epochs.start(jobKey); err != nil {
			return nil, err
		}
	}
	if k.tokens, err = newBlock(jobKey, "muster datagram 2, tokens"); err != nil {
		return nil, err
	}
	if k.pads, err = newBlock(jobKey, "muster datagram 2, pads"); err != nil {
		return nil, err
	}
	return k, nil
}

// newBlock returns a cipher with a key derived from the job's key.
func newBlock(jobKey []byte, purpose string) (cipher.Block, error) {
	key, err := hkdf.Key(sha256.New, jobKey, nil, purpose, 16)
	if err != nil {
		return nil, fmt.Errorf("soft: derive the key %q from the job's key: %w", purpose, err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("soft: make the cipher for %q: %w", purpose, err)
	}
	return block, nil
}

// newIncarnation draws a number that no other device of the job has: among a thousand
// devices two are equal once in 2^29 jobs.
func newIncarnation() incarnation {
	var b [8]byte
	for {
		rand.Read(b[:]) // never fails: crypto/rand
		if l := incarnation(binary.BigEndian.Uint64(b[:]) >> 16); l != 0 {
			return l
		}
	}
}

// advance takes the next serial number.
func (k *keyring) advance() bool {
	if k.serial == lastSerial {
		return false
	}
	k.serial++
	return true
}

// seal closes a header and segment and appends CRC and tag. d must have room for them.
// Encryption is in place.
func (k *keyring) seal(d []byte) []byte {
	if k.carried {
		return d
	}
	if !k.encrypt {
		d[1] |= k.flags
		d = binary.LittleEndian.AppendUint32(d, k.sum(d))
		return k.aead.Seal(d, nonceOf(d), nil, coverOf(d, &k.leaving))
	}
	d[1] |= flagEncrypted | k.flags
	n := len(d)
	d = k.epochs.seal(d[:headerLen], nonceOf(d), d[headerLen:], d[:headerLen])
	d = append(d, 0, 0, 0, 0)
	copy(d[n+crcLen:], d[n:n+tagLen]) // the tag follows the CRC in both kinds
	binary.LittleEndian.PutUint32(d[n:], k.sum(d[:n]))
	return d
}

// sealGathered computes CRC and tag of a plain datagram in two pieces. The second piece
// is longer than what the tag covers.
func (k *keyring) sealGathered(front, bytes []byte, seal *[sealLen]byte) {
	front[1] |= k.flags
	n := copy(k.leaving[:coveredLen], front)
	copy(k.leaving[n:coveredLen], bytes)
	crc := k.sum(k.leaving[:coveredLen])
	if k.flags&flagPartial == 0 {
		crc = crc32c.Update(crc32c.Update(crc, front[n:]), bytes[coveredLen-n:])
	}
	binary.LittleEndian.PutUint32(seal[:], crc)
	copy(k.leaving[coveredLen:], seal[:crcLen])
	k.aead.Seal(seal[:crcLen], nonceOf(front), nil, k.leaving[:])
}

// check returns the header and segment of a datagram that was sealed with the job's key
// and is intact. Decryption is in place.
func (k *keyring) check(d []byte) ([]byte, error) {
	if k.carried {
		return d, nil
	}
	if len(d) < headerLen+sealLen {
		return nil, errShort
	}
	n := len(d) - sealLen
	if binary.LittleEndian.Uint32(d[n:]) != k.sum(d[:n]) {
		return nil, errCorrupt
	}
	if k.encrypt != (d[1]&flagEncrypted != 0) {
		return nil, errSecrecy
	}
	if !k.encrypt {
		if _, err := k.aead.Open(nil, nonceOf(d), d[n+crcLen:], coverOf(d[:n+crcLen], &k.coming)); err != nil {
			return nil, errStranger
		}
		return d[:n], nil
	}
	copy(d[n:], d[n+crcLen:])
	if !k.epochs.open(d[headerLen:headerLen], nonceOf(d), d[headerLen:n+tagLen], d[:headerLen]) {
		return nil, errStranger
	}
	return d[:n], nil
}

// sumsUp checks the CRC of a plain datagram whose payload, longer than what the tag
// covers, is separate. It leaves what the tag covers in coming, for tagged.
func (k *keyring) sumsUp(front, body, seal []byte) bool {
	n := copy(k.coming[:coveredLen], front)
	copy(k.coming[n:coveredLen], body)
	copy(k.coming[coveredLen:], seal[:crcLen])
	crc := crc32c.Checksum(k.coming[:coveredLen])
	if front[1]&flagPartial == 0 {
		crc = crc32c.Update(crc32c.Update(crc, front[n:]), body[coveredLen-n:])
	}
	return binary.LittleEndian.Uint32(seal) == crc
}

// tagged checks the tag of a plain datagram that is longer than what the tag covers,
// with that part in coming.
func (k *keyring) tagged(tag []byte) bool {
	_, err := k.aead.Open(nil, nonceOf(k.coming[:]), tag, k.coming[:])
	return err == nil
}

// sum returns the CRC of header and segment, or of their front alone.
func (k *keyring) sum(d []byte) uint32 {
	if d[1]&flagPartial != 0 {
		d = d[:min(len(d), coveredLen)]
	}
	return crc32c.Checksum(d)
}

func nonceOf(d []byte) []byte { return d[nonceAt : nonceAt+nonceLen] }

// coverOf returns what the tag covers of a plain datagram that ends with its CRC: all
// of a short one, front and end of a longer one.
func coverOf(d []byte, join *[coveredLen + crcLen]byte) []byte {
	if len(d) <= len(join) {
		return d
	}
	copy(join[:], d[:coveredLen])
	copy(join[coveredLen:], d[len(d)-crcLen:])
	return join[:]
}
