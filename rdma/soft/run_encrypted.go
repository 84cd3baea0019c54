package soft

import (
	"encoding/binary"

	"github.com/muster-mpi/muster/rdma/internal/crc32c"
)

// Runs of a device that encrypts. Each packet is encrypted by itself, so one that is sent
// again gets a new nonce, and no ciphertext is kept. Behind the index (run.go), in which
// 0x20 is set in the second byte:
//
//	off len
//	 22   6  serial number of the packet
//	 28   .  ciphertext of the bytes of the segment
//	  .  16  authentication tag
//
// The tag covers the index up to its CRC. The nonce is incarnation and serial number, as in
// a datagram (seal.go). The 16 bytes in front of the segment, which have the tag in a plain
// run, are not used.

const (
	serialLen    = 6
	sealedAt     = indexLen + serialLen
	encryptedLen = sealedAt - indexLen + tagLen // more than in a plain packet
)

// encrypted reports whether the packet is a run in data as the network has it.
func (l *packet) encrypted() bool {
	return l.index.packets > 0 && l.index.flags&flagEncrypted != 0
}

// wire returns the length of each packet of a run.
func (l *packet) wire() int {
	if l.encrypted() {
		return int(l.index.each) + indexLen + encryptedLen
	}
	return int(l.index.each) + indexLen
}

// encryptRun replaces the segment in a packet by the encrypted packets of its run.
func (d *Device) encryptRun(l *packet) {
	if d.image == nil {
		d.image = make([]byte, 0, maxDatagram)
	}
	x, b := &l.index, d.image[:0]
	x.flags |= flagEncrypted
	for i := range int(x.count) {
		at, from := len(b), len(b)+sealedAt
		b = b[:from]
		x.put((*[indexLen]byte)(b[at:]), i, 0)
		serial := d.serial()
		append48(b[at+indexLen:at+indexLen], serial)
		front, back := l.chunk(i)
		b = append(append(b, front...), back...)
		sealed := d.keys.aead.Seal(b[from:from], d.keys.nonce(d.keys.incarnation, serial), b[from:], b[at:at+crcAt])
		b = b[:from+len(sealed)]
		binary.LittleEndian.PutUint32(b[at+crcAt:], crc32c.Checksum(b[at+indexLen:])^crc32c.Checksum(b[at:at+crcAt]))
	}
	d.image, l.data, l.body = l.data, b, nil
}

// nonce returns the nonce of a packet.
func (k *keyring) nonce(from incarnation, serial uint64) []byte {
	b := append48(k.nonce12[:0], uint64(from))
	return append48(b, serial)
}

// decryptPacket checks and decrypts packet b. A fresh one goes to its place in the slot.
func (d *Device) decryptPacket(s *slot, p *peer, x *runIndex, b []byte, at int, fresh bool) bool {
	k := d.keys
	if crc32c.Checksum(b[indexLen:]) != x.crc {
		d.drops.Corrupt++
		return false
	}
	serial, dst := read48(b[indexLen:]), d.image[:0]
	if fresh {
		dst = s.data[at:at]
	}
	if p.serials.late(serial) {
		d.drops.Replayed++
		return false
	}
	if _, err := k.aead.Open(dst, k.nonce(d.peers[p.id].incarnation, serial), b[sealedAt:], b[:crcAt]); err != nil {
		d.drops.Strangers++
		return false
	}
	p.serials.fresh(serial)
	return true
}
