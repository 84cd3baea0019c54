package soft

import (
	"math/bits"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/crc32c"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// Reception of runs (run.go). Usually the kernel coalesces all packets of a run: takeRun
// checks the tag, and the payload goes from the packets to its target, or to a slot, in the same
// pass that computes the CRCs. When the
// network or a queue separates the packets, arriveLone collects those of a segment in a slot
// of the reorder buffer until it is complete.

const (
	// maxPartial bounds the slots of incomplete segments of a device.
	maxPartial = 64
	// partialTimeout is how long an incomplete segment waits for its next packet. Its
	// sender retransmits sooner, unless it is gone.
	partialTimeout = time.Second
)

// partial is the state of a slot with an incomplete segment.
type partial struct {
	got     uint64 // positions received
	packets uint8  // of the run; 0: the segment is complete
	each    uint16
	crcs    *[reliable.MaxRun]uint32 // of the packets received
}

func (a *partial) complete() bool { return bits.OnesCount64(a.got) == int(a.packets) }

// takeRun processes the first packets of b, which the kernel coalesced at length each: a
// run, or one packet. It returns their length.
func (d *Device) takeRun(one *slot, b []byte, each int) (length int) {
	var packets int
	if d.keys.encrypt {
		length, packets = d.wholeEncrypted(b, each)
	} else {
		length, packets = d.keys.wholeRun(b, each)
	}
	if before := d.traffic.received; packets > 0 {
		one.n, one.run, one.wire, one.encrypted = length, packets, each, d.keys.encrypt
		one.data = b[:length:length]
		if d.arrive(one); !one.spoiled {
			return length
		}
		d.traffic.received = before
		if one.encrypted {
			d.restore(b[:each])
		}
	}
	for at := 0; at < length; at += each { // those that are not corrupt are used
		d.arriveLone(b[at:min(at+each, length)])
	}
	return length
}

// wholeRun checks whether b, datagrams that the kernel coalesced at length each, begins
// with all packets of a run. It lists the CRCs that they should have. It returns the length
// and the number of the packets, or the length of one.
func (k *keyring) wholeRun(b []byte, each int) (length, packets int) {
	var first, next runIndex
	alone := min(each, len(b))
	chunk, ok := first.parse(b[:alone])
	if !ok || first.position != 0 || first.flags&(flagEncrypted|flagLone) != 0 || len(chunk) != int(first.each) {
		return alone, 0
	}
	at, pad := 0, k.pad(&first)
	for i := range int(first.packets) {
		end := min(at+each, len(b))
		if _, ok = next.parse(b[at:end]); !ok || !next.continues(&first, i) {
			return alone, 0
		}
		k.listCRC(i, next.crc^pad)
		at = end
	}
	return at, int(first.packets)
}

// front returns where the first packet of a run, or the whole segment, begins and ends.
func (s *slot) front() (from, to int) {
	switch {
	case s.wire > 0 && s.encrypted:
		return sealedAt, s.wire - tagLen
	case s.wire > 0:
		return indexLen, s.wire
	}
	return 0, s.n
}

// putRun copies a segment behind its headers from the packets of its run to target. It
// returns false if a CRC does not match. The tag is valid, and it covers the CRCs, so the
// packet was corrupted in transit: the target, which is that of the segment, holds wrong
// bytes until the packet is sent again, and no completion reports them.
func (k *keyring) putRun(target []byte, s *slot, headers int) bool {
	from := s.lo + headers
	crc := crc32c.Checksum(s.data[indexLen+tagLen : from])
	for i, at := 0, 0; at < s.n; i, at = i+1, at+s.wire {
		chunk := s.data[max(from, at+indexLen):min(at+s.wire, s.n)]
		crc = crc32c.Copy(target, chunk, crc)
		if crc != k.listedCRC(i) {
			s.spoiled = true
			return false
		}
		target, crc = target[len(chunk):], 0
	}
	return true
}

// arriveLone processes a packet of a run that arrived without the others.
func (d *Device) arriveLone(b []byte) {
	var x runIndex
	chunk, ok := x.parse(b)
	if !ok {
		d.drops.Malformed++
		return
	}
	if d.keys.encrypt != (x.flags&flagEncrypted != 0) {
		d.drops.Secrecy++
		return
	}
	owner, known := d.incoming.tokens[x.token]
	if !known {
		d.drops.Strangers++
		return
	}
	q := d.pairs[owner.pair]
	if q == nil {
		d.drops.Astray++
		return
	}
	p := q.peers[owner.id]
	if p.barred {
		d.drops.Barred++
		return
	}
	q.markBusy(p)
	class := p.Classify(x.sequence)
	var s *slot
	if class == reliable.InOrder || class == reliable.Early {
		s = q.partialOf(p, &x)
	}
	fresh := s != nil && s.packets == x.packets && s.partial.each == x.each && s.got>>x.position&1 == 0
	if !d.collect(s, p, &x, b, chunk, fresh) {
		if s != nil && s.packets > 0 && s.got == 0 {
			q.dropPartial(p, x.sequence)
		}
		return
	}
	d.clock.tick()
	p.lastReceived = d.clock.now
	d.traffic.received++
	on := int(x.path())
	q.recordPath(p, nil, x.path())
	switch {
	case class == reliable.Beyond:
		p.Refuse(d.clock.now, on)
	case class == reliable.Duplicate || s != nil && s.got>>x.position&1 != 0 && !fresh:
		d.traffic.duplicates++
		p.RecordPackets(d.clock.now, on, x.number, 1, reliable.AckNow)
	case s == nil:
		d.drops.NoRoom++
		p.Refuse(d.clock.now, on)
	case !fresh:
		d.drops.Malformed++
	case !s.complete():
		p.RecordPackets(d.clock.now, on, x.number, 1, x.ackMode())
	default:
		q.completeRun(s, p, &x)
	}
}

// collect checks packet b and adds its chunk to an incomplete segment if it is a fresh one.
func (d *Device) collect(s *slot, p *peer, x *runIndex, b, chunk []byte, fresh bool) bool {
	at := int(x.position) * int(x.each)
	switch {
	case d.keys.encrypt:
		if !d.decryptPacket(s, p, x, b, at, fresh) {
			return false
		}
	case !d.keys.sumPacket(s, x, chunk, at, fresh):
		d.drops.Corrupt++
		return false
	}
	if !fresh {
		return true
	}
	if x.position+1 == x.packets {
		s.n = at + len(chunk)
	}
	s.got |= 1 << x.position
	s.crcs[x.position] = x.crc
	return true
}

// sumPacket checks the CRC of a packet, and copies the packet if it is a fresh one.
func (k *keyring) sumPacket(s *slot, x *runIndex, chunk []byte, at int, fresh bool) bool {
	x.crc ^= k.pad(x)
	front := 0
	if x.position == 0 {
		front = min(tagLen, len(chunk))
	}
	if !fresh {
		return crc32c.Checksum(chunk[front:]) == x.crc
	}
	copy(s.data[at:], chunk[:front])
	return crc32c.Copy(s.data[at+front:], chunk[front:], 0) == x.crc
}

// partialOf returns the slot of an incomplete segment.
func (q *pair) partialOf(p *peer, x *runIndex) *slot {
	d := q.dev
	if p.reorderBuffer == nil {
		p.reorderBuffer = d.incoming.reorderBuffers.take()
	}
	at := &p.reorderBuffer[x.sequence%reliable.Window]
	if *at == nil {
		if d.incoming.partials == maxPartial || !d.incoming.store.ample() {
			return nil
		}
		s := d.incoming.store.take()
		crcs := s.crcs
		if crcs == nil {
			crcs = new([reliable.MaxRun]uint32)
		}
		s.n, s.wire, s.partial = 0, 0, partial{packets: x.packets, each: x.each, crcs: crcs}
		*at = s
		p.partials++
		d.incoming.partials++
	}
	return *at
}

// takePartial removes an incomplete segment from the reorder buffer and returns its slot, nil
// if there is none.
func (q *pair) takePartial(p *peer, at reliable.Sequence) *slot {
	s := p.reorderBuffer[at%reliable.Window]
	if s == nil || s.packets == 0 {
		return nil
	}
	s.partial = partial{crcs: s.crcs}
	p.reorderBuffer[at%reliable.Window] = nil
	p.partials--
	q.dev.incoming.partials--
	return s
}

// dropPartial drops an incomplete segment: all of it has arrived, or nothing correct.
func (q *pair) dropPartial(p *peer, at reliable.Sequence) {
	if s := q.takePartial(p, at); s != nil {
		q.dev.incoming.store.giveBack(s)
	}
}

// dropPartials drops all incomplete segments of a peer. Their packets were acked, and
// the peer sends them again when it notices.
func (q *pair) dropPartials(p *peer) {
	for i := reliable.Sequence(0); i < reliable.Window && p.partials > 0; i++ {
		q.dropPartial(p, i)
	}
}

// completeRun processes a segment whose last missing packet has arrived.
func (q *pair) completeRun(s *slot, p *peer, x *runIndex) {
	d := q.dev
	q.takePartial(p, x.sequence)
	d.incoming.store.fill(s)
	for i := range int(x.packets) {
		d.keys.listCRC(i, s.crcs[i])
	}
	s.run = int(x.packets)
	h, ok := d.open(s)
	if ok && (h.kind != kindSegment || h.sequence != x.sequence || d.pairs[h.to] != q || h.fromIncarnation != d.peers.list[p.id].incarnation || h.from != d.peers.list[p.id].pair) {
		d.drops.Malformed++
		ok = false
	}
	if !ok { // the packet is not acked, so its sender will notice
		p.Refuse(d.clock.now, int(x.path()))
		d.incoming.store.giveBack(s)
		return
	}
	h.number, h.path = x.number, x.path()
	h.urgent = x.flags&flagUrgent != 0
	s.run = 1
	if !q.receiveRD(s, p, h) {
		d.incoming.store.giveBack(s)
	}
}

// owner is the peer of a token.
type owner struct {
	pair uint16
	id   rdma.PeerID
}

// learnToken enables a peer's packets to arrive alone.
func (q *pair) learnToken(p *peer) {
	d, a := q.dev, &q.dev.peers.list[p.id]
	p.tokenKnown = true
	if d.incoming.tokens == nil {
		d.incoming.tokens = map[uint32]owner{}
	}
	d.incoming.tokens[d.keys.token(a.incarnation, a.pair, d.keys.incarnation, q.number)] = owner{pair: q.number, id: p.id}
}
