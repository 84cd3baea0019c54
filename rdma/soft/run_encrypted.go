package soft

import (
	"github.com/muster-mpi/muster/rdma/internal/crc32c"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
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
// The tag covers the index up to its CRC. The CRC covers the index and the serial number:
// the tag reveals every other changed bit, and a second pass would cost as much as a quarter
// of the cipher. The nonce is incarnation and serial number, as in a datagram (seal.go). The
// 16 bytes in front of the segment, which have the tag in a plain run, are not used.
//
// The cipher is the only pass over most of a message: encryptRun reads the user's memory and
// writes what the kernel sends, and putEncrypted reads what the kernel received and writes the
// target. The packet with the headers is copied.

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
	x, b := &l.index, d.outgoing.image[:0]
	x.flags |= flagEncrypted
	for i := range int(x.count) {
		at, from := len(b), len(b)+sealedAt
		b = b[:from]
		serial := d.serial()
		append48(b[at+indexLen:at+indexLen], serial)
		x.put((*[indexLen]byte)(b[at:]), i, crc32c.Checksum(b[at+indexLen:]))
		front, bytes := l.chunk(i)
		if len(front) > 0 {
			b = append(append(b, front...), bytes...)
			bytes = b[from:]
		}
		sealed := d.keys.epochs.seal(b[from:from], d.keys.nonce(d.keys.incarnation, serial), bytes, b[at:at+crcAt])
		b = b[:from+len(sealed)]
	}
	d.outgoing.image, l.data, l.body = l.data, b, nil
}

// nonce returns the nonce of a packet.
func (k *keyring) nonce(from incarnation, serial uint64) []byte {
	b := append48(k.nonce12[:0], uint64(from))
	return append48(b, serial)
}

// open decrypts packet b of a peer to dst, which has room for its chunk and may be the memory
// of the ciphertext.
func (k *keyring) open(dst []byte, from incarnation, b []byte) bool {
	return k.epochs.open(dst[:0], k.nonce(from, read48(b[indexLen:])), b[sealedAt:], b[:crcAt])
}

// intact reports whether the index and the serial number of packet b are as they were sent.
func (x *runIndex) intact(b []byte) bool { return crc32c.Checksum(b[indexLen:sealedAt]) == x.crc }

// wholeEncrypted checks whether b, datagrams that the kernel coalesced at length each, begins
// with all packets of a run that is the next segment of a peer. If so, it decrypts the first in
// place, and the rest is left to putEncrypted. It returns the length and the number of the
// packets, or the length of one.
func (d *Device) wholeEncrypted(b []byte, each int) (length, packets int) {
	var first, next runIndex
	alone := min(each, len(b))
	if _, ok := first.parse(b[:alone]); !ok || first.position != 0 || first.flags&flagEncrypted == 0 {
		return alone, 0
	}
	owner, known := d.incoming.tokens[first.token]
	if !known || d.pairs[owner.pair] == nil {
		return alone, 0
	}
	p := d.pairs[owner.pair].peers[owner.id]
	if p.barred || p.partials > 0 || p.Classify(first.sequence) != reliable.InOrder {
		return alone, 0
	}
	at := 0
	for i := range int(first.packets) {
		end := min(at+each, len(b))
		if _, ok := next.parse(b[at:end]); !ok || next.flags&flagEncrypted == 0 || !next.continues(&first, i) || !next.intact(b[at:end]) || p.serials.late(read48(b[at+indexLen:])) {
			return alone, 0
		}
		at = end
	}
	d.incoming.partFrom = d.peers.list[owner.id].incarnation
	if !d.keys.open(b[sealedAt:alone-tagLen], d.incoming.partFrom, b[:alone]) {
		return alone, 0
	}
	return at, int(first.packets)
}

// restore encrypts the first packet of a run again, as it was before wholeEncrypted.
func (d *Device) restore(b []byte) {
	text := b[sealedAt : len(b)-tagLen]
	nonce := d.keys.nonce(d.incoming.partFrom, read48(b[indexLen:]))
	d.keys.epochs.receiveKey(epochOf(nonce)).Seal(text[:0], nonce, text, b[:crcAt])
}

// putEncrypted is putRun for a run whose first packet is decrypted. A packet with a wrong tag
// leaves zeros in the target of the segment until it is sent again, and no completion reports
// them.
func (d *Device) putEncrypted(target []byte, s *slot, headers int) bool {
	target = target[copy(target, s.data[s.lo+headers:s.hi]):]
	for at := s.wire; at < s.n; at += s.wire {
		b := s.data[at:min(at+s.wire, s.n)]
		n := len(b) - sealedAt - tagLen
		if !d.keys.open(target[:n:n], d.incoming.partFrom, b) {
			s.spoiled = true
			return false
		}
		target = target[n:]
	}
	return true
}

// decryptPacket checks and decrypts packet b. A fresh one goes to its place in the slot.
func (d *Device) decryptPacket(s *slot, p *peer, x *runIndex, b []byte, at int, fresh bool) bool {
	if !x.intact(b) {
		d.drops.Corrupt++
		return false
	}
	serial, dst := read48(b[indexLen:]), d.outgoing.image
	if fresh {
		dst = s.data[at:]
	}
	if p.serials.late(serial) {
		d.drops.Replayed++
		return false
	}
	if !d.keys.open(dst, d.peers.list[p.id].incarnation, b) {
		d.drops.Strangers++
		return false
	}
	p.serials.fresh(serial)
	return true
}
