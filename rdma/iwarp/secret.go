package iwarp

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// Encrypted connections after the handshake (tls.go). The stream consists of records:
//
//	off len
//	  0   1  0x4D
//	  1   1  0
//	  2   2  n, the length of the text, 1 to 16384
//	  4   n  ciphertext
//	  .  16  authentication tag of AES-128-GCM, which covers the first 4 bytes too
//
// They are not the records of TLS, which append a byte to the text before it is encrypted
// (RFC 8446 section 5.2), so that all of it must be copied. Here gather encrypts from the
// memory of the user to what is passed to the socket, and read decrypts to the memory that
// it is for (direct.go): the cipher is the only pass over long messages.
//
// Each direction has its own secret, from the exporter of the TLS session (RFC 8446 section
// 7.5), and from it a key and an IV. The nonce is the number of the record, which is not
// sent, xor the IV (RFC 8446 section 5.3): nonces that an attacker can predict would let one
// search find the key of any of many connections. Long before a key has encrypted as much as
// RFC 8446 section 5.5 permits, both ends derive the next secret.

const (
	recordMark   = 0x4D
	recordHeader = 4
	recordMax    = 16 << 10
	recordTag    = 16
	// recordBuffer has room for several records.
	recordBuffer = 8 * (recordHeader + recordMax + recordTag)
	// rekeyAfter is how many records a key encrypts.
	rekeyAfter = 1 << 22
	// exporterLabel names the secrets; they follow each other, the initiator's first.
	exporterLabel = "EXPORTER-muster-iwarp-records"
	secretLen     = sha256.Size
	recordKeyLen  = 16
	recordIVLen   = 12
)

var errRecord = errors.New("iwarp: the data on an encrypted connection is not what the peer has sent")

// recordCipher encrypts or decrypts what one end sends.
type recordCipher struct {
	aead   cipher.AEAD
	secret []byte
	count  uint64 // of records
	rekey  uint64 // count at which the next key begins
	every  uint64
	iv     [recordIVLen]byte
	nonce  [recordIVLen]byte
}

func newRecordCipher(secret []byte) (c recordCipher, err error) {
	c.secret, c.every, c.rekey = secret, rekeyAfter, rekeyAfter
	err = c.derive()
	return c, err
}

// derive makes the key and the IV that belong to the secret.
func (c *recordCipher) derive() error {
	key, err := hkdf.Expand(sha256.New, c.secret, "muster iwarp record key", recordKeyLen+recordIVLen)
	if err != nil {
		return err
	}
	copy(c.iv[:], key[recordKeyLen:])
	c.nonce = c.iv
	block, err := aes.NewCipher(key[:recordKeyLen])
	if err != nil {
		return err
	}
	c.aead, err = cipher.NewGCM(block)
	return err
}

// next returns the nonce of the next record.
func (c *recordCipher) next() ([]byte, error) {
	if c.count == c.rekey {
		var err error
		if c.secret, err = hkdf.Expand(sha256.New, c.secret, "muster iwarp next secret", secretLen); err != nil {
			return nil, err
		}
		if err = c.derive(); err != nil {
			return nil, err
		}
		c.rekey += c.every
	}
	binary.BigEndian.PutUint64(c.nonce[4:], binary.BigEndian.Uint64(c.iv[4:])^c.count)
	c.count++
	return c.nonce[:], nil
}

// secret is the encryption of one connection.
type secret struct {
	fd    conn
	out   []byte // records for the socket
	sent  int    // of out
	whole int    // bytes of frames that are in out
	given uint64 // bytes that the socket has accepted since the handshake

	raw    []byte // bytes [lo, hi) were received and not decrypted
	lo, hi int
	text   []byte // decrypted and not used, in raw
	full   bool   // the last read of the socket may have left something
	forged bool   // a record could not be decrypted

	sealing, opening recordCipher
}

// newSecret returns the encryption of a connection with secrets that both ends have.
func newSecret(fd conn, initiator bool, secrets []byte) (*secret, error) {
	s := &secret{fd: fd, raw: make([]byte, recordBuffer)}
	ours, theirs := secrets[:secretLen], secrets[secretLen:]
	if !initiator {
		ours, theirs = theirs, ours
	}
	var err error
	if s.sealing, err = newRecordCipher(ours); err == nil {
		s.opening, err = newRecordCipher(theirs)
	}
	if err != nil {
		return nil, fmt.Errorf("derive the keys of records: %w", err)
	}
	return s, nil
}

// gather is the package's gather for encrypted connections: the pieces are encrypted at
// once, and count as accepted when the socket has all of the result.
func (s *secret) gather(pieces []piece) (int, error) {
	if s.sent == len(s.out) {
		s.out, s.sent, s.whole = s.out[:0], 0, 0
		for i := range pieces {
			b := bytesOf(&pieces[i])
			if err := s.seal(b); err != nil {
				return 0, err
			}
			s.whole += len(b)
		}
	}
	for s.sent < len(s.out) {
		n, err := send(s.fd, s.out[s.sent:])
		if err != nil {
			return 0, err
		}
		s.sent += n
		s.given += uint64(n)
	}
	return s.whole, nil
}

// seal appends the records of a text to out.
func (s *secret) seal(text []byte) error {
	for len(text) > 0 {
		n := min(len(text), recordMax)
		nonce, err := s.sealing.next()
		if err != nil {
			return err
		}
		at := len(s.out)
		s.out = binary.BigEndian.AppendUint16(append(s.out, recordMark, 0), uint16(n))
		s.out = s.sealing.aead.Seal(s.out, nonce, text[:n], s.out[at:])
		text = text[n:]
	}
	return nil
}

// read is the package's read for encrypted connections. It returns what has arrived: if
// short is set, the next record, and those behind it that are short, so that a long text can
// be read to where it is for.
func (s *secret) read(b []byte, short bool) (total int, err error) {
	for len(b) > 0 {
		n := copy(b, s.text)
		if s.text = s.text[n:]; n == 0 {
			size, whole, err := s.recordSize()
			switch {
			case err != nil && total == 0:
				return 0, err
			case !whole && total > 0, whole && total > 0 && short && size >= directAbove:
				return total, nil
			case !whole:
				if got, err := s.fill(); err != nil || got == 0 {
					return 0, err
				}
				continue
			}
			if n, err = s.open(b, size); err != nil && total == 0 {
				return 0, err
			}
		}
		b, total = b[n:], total+n
	}
	return total, nil
}

// recordSize returns the length of the next record's text, and whether all of it is in raw.
func (s *secret) recordSize() (size int, whole bool, err error) {
	have := s.raw[s.lo:s.hi]
	if s.forged {
		return 0, false, errRecord
	}
	if len(have) < recordHeader {
		return 0, false, nil
	}
	size = int(binary.BigEndian.Uint16(have[2:]))
	if have[0] != recordMark || have[1] != 0 || size == 0 || size > recordMax {
		return 0, false, errRecord
	}
	return size, len(have) >= recordHeader+size+recordTag, nil
}

// fill reads the socket. Nothing in raw is in use but the beginning of a record.
func (s *secret) fill() (n int, err error) {
	s.hi = copy(s.raw, s.raw[s.lo:s.hi])
	s.lo = 0
	n, err = read(s.fd, s.raw[s.hi:])
	s.hi += max(n, 0)
	s.full = err == nil && s.hi == len(s.raw)
	return n, err
}

// open decrypts the next record to b, or in place if it does not fit. It returns the bytes
// in b.
func (s *secret) open(b []byte, size int) (int, error) {
	nonce, err := s.opening.next()
	if err != nil {
		s.forged = true // nothing behind it can be decrypted
		return 0, err
	}
	record := s.raw[s.lo : s.lo+recordHeader+size+recordTag]
	head, sealed := record[:recordHeader], record[recordHeader:]
	s.lo += len(record)
	dst := sealed[:0]
	if size <= len(b) {
		dst = b[:0:size]
	}
	text, err := s.opening.aead.Open(dst, nonce, sealed, head)
	if err != nil {
		s.forged = true
		return 0, errRecord
	}
	if size <= len(b) {
		return size, nil
	}
	n := copy(b, text)
	s.text = text[n:]
	return n, nil
}

// more reports whether something can be read without an event of the socket.
func (s *secret) more() bool {
	if len(s.text) > 0 || s.full {
		return true
	}
	_, whole, err := s.recordSize()
	return whole || err != nil
}
