package dgram

import (
	"math/bits"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/crc32c"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// Reception of runs (run.go). Usually the kernel coalesces all packets of a run:
// wholeRun removes the indexes, and the segment is processed like a long datagram. When
// the network or a queue separates them, arriveLone collects the packets of a segment in
// a slot of the reorder buffer until it is complete.

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
}

func (a *partial) complete() bool { return bits.OnesCount64(a.got) == int(a.packets) }

// wholeRun checks whether b, datagrams that the kernel coalesced at length each, begins
// with all packets of a run, intact. It joins the segment at the front of b and returns
// its length, that of its packets, and their number.
func (k *keyring) wholeRun(b []byte, each int) (segment, length, packets int) {
	var first, next runIndex
	chunk, ok := first.parse(b[:min(each, len(b))])
	if !ok || first.position != 0 || len(chunk) != int(first.each) {
		return 0, 0, 0
	}
	packets = int(first.packets)
	at := 0
	for i := range packets {
		if at >= len(b) {
			return 0, 0, 0
		}
		end := min(at+each, len(b))
		if chunk, ok = next.parse(b[at:end]); !ok || int(next.position) != i || next.sequence != first.sequence ||
			next.number != first.number+reliable.Number(i) || next.token != first.token || next.packets != first.packets {
			return 0, 0, 0
		}
		if next.crc != k.sumChunk(i, chunk) {
			return 0, 0, 0 // the others are used
		}
		segment += len(chunk)
		at = end
	}
	length = at
	for i := range packets {
		from := i*each + indexLen
		copy(b[i*(each-indexLen):], b[from:min((i+1)*each, length)])
	}
	return segment, length, packets
}

// sumChunk records and returns the CRC of packet i of a segment.
func (k *keyring) sumChunk(i int, chunk []byte) uint32 {
	if i == 0 {
		chunk = chunk[min(tagLen, len(chunk)):]
	}
	crc := crc32c.Checksum(chunk)
	k.listCRC(i, crc)
	return crc
}

// arriveLone processes a packet of a run that arrived without the others.
func (d *Device) arriveLone(b []byte) {
	var x runIndex
	chunk, ok := x.parse(b)
	if !ok {
		d.drops.Malformed++
		return
	}
	owner, known := d.tokens[x.token]
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
	if x.crc != d.keys.sumChunk(int(x.position), chunk) {
		d.drops.Corrupt++
		return
	}
	d.tick()
	q.markBusy(p)
	p.lastReceived = d.now
	d.traffic.received++
	on := int(x.path())
	q.heard(p, nil, x.path())
	switch p.Classify(x.sequence) {
	case reliable.Beyond:
		p.Refuse(d.now, on)
		return
	case reliable.Duplicate:
		d.traffic.duplicates++
		p.Received(d.now, on, x.number, 1, reliable.AckNow)
		return
	}
	s := q.partialOf(p, &x)
	if s == nil {
		d.drops.NoRoom++
		p.Refuse(d.now, on)
		return
	}
	if s.packets != x.packets || s.partial.each != x.each {
		d.drops.Malformed++
		return
	}
	at := int(x.position) * int(x.each)
	n := copy(s.data[at:], chunk)
	if x.position+1 == x.packets {
		s.n = at + n
	}
	if s.got |= 1 << x.position; !s.complete() {
		p.Received(d.now, on, x.number, 1, x.ackMode())
		return
	}
	q.completeRun(s, p, &x)
}

// partialOf returns the slot of an incomplete segment.
func (q *pair) partialOf(p *peer, x *runIndex) *slot {
	d := q.dev
	if p.reorderBuffer == nil {
		p.reorderBuffer = d.takeReorderBuffer()
	}
	at := &p.reorderBuffer[x.sequence%reliable.Window]
	if *at == nil {
		if d.partials == maxPartial || !d.store.ample() {
			return nil
		}
		s := d.store.take()
		s.n, s.partial = 0, partial{packets: x.packets, each: x.each}
		*at = s
		p.partials++
		d.partials++
	}
	return *at
}

// dropPartial removes an incomplete segment from the reorder buffer.
func (q *pair) dropPartial(p *peer, at **slot) {
	(*at).partial = partial{}
	*at = nil
	p.partials--
	q.dev.partials--
}

// dropPartials drops all incomplete segments of a peer. Their packets were acked, and
// the peer sends them again when it notices.
func (q *pair) dropPartials(p *peer) {
	if p.partials == 0 {
		return
	}
	for i := range p.reorderBuffer {
		if at := &p.reorderBuffer[i]; *at != nil && (*at).packets > 0 {
			q.dev.store.giveBack(*at)
			q.dropPartial(p, at)
		}
	}
}

// replacePartial drops an incomplete segment because all of it has arrived.
func (q *pair) replacePartial(p *peer, sequence reliable.Sequence) {
	if at := &p.reorderBuffer[sequence%reliable.Window]; *at != nil && (*at).packets > 0 {
		q.dev.store.giveBack(*at)
		q.dropPartial(p, at)
	}
}

// completeRun processes a segment whose last missing packet has arrived.
func (q *pair) completeRun(s *slot, p *peer, x *runIndex) {
	d := q.dev
	q.dropPartial(p, &p.reorderBuffer[x.sequence%reliable.Window])
	d.store.fill(s)
	for i, each := 0, int(x.each); i < int(x.packets); i++ {
		d.keys.sumChunk(i, s.data[i*each:min((i+1)*each, s.n)])
	}
	s.run = int(x.packets)
	h, ok := d.open(s)
	if ok && (h.kind != kindSegment || h.sequence != x.sequence || d.pairs[h.to] != q || h.fromIncarnation != d.peers[p.id].incarnation || h.from != d.peers[p.id].pair) {
		d.drops.Malformed++
		ok = false
	}
	if !ok { // the packet is not acked, so its sender will notice
		p.Refuse(d.now, int(x.path()))
		d.store.giveBack(s)
		return
	}
	h.number, h.path = x.number, x.path()
	h.urgent = x.flags&flagUrgent != 0
	s.run = 1
	if !q.receiveRD(s, p, h) {
		d.store.giveBack(s)
	}
}

// owner is the peer of a token.
type owner struct {
	pair uint16
	id   rdma.PeerID
}

// learnToken enables a peer's packets to arrive alone.
func (q *pair) learnToken(p *peer) {
	d, a := q.dev, &q.dev.peers[p.id]
	p.tokenKnown = true
	if d.tokens == nil {
		d.tokens = map[uint32]owner{}
	}
	d.tokens[d.keys.token(a.incarnation, a.pair, d.keys.incarnation, q.number)] = owner{pair: q.number, id: p.id}
}
