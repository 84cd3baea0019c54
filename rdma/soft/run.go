package soft

import (
	"encoding/binary"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma/internal/crc32c"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// Long segments on Ethernet: a segment longer than a datagram has one header, one DDP
// header and one authentication tag, which is in front. The kernel cuts it into
// datagrams of one length (UDP_SEGMENT), the packets of its run. An index in front of
// each identifies it, so that a packet that arrives alone is of use, and only lost ones
// are sent again:
//
//	off len
//	  0   1  version (high four bits: 2) and kind 6
//	  1   1  0x01 ack requested now, 0x02 sent alone, 0x1C path, 0x20 encrypted,
//	         0x80 the ack may be delayed
//	  2   1  position of the packet in its run
//	  3   1  packets of the run
//	  4   4  token
//	  8   4  packet number
//	 12   4  data sequence
//	 16   2  bytes of the segment in each packet but the last
//	 18   4  CRC32C of the bytes that follow, without the tag, xor that of the 18 bytes before,
//	         xor a pad
//	 22   .  bytes of the segment
//
// The tag covers the headers and all CRCs, and not the rest of the indexes. The token is
// made with the job's key for the two queue pairs and a direction. It finds the peer, and
// without it nothing is allocated for a packet. The pad is made with another key from
// token, path, sequence and packet number, for a run that of its first packet. So nobody
// outside the job can make a packet with a number that was not sent, which would appear in
// acks and stop the sender. Somebody who can read the packets can make another one with
// the same number, and so spoil a segment that arrives in single packets. The tag reveals
// that, and the segment is sent again.
//
// The runs of a device that encrypts are those of run_encrypted.go.

const (
	indexLen = 22
	crcAt    = 18
	// runBytes keeps a run below the maximum length of an IP packet.
	runBytes = 65000
	// What a segment has besides its part of the message and an ack.
	taggedOverhead   = tagLen + headerLen + numberedLen + ddp.TaggedLen
	untaggedOverhead = tagLen + headerLen + numberedLen + ddp.UntaggedLen
)

// runIndex is the index of a packet, or of the first of several.
type runIndex struct {
	flags    byte
	position uint8
	packets  uint8 // of the run; 0: not one
	count    uint8 // packets to send
	each     uint16
	token    uint32
	number   reliable.Number
	sequence reliable.Sequence
	pad      uint32 // of the packets to send
	crc      uint32 // of the bytes behind a received one, xor its pad
}

// put encodes the index of the packet i after the first.
func (x *runIndex) put(b *[indexLen]byte, i int, crc uint32) {
	b[0], b[1] = version<<4|byte(kindRun), x.flags
	if i+1 < int(x.count) {
		b[1] &^= flagUrgent // the last one requests the ack
	}
	b[2], b[3] = x.position+uint8(i), x.packets
	binary.BigEndian.PutUint32(b[4:], x.token)
	binary.BigEndian.PutUint32(b[8:], uint32(x.number)+uint32(i))
	binary.BigEndian.PutUint32(b[12:], uint32(x.sequence))
	binary.BigEndian.PutUint16(b[16:], x.each)
	binary.LittleEndian.PutUint32(b[crcAt:], crc^x.pad^crc32c.Checksum(b[:crcAt]))
}

// parse decodes an index and returns the bytes behind it.
func (x *runIndex) parse(b []byte) (chunk []byte, ok bool) {
	if !isRun(b) || len(b) <= indexLen {
		return nil, false
	}
	*x = runIndex{
		flags: b[1], position: b[2], packets: b[3], count: 1, each: binary.BigEndian.Uint16(b[16:]),
		token: binary.BigEndian.Uint32(b[4:]), number: reliable.Number(binary.BigEndian.Uint32(b[8:])), sequence: reliable.Sequence(binary.BigEndian.Uint32(b[12:])),
		crc: binary.LittleEndian.Uint32(b[crcAt:]) ^ crc32c.Checksum(b[:crcAt]),
	}
	chunk = b[indexLen:]
	if x.flags&flagEncrypted != 0 {
		if len(b) <= sealedAt+tagLen {
			return nil, false
		}
		chunk = b[sealedAt : len(b)-tagLen]
	}
	last := x.position+1 == x.packets
	return chunk, x.packets >= 2 && x.packets <= reliable.MaxRun && x.position < x.packets && int(x.each)*int(x.packets) <= maxDatagram &&
		(last || len(chunk) == int(x.each)) && len(chunk) <= int(x.each)
}

// continues reports whether the packet is number i of the run that begins with another.
func (x *runIndex) continues(first *runIndex, i int) bool {
	return int(x.position) == i && (x.flags^first.flags)&(pathMask|flagLone) == 0 && x.sequence == first.sequence && x.number == first.number+reliable.Number(i) && x.token == first.token && x.packets == first.packets
}

// path returns the path of the packet.
func (x *runIndex) path() uint8 { return x.flags & pathMask >> pathShift }

// ackMode returns how soon an ack is needed.
func (x *runIndex) ackMode() reliable.AckMode {
	return (&header{urgent: x.flags&flagUrgent != 0, delayAck: x.flags&flagDelayAck != 0}).ackMode()
}

// isRun reports whether a datagram is a packet of a run.
func isRun(b []byte) bool { return len(b) > 0 && b[0] == version<<4|byte(kindRun) }

// runParams returns how the device makes segments.
func runParams(datagram, mss int, runs, encrypt bool) reliable.Params {
	p := reliable.Params{Single: mss, MaxRun: 1, AckEvery: ackEvery, AckDelay: ackDelay, LongAckDelay: longAckDelay}
	if runs {
		p.MaxRun, p.Each = min(runBytes/datagram, reliable.MaxRun), datagram-indexLen
		if encrypt {
			p.Each -= encryptedLen
		}
	}
	return p
}

// token returns the token of packets from one queue pair to another.
func (k *keyring) token(from incarnation, fromPair uint16, to incarnation, toPair uint16) uint32 {
	b := &k.token16
	binary.BigEndian.PutUint64(b[:], uint64(from)<<16|uint64(fromPair))
	binary.BigEndian.PutUint64(b[8:], uint64(to)<<16|uint64(toPair))
	k.tokens.Encrypt(b[:], b[:])
	return max(binary.BigEndian.Uint32(b[:]), 1)
}

// pad returns what the CRCs of the packets of a run are masked with, or that of a packet
// which is sent alone.
func (k *keyring) pad(x *runIndex) uint32 {
	b, base, lone := &k.token16, uint32(x.number), x.flags&flagLone != 0
	b[12], b[13], b[14], b[15] = x.packets, x.position, x.flags&(pathMask|flagLone), 0
	if !lone {
		base, b[13] = base-uint32(x.position), 0
	}
	binary.BigEndian.PutUint32(b[:], x.token)
	binary.BigEndian.PutUint32(b[4:], base)
	binary.BigEndian.PutUint32(b[8:], uint32(x.sequence))
	k.pads.Encrypt(b[:], b[:])
	return binary.BigEndian.Uint32(b[:])
}

// writeRun makes a packet of a segment with several packets, or of one that is lost.
func (q *pair) writeRun(l *packet, p *peer, seg *transmission, on int) {
	d, a := q.dev, &q.dev.peers.list[p.id]
	if seg.Lone {
		if !q.repeatRun(l, p, seg, on) {
			return
		}
	} else {
		q.writeSegment(l, p, seg, on)
	}
	x := &l.index
	*x = runIndex{
		flags:   uint8(on) << pathShift,
		packets: uint8(seg.Packets), count: uint8(seg.Packets), each: uint16(d.outgoing.windowPool.Each),
		token: d.keys.token(d.keys.incarnation, q.number, a.incarnation, a.pair), number: seg.Number, sequence: seg.Sequence,
	}
	if seg.Urgent {
		x.flags |= flagUrgent
	}
	if seg.DelayAck {
		x.flags |= flagDelayAck
	}
	if seg.Lone && (seg.Position > 0 || d.keys.encrypt) {
		x.position, x.count = uint8(seg.Position), 1
	}
	switch {
	case d.keys.encrypt:
		if !seg.Lone {
			seg.Kept.Length = copy(seg.Kept.Bytes[:], l.data)
		}
		d.encryptRun(l)
		return
	case seg.Lone:
		x.flags |= flagLone
	}
	if x.pad = d.keys.pad(x); x.position > 0 {
		l.sum()
		return
	}
	if seg.Lone {
		append48(l.data[tagLen+serialAt:tagLen+serialAt], d.serial()) // a nonce is used once
	}
	l.sum()
	d.keys.tagRun(l)
	seg.Kept.Length = copy(seg.Kept.Bytes[:], l.data)
	if seg.Lone {
		x.count = 1
	}
}

// repeatRun restores a segment as it was sealed, for a retransmission of one packet. The
// first packet gets a new tag, because the memory may have changed: the peer then has
// dropped the segment, whose CRCs did not match the tag. If the source of a response is
// gone, it makes a refusal instead and returns false: a segment in one datagram, which
// replaces the packets that have arrived.
func (q *pair) repeatRun(l *packet, p *peer, seg *transmission, on int) bool {
	d, m := q.dev, &seg.Message.Info
	var bytes []byte
	if m.role == roleResponse {
		mem, fault := d.table.Source(domain, streamOf(p), m.source, m.from+uint64(seg.Offset), uint64(seg.Length))
		if fault != ddp.NoFault {
			q.writeSegment(l, p, seg, on)
			return false
		}
		bytes = mem
	} else {
		at := max(seg.Offset-m.headLen, 0)
		bytes = m.body.Bytes()[at : seg.Offset+seg.Length-m.headLen]
	}
	d.address(l, p.id, on)
	l.addressKnown = p.AddressKnown()
	l.data = append(l.data[:0], seg.Kept.Bytes[:seg.Kept.Length]...)
	l.body = toRepeat(bytes)
	return true
}

// chunk returns the bytes of the packet i after the first to send, in two pieces.
func (l *packet) chunk(i int) (front, back []byte) {
	from := (int(l.index.position) + i) * int(l.index.each)
	to, n, all := from+int(l.index.each), len(l.data), len(l.data)+len(l.body)
	return l.data[min(from, n):min(to, n)], l.body[min(max(from, n), all)-n : min(max(to, n), all)-n]
}

// sum computes the CRCs of the packets to send.
func (l *packet) sum() {
	for i := range int(l.index.count) {
		front, back := l.chunk(i)
		if l.index.position == 0 && i == 0 {
			front = front[tagLen:]
		}
		l.crcs[i] = crc32c.Update(crc32c.Checksum(front), back)
	}
}

// tagRun writes the tag of a segment with the CRCs of all its packets.
func (k *keyring) tagRun(l *packet) {
	n := copy(k.leavingRun[:coveredLen], l.data[tagLen:])
	copy(k.leavingRun[n:coveredLen], l.body)
	end := coveredLen
	for _, crc := range l.crcs[:l.index.packets] {
		binary.LittleEndian.PutUint32(k.leavingRun[end:], crc)
		end += crcLen
	}
	k.aead.Seal(l.data[:0], nonceOf(k.leavingRun[:]), nil, k.leavingRun[:end])
}

// listCRC records the CRC of packet i of a segment that is checked.
func (k *keyring) listCRC(i int, crc uint32) {
	binary.LittleEndian.PutUint32(k.comingRun[coveredLen+crcLen*i:], crc)
}

func (k *keyring) listedCRC(i int) uint32 {
	return binary.LittleEndian.Uint32(k.comingRun[coveredLen+crcLen*i:])
}

// checkRun checks the tag of a run of that many packets, whose CRCs listCRC has recorded.
// front begins with the tag; what follows is returned.
func (k *keyring) checkRun(front []byte, packets int) ([]byte, error) {
	if len(front) < tagLen+coveredLen {
		return nil, errShort
	}
	if k.encrypt { // each of the packets has been checked
		return front[tagLen:], nil
	}
	copy(k.comingRun[:coveredLen], front[tagLen:])
	if _, err := k.aead.Open(nil, nonceOf(k.comingRun[:]), front[:tagLen], k.comingRun[:coveredLen+crcLen*packets]); err != nil {
		return nil, errStranger
	}
	return front[tagLen:], nil
}

// maxIndexes is how many packets of runs are sent in one system call.
const maxIndexes = 4 * reliable.MaxRun

// toRepeat returns what to send for a retransmission. The peer may already have the
// segment, with only the ack lost. Then it may have notified the owner of the memory by
// another way, and the owner changes the memory. The peer drops the retransmission as a
// duplicate, whatever it contains. The race detector cannot know that, so for it the bytes
// are copied without instrumentation.
//
//go:norace
func toRepeat(bytes []byte) []byte {
	if !race.Enabled {
		return bytes
	}
	again := make([]byte, len(bytes))
	//lint:ignore S1001 the race detector observes copy
	for i := range bytes {
		again[i] = bytes[i]
	}
	return again
}
