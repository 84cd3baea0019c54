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
// The CRC is the one that T1 6.3 keeps. It comes first because it is cheap and
// because a wrong one means a bad cable, while a wrong tag behind a good CRC means a
// stranger: the two are counted apart. The tag is AES-GCM over the datagram as
// additional data, under a key that only the processes of the job have. Its nonce
// is life and serial number of the source, which never come twice.

const (
	crcLen  = 4
	tagLen  = 16
	sealLen = crcLen + tagLen

	nonceAt  = 12 // life and serial number in the header
	nonceLen = 12

	lastSerial = 1<<48 - 1
)

var (
	errCorrupt  = errors.New("dgram: the checksum of the datagram is wrong")
	errStranger = errors.New("dgram: the datagram was not sealed with the key of this job")
)

// keyring seals and checks the datagrams of one device.
type keyring struct {
	tag    cipher.AEAD
	crc    *crc32.Table
	life   life
	serial uint64 // of the last datagram
}

// newKeyring draws a life and takes the job's key, which may be of any length but
// not empty.
func newKeyring(jobKey []byte) (*keyring, error) {
	if len(jobKey) == 0 {
		return nil, errors.New("dgram: no job key is given: without one anybody could send to this process; give every process of the job the same random key")
	}
	key, err := hkdf.Key(sha256.New, jobKey, nil, "muster datagram 1", 16)
	if err != nil {
		return nil, fmt.Errorf("dgram: derive the key for datagrams from the job's key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("dgram: make the cipher for the authentication tag: %w", err)
	}
	tag, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("dgram: make the authentication tag: %w", err)
	}
	return &keyring{tag: tag, crc: crc32.MakeTable(crc32.Castagnoli), life: drawLife()}, nil
}

func drawLife() life {
	var b [8]byte
	for {
		rand.Read(b[:]) // never fails: crypto/rand
		if l := life(binary.BigEndian.Uint64(b[:]) >> 16); l != 0 {
			return l
		}
	}
}

// stampHeader gives a header the life and the next serial number. It is false when
// the numbers are used up; a device then needs a new life.
func (k *keyring) stampHeader(h *header) bool {
	if k.serial == lastSerial {
		return false
	}
	k.serial++
	h.fromLife, h.serial = k.life, k.serial
	return true
}

// seal appends CRC and tag to a header and segment. There must be room for them.
func (k *keyring) seal(d []byte) []byte {
	d = binary.LittleEndian.AppendUint32(d, crc32.Checksum(d, k.crc))
	return k.tag.Seal(d, d[nonceAt:nonceAt+nonceLen], nil, d)
}

// check gives the header and segment of a datagram that was sealed with the job's
// key and came unharmed.
func (k *keyring) check(d []byte) ([]byte, error) {
	if len(d) < headerLen+sealLen {
		return nil, errShort
	}
	sealed := d[:len(d)-tagLen]
	content := sealed[:len(sealed)-crcLen]
	if binary.LittleEndian.Uint32(sealed[len(content):]) != crc32.Checksum(content, k.crc) {
		return nil, errCorrupt
	}
	if _, err := k.tag.Open(nil, d[nonceAt:nonceAt+nonceLen], d[len(sealed):], sealed); err != nil {
		return nil, errStranger
	}
	return content, nil
}
