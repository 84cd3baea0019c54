package p2p

// The whole state of a run as one number, so that the explorer visits equal states once.
// Differences between two histories that do not affect the future are left out: handles are
// replaced by their operations, indexes into tables by the entries there.

import (
	"math/bits"

	"github.com/muster-mpi/muster/rdma"
)

type hasher uint64

func (h *hasher) word(v uint64) {
	hi, lo := bits.Mul64(uint64(*h)^v^0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93+uint64(*h)<<1)
	*h = hasher(hi ^ lo)
}

func (h *hasher) bytes(b []byte) {
	h.word(uint64(len(b)))
	for ; len(b) >= 8; b = b[8:] {
		h.word(get64(b))
	}
	var last uint64
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	h.word(last)
}

func (h *hasher) flags(bits ...bool) {
	v := uint64(1)
	for _, b := range bits {
		v <<= 1
		if b {
			v |= 1
		}
	}
	h.word(v)
}

// hash returns the hash of the run's state.
func (r *run) hash() uint64 {
	h := hasher(1)
	h.word(uint64(r.got))
	h.word(uint64(r.doubled)<<8 | uint64(r.dead+1))
	for rank, n := range r.w.nodes {
		pr := &r.ranks[rank]
		h.word(uint64(pr.pc))
		h.flags(pr.done[:]...)
		h.flags(pr.asked[:]...)
		h.flags(pr.spoke[:]...)
		h.flags(pr.noticed)
		h.bytes(n.mem.arena)
		h.word(sumOf(n.mem.regs, func(g region, h *hasher) {
			h.word(uint64(g.off))
			h.word(uint64(g.n)<<8 | uint64(g.acc))
			h.flags(g.pulled)
		}))
		h.word(sumOf(n.work, func(k work, h *hasher) {
			r.hashRequest(h, rank, &k.wr)
			h.flags(k.copied)
		}))
		r.hashOperations(&h, rank, n.m)
		r.hashStarved(&h, rank, n.m)
		r.hashMatcher(&h, rank, n)
		for _, l := range n.links {
			r.hashLink(&h, rank, n.m, l)
		}
	}
	for i := range r.w.wires {
		from, to := i/len(r.w.nodes), i%len(r.w.nodes)
		wi := &r.w.wires[i]
		h.word(uint64(len(wi.wait))<<32 | uint64(len(wi.inFlight)))
		for k := range wi.wait {
			r.hashRequest(&h, from, &wi.wait[k])
			if wr := &wi.wait[k]; wr.Op == rdma.OpSend {
				r.hashPacket(&h, from, to, wr.Head[:wr.HeadLen])
				h.bytes(wr.Body.Bytes())
			}
		}
		// With reordering, the order of packets in flight is irrelevant.
		if r.reorder {
			h.word(sumOf(wi.inFlight, func(pkt []byte, h *hasher) { r.hashPacket(h, from, to, pkt) }))
			continue
		}
		for _, pkt := range wi.inFlight {
			r.hashPacket(&h, from, to, pkt)
		}
	}
	return uint64(h)
}

// sumOf hashes a set.
func sumOf[T any](items []T, each func(T, *hasher)) uint64 {
	var sum uint64
	for _, it := range items {
		h := hasher(7)
		each(it, &h)
		sum += uint64(h)
	}
	return sum
}

// named hashes the operation of a handle.
func (r *run) named(h *hasher, rank int, handle uint64) {
	h.word(uint64(r.operation(rank, handle) + 2))
}

func (r *run) hashRequest(h *hasher, rank int, wr *rdma.SendWR) {
	r.named(h, rank, wr.ID)
	h.word(wr.Remote)
	h.word(wr.RKey)
	h.word(uint64(wr.LKey)<<32 | uint64(wr.Op)<<8 | uint64(wr.Flags))
	h.word(uint64(wr.Body.Len()))
}

func (r *run) hashOperations(h *hasher, rank int, m *Machine) {
	for k := range r.ranks[rank].pc {
		var x *Xfer
		for i, y := range m.slab {
			if y.stage != stageIdle && int(r.ranks[rank].opOf[i]) == k {
				x = y
			}
		}
		if x == nil {
			h.word(0)
			continue
		}
		h.word(1 | uint64(x.stage)<<8 | uint64(x.proto)<<16 | uint64(uint32(x.Source))<<32)
		h.word(uint64(uint32(x.Tag))<<32 | uint64(x.total))
		h.word(x.remote)
		h.word(x.rkey)
		h.flags(x.lease != leaseNone, x.Send, x.cancelling, x.revoking, x.cut != nil)
		if x.cut != nil {
			h.word(uint64(len(x.cut.rest)))
		}
		if x.Link != nil {
			h.word(uint64(x.Link.Rank) + 1)
			r.named(h, x.Link.Rank, x.peer)
		}
	}
}

// hashStarved hashes the receives that wait for a registration.
func (r *run) hashStarved(h *hasher, rank int, m *Machine) {
	for _, x := range m.starved {
		r.named(h, rank, x.handle)
	}
}

func (r *run) hashMatcher(h *hasher, rank int, n *node) {
	t := &n.m.match
	h.flags(t.wild, t.last != nil)
	if e := t.last; e != nil { // it decides whether the fast path is tried
		h.word(uint64(uint32(e.src))<<32 | uint64(uint32(e.tag)))
	}
	h.word(uint64(t.wildcards)<<32 | uint64(t.waiting))
	if r.adapt {
		var sum uint64
		for _, e := range t.buckets {
			for ; e != nil; e = e.chain {
				if e.history != (specHistory{}) {
					b := hasher(7)
					b.word(uint64(uint32(e.src))<<32 | uint64(uint32(e.tag)))
					b.word(e.history.wasted)
					b.word(uint64(e.history.seen)<<48 | uint64(e.history.pause)<<32 | uint64(e.history.probes)<<16 | uint64(e.history.skipped))
					b.flags(e.history.stopped)
					sum += uint64(b)
				}
			}
		}
		h.word(sum)
	}
	// Receives were posted in the order of the program, and operations are
	// hashed in that order with their stage: nothing to add for them.
	for g := t.arrived.head; g != nil; g = g.nodes[listArrived].next {
		h.word(uint64(g.Link.Rank)<<32 | uint64(uint32(g.Source)))
		h.word(uint64(uint32(g.Tag))<<32 | uint64(g.Ctx))
		h.word(uint64(g.Total))
		h.flags(g.sync, g.rts)
		h.word(uint64(g.proto))
		h.word(g.remote)
		h.word(g.rkey)
		r.named(h, g.Link.Rank, g.peer)
		h.bytes(g.data)
	}
}

func (r *run) hashLink(h *hasher, rank int, m *Machine, l *Link) {
	h.word(uint64(l.sendSeq)<<32 | uint64(l.recvSeq))
	h.word(uint64(l.credit))
	h.word(uint64(l.granted))
	h.flags(l.wants)
	h.word(uint64(l.consumed)<<16 | uint64(len(l.held))<<8 | uint64(len(l.partial)))
	h.word(l.Stats.Received<<16 | uint64(l.offered)<<8 | uint64(len(l.offers)))
	for i := range l.offers {
		o := &l.offers[i]
		r.named(h, l.Rank, o.handle)
		h.word(o.key)
		h.word(uint64(o.skip)<<32 | uint64(o.length))
		h.word(o.addr)
		h.word(o.rkey)
	}
	for _, p := range l.held {
		r.hashPacket(h, l.Rank, rank, p.pkt)
	}
	for _, p := range l.partial {
		h.word(uint64(p.first)<<32 | uint64(p.filled)<<16 | uint64(p.total))
		if p.x != nil {
			r.named(h, rank, p.x.handle)
		}
		at := 0 // index of its message among the waiting ones
		for g := m.match.arrived.head; g != nil && p.msg != nil; g = g.nodes[listArrived].next {
			at++
			if g == p.msg {
				h.word(uint64(at))
			}
		}
	}
}

func (r *run) hashPacket(h *hasher, from, to int, pkt []byte) {
	kind := packetKind(pkt[offKind])
	h.word(get64(pkt[offKind:]))
	h.word(get64(pkt[offTotal:]))
	switch kind {
	case kindEager, kindRTS:
		h.word(get64(pkt[offContext:]))
		h.word(get64(pkt[offTag:]))
		rest := pkt[headLen:]
		if kind == kindRTS && pkt[offProto] == protoSpec {
			r.named(h, to, get64(pkt[offNamed:]))
			rest = rest[:0]
		} else if kind == kindRTS || pkt[offFlags]&flagSync != 0 {
			r.named(h, from, get64(pkt[offExtra:]))
			rest = pkt[headSync:]
		}
		h.bytes(rest)
	case kindSeg:
		h.word(get64(pkt[offFirst:]))
		h.bytes(pkt[headLen:])
	case kindCTS:
		r.named(h, to, get64(pkt[offHandle:]))
		r.named(h, from, get64(pkt[offPeer:]))
		h.bytes(pkt[headLen:])
	case kindRTR:
		h.word(get64(pkt[offContext:]))
		h.word(get64(pkt[offTag:]))
		r.named(h, from, get64(pkt[offExtra:]))
		h.bytes(pkt[offAddr:])
	case kindRevoke:
		r.named(h, from, get64(pkt[offHandle:]))
	case kindFIN, kindACK, kindRevoked:
		r.named(h, to, get64(pkt[offHandle:]))
	}
}
