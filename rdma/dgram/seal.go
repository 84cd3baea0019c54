package dgram

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The seal of a datagram: seal closes one that leaves, check looks at one that
// came, before anything in it is believed and before anything is allocated for it.
//
// The CRC is the one that T1 6.3 keeps. It is checked first because it is cheap and
// because a wrong one means a bad cable, while a wrong tag behind a good CRC means a
// stranger: the two are counted apart. The tag is AES-GCM under a key that only the
// processes of the job have. Its nonce is incarnation and serial number of the source, which
// never come twice. There are two seals, each with a key of its own:
//
//   - A plain datagram is authenticated as additional data: its first bytes, in which
//     the whole header and that of DDP have room, and the CRC, which binds the rest.
//     Nobody outside the job can make a datagram or send one elsewhere. Who can change
//     datagrams on their way can change bytes of the user, because a CRC is no secret.
//     With Config.NoCRC the CRC covers those first bytes alone: that is for hosts that
//     talk to themselves.
//   - An encrypted one (Config.Encrypt) is readable as far as the nonce goes. All behind
//     is encrypted, acks too, and everything is authenticated. The CRC is over what
//     is on the wire.

const (
	crcLen  = 4
	tagLen  = 16
	sealLen = crcLen + tagLen

	nonceAt  = 12 // incarnation and serial number in the header
	nonceLen = 12

	// coveredLen is how much of a plain datagram the tag covers beside the CRC: no less
	// than the headers, and whole blocks of the cipher.
	coveredLen = 7*aes.BlockSize - crcLen

	lastSerial = 1<<48 - 1
)

var (
	errCorrupt  = errors.New("dgram: the checksum of the datagram is wrong")
	errStranger = errors.New("dgram: the datagram was not sealed with the key of this job")
	errSecrecy  = errors.New("dgram: the datagram is encrypted and this device does not encrypt, or the other way round")
)

// keyring seals and checks the datagrams of one device.
type keyring struct {
	aead        cipher.AEAD
	encrypt     bool
	crc         *crc32.Table
	flags       byte // of every datagram: flagPartial, or none
	incarnation incarnation
	serial      uint64 // of the last datagram

	// What the tag of a plain datagram covers, joined: one for each direction.
	leaving, coming [coveredLen + crcLen]byte
}

// newKeyring draws a incarnation and takes the job's key, which may be of any length but
// not empty.
func newKeyring(jobKey []byte, encrypt bool) (*keyring, error) {
	if len(jobKey) == 0 {
		return nil, errors.New("dgram: no job key is given: without one anybody could send to this process; give every process of the job the same random key")
	}
	purpose := "muster datagram 2, plain"
	if encrypt {
		purpose = "muster datagram 2, encrypted"
	}
	key, err := hkdf.Key(sha256.New, jobKey, nil, purpose, 16)
	if err != nil {
		return nil, fmt.Errorf("dgram: derive the key for datagrams from the job's key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("dgram: make the cipher for datagrams: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("dgram: make the authentication tag: %w", err)
	}
	return &keyring{aead: aead, encrypt: encrypt, crc: crc32.MakeTable(crc32.Castagnoli), incarnation: newIncarnation()}, nil
}

// newIncarnation draws a number that no other device of the job has: among a thousand devices
// two are alike once in 2^29 jobs.
func newIncarnation() incarnation {
	var b [8]byte
	for {
		rand.Read(b[:]) // never fails: crypto/rand
		if l := incarnation(binary.BigEndian.Uint64(b[:]) >> 16); l != 0 {
			return l
		}
	}
}

// stampHeader gives a header the incarnation and the next serial number. It is false when
// the numbers are used up; a device then needs a new incarnation.
func (k *keyring) stampHeader(h *header) bool {
	if k.serial == lastSerial {
		return false
	}
	k.serial++
	h.fromIncarnation, h.serial = k.incarnation, k.serial
	return true
}

// seal closes a header and segment, and appends CRC and tag. There must be room for
// them. An encrypted one is encrypted where it is.
func (k *keyring) seal(d []byte) []byte {
	if !k.encrypt {
		d[1] |= k.flags
		d = binary.LittleEndian.AppendUint32(d, k.sum(d))
		return k.aead.Seal(d, nonceOf(d), nil, covered(d, &k.leaving))
	}
	d[1] |= flagEncrypted | k.flags
	n := len(d)
	d = k.aead.Seal(d[:headerLen], nonceOf(d), d[headerLen:], d[:headerLen])
	d = append(d, 0, 0, 0, 0)
	copy(d[n+crcLen:], d[n:n+tagLen]) // the tag stands behind the CRC in both
	binary.LittleEndian.PutUint32(d[n:], k.sum(d[:n]))
	return d
}

// sealGathered makes CRC and tag of a plain datagram that is in two pieces. The second is
// longer than what the tag covers.
func (k *keyring) sealGathered(front, bytes []byte, seal *[sealLen]byte) {
	front[1] |= k.flags
	n := copy(k.leaving[:coveredLen], front)
	copy(k.leaving[n:coveredLen], bytes)
	crc := k.sum(k.leaving[:coveredLen])
	if k.flags&flagPartial == 0 {
		crc = crc32.Update(crc32.Update(crc, k.crc, front[n:]), k.crc, bytes[coveredLen-n:])
	}
	binary.LittleEndian.PutUint32(seal[:], crc)
	copy(k.leaving[coveredLen:], seal[:crcLen])
	k.aead.Seal(seal[:crcLen], nonceOf(front), nil, k.leaving[:])
}

// check gives the header and segment of a datagram that was sealed with the job's
// key and came unharmed. An encrypted one is decrypted where it is.
func (k *keyring) check(d []byte) ([]byte, error) {
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
		if _, err := k.aead.Open(nil, nonceOf(d), d[n+crcLen:], covered(d[:n+crcLen], &k.coming)); err != nil {
			return nil, errStranger
		}
		return d[:n], nil
	}
	copy(d[n:], d[n+crcLen:])
	if _, err := k.aead.Open(d[headerLen:headerLen], nonceOf(d), d[headerLen:n+tagLen], d[:headerLen]); err != nil {
		return nil, errStranger
	}
	return d[:n], nil
}

// sumsUp checks the CRC of a plain datagram of which the bytes of the user, longer than
// what the tag covers, are apart. It leaves what the tag covers for tagged.
func (k *keyring) sumsUp(front, body, seal []byte) bool {
	n := copy(k.coming[:coveredLen], front)
	copy(k.coming[n:coveredLen], body)
	copy(k.coming[coveredLen:], seal[:crcLen])
	crc := crc32.Checksum(k.coming[:coveredLen], k.crc)
	if front[1]&flagPartial == 0 {
		crc = crc32.Update(crc32.Update(crc, k.crc, front[n:]), k.crc, body[coveredLen-n:])
	}
	return binary.LittleEndian.Uint32(seal) == crc
}

// tagged checks the tag of a plain datagram, longer than what the tag covers, of which that
// is in coming.
func (k *keyring) tagged(tag []byte) bool {
	_, err := k.aead.Open(nil, nonceOf(k.coming[:]), tag, k.coming[:])
	return err == nil
}

// sum is the CRC of header and segment, or of their front alone.
func (k *keyring) sum(d []byte) uint32 {
	if d[1]&flagPartial != 0 {
		d = d[:min(len(d), coveredLen)]
	}
	return crc32.Checksum(d, k.crc)
}

func nonceOf(d []byte) []byte { return d[nonceAt : nonceAt+nonceLen] }

// covered is what the tag covers of a plain datagram that ends with its CRC: all of a
// short one, front and end of a longer one.
func covered(d []byte, join *[coveredLen + crcLen]byte) []byte {
	if len(d) <= len(join) {
		return d
	}
	copy(join[:], d[:coveredLen])
	copy(join[coveredLen:], d[len(d)-crcLen:])
	return join[:]
}
