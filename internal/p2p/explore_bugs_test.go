package p2p

// The explorer must find planted bugs, one at a time: an explorer that never finds anything
// proves nothing.

import (
	"strings"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

type bug uint8

const (
	bugNone     bug = iota
	bugOrder        // packets are processed in the order of arrival
	bugLastRecv     // a message goes to the receive that was posted last
	bugEarlyAck     // a synchronous send completes with the ACK, even if the device still needs the buffer
	bugNoFIN        // the FIN of a rendezvous is lost
	bugOneMore      // a copy writes one byte too many
	bugLeak         // a registration is not released
	bugTwice        // a message is delivered again
	bugOverdraw     // a sender overestimates its credit

	bugPushes    // a sender does not count its pending OpPush, and posts more
	bugPushDepth // an OpPush uses a slot of the send queue
	bugExposed   // a sender does not count the regions of unmatched sends

	bugAhead   // an RTR does not count the receives before it
	bugSeen    // the sender ignores what the receiver had seen when it sent an RTR
	bugStale   // the sender keeps an RTR that is stale
	bugMispred // an RTR stays although its message was sent eagerly
	bugWild    // an RTR is sent behind a wildcard receive
	bugCancel  // a receive is cancelled at once, although RTRs count it
	bugRevoke  // the sender confirms a REVOKE but keeps the RTR
)

// misdeliver modifies a packet before delivery.
func (r *run) misdeliver(e event) {
	wi := r.w.wire(int(e.a), int(e.b))
	l, pkt := r.w.nodes[e.b].links[e.a], wi.inFlight[e.i]
	switch {
	case r.plant == bugOrder:
		l.recvSeq = get32(pkt[offSeq:])
	case r.plant == bugTwice && r.doubled == 0 && packetKind(pkt[offKind]) == kindEager:
		r.doubled++
		r.w.nodes[e.b].m.dispatch(l, pkt)
		r.w.settle(int(e.b))
	case r.plant == bugNoFIN && packetKind(pkt[offKind]) == kindFIN:
		put64(pkt[offHandle:], 0) // an invalid handle
	case r.plant == bugOverdraw:
		r.w.nodes[e.a].links[e.b].credit += 1000
	case packetKind(pkt[offKind]) == kindRTR:
		r.misoffer(l, pkt)
	case r.plant == bugRevoke && packetKind(pkt[offKind]) == kindRevoke:
		r.keepOffers(l)
	}
}

// misoffer modifies an RTR before delivery over l.
func (r *run) misoffer(l *Link, pkt []byte) {
	seen := func(n uint64) { put64(pkt[offTag:], uint64(get32(pkt[offTag:]))|n<<32) }
	switch r.plant {
	case bugAhead:
		pkt[offAhead] = 0
	case bugSeen:
		seen(l.Stats.Sent)
	case bugStale:
		crossed := 0
		for i := uint64(get32(pkt[offSeen:])); i < l.Stats.Sent; i++ {
			if l.recent.keys[i] == envelopeKey(get32(pkt[offContext:]), int32(get32(pkt[offTag:]))) {
				crossed++
			}
		}
		if crossed > int(pkt[offAhead]) {
			pkt[offAhead] = 0
			seen(l.Stats.Sent)
		}
	}
}

// keepOffers restores a link's RTRs after the event.
func (r *run) keepOffers(l *Link) {
	r.keptBy, r.kept = l, append(r.kept[:0], l.offers...)
}

// meddle changes the state after an event.
func (r *run) meddle() {
	if l := r.keptBy; l != nil {
		l.offers, r.keptBy = append(l.offers[:0], r.kept...), nil
		l.setOneMax()
	}
	for rank, n := range r.w.nodes {
		for _, x := range n.m.slab {
			switch {
			case r.plant == bugLastRecv && x.stage == stagePosted && x.prev != nil:
				list := &x.entry.posted
				list.remove(x)
				x.next = list.head
				list.head.prev = x
				list.head = x
			case r.plant == bugEarlyAck && x.stage == stageAcked:
				n.m.complete(x)
				r.w.settle(rank)
			}
		}
		if r.plant == bugLeak && len(n.mem.regs) > 0 && len(n.mem.regs) < 2 {
			n.mem.regs = append(n.mem.regs, region{off: 1 << 30})
		}
		for k := range n.work {
			if wr := &n.work[k].wr; r.plant == bugOneMore && wr.Op == rdma.OpRead && wr.Body.Len() < roomFull {
				body := n.mem.arena[n.mem.offset(wr.Body.Bytes()):][:wr.Body.Len()+1]
				wr.Body = rdma.MemOf(body)
			}
		}
	}
}

func TestExplorerFindsPlantedBugs(t *testing.T) {
	two := func(a, b int8, sync bool) program {
		return program{
			{{send: true, peer: 1, size: a, sync: sync}, {send: true, peer: 1, size: b, sync: sync}},
			{recvOp(0, 0), recvOp(0, 0)}}
	}
	short := two(sizeLong, sizeLong, false)
	short[1][0].size, short[1][1].size = 5, 5 // the receives have shorter buffers
	// The receiver takes the last message first.
	behind := program{
		{{send: true, peer: 1, size: sizeLong}, {send: true, peer: 1, size: sizeLong}, {send: true, peer: 1, tag: 1, size: sizeShort}},
		{{peer: 0, tag: 1, size: roomFull, block: true}, recvOp(0, 0), recvOp(0, 0)}}
	// Rank 1 receives when its own message has been received.
	crossing := program{
		{{send: true, peer: 1, size: sizeLong}, recvOp(1, 0)},
		{{send: true, peer: 0, size: sizeLong, sync: true, block: true}, recvOp(0, 0)}}
	crossing2 := crossing.clone()
	crossing2[0] = append([]progOp{crossing[0][0]}, crossing[0]...)
	crossing2[1] = append(crossing2[1], recvOp(0, 0))
	for _, c := range []struct {
		name  string
		plant bug
		p     program
		set   setting
		want  string
	}{
		{"packets out of order", bugOrder, two(sizeShort, sizeShort, false), setting{reorder: true}, "overtook"},
		{"segments out of order", bugOrder, two(sizeSegment, sizeShort, false), setting{reorder: true}, "gives rank 0 up"},
		{"rendezvous out of order", bugOrder, two(sizeLong, sizeShort, false), setting{reorder: true, rendezvous: "get"}, "overtook"},
		{"the wrong receive", bugLastRecv, two(sizeShort, sizeShort, false), setting{}, "overtook"},
		{"a send that ends too early", bugEarlyAck, two(sizeSegment, sizeShort, true), setting{slow: true}, "of its memory"},
		{"a lost FIN", bugNoFIN, two(sizeLong, sizeShort, false), setting{rendezvous: "get"}, "stuck"},
		{"a byte too many", bugOneMore, short, setting{rendezvous: "get"}, "of its memory"},
		{"a leak", bugLeak, two(sizeLong, sizeShort, false), setting{rendezvous: "put"}, "leaves"},
		{"a message twice", bugTwice, two(sizeShort, sizeShort, false), setting{}, "no message that is to come"},
		{"more pushes than the device has room for", bugPushes, behind, setting{rendezvous: "coop", depth: 1}, "waits for the peer's application"},
		{"a push in the send queue", bugPushDepth, crossing, setting{rendezvous: "coop", depth: 1}, "waits for the peer's application"},
		{"unmatched sends take all registrations", bugExposed, crossing2, setting{rendezvous: "get", regions: 2, localKeys: true}, "no resources"},
		{"credit out of nothing", bugOverdraw, two(sizeShort, sizeShort, false), setting{credit: 300}, "credit"},
	} {
		t.Run(c.name, func(t *testing.T) { findBug(t, c.plant, c.p, c.set, c.want) })
	}
}

// Each rule that assigns an RTR to its message is necessary.
func TestExplorerFindsSpeculationBugs(t *testing.T) {
	sends := func(sizes ...int8) (ops []progOp) {
		for _, s := range sizes {
			ops = append(ops, progOp{send: true, peer: 1, size: s})
		}
		return ops
	}
	room := func(n int8) progOp { r := recvOp(0, 0); r.size = n; return r }
	cancelled := func(r progOp) progOp { r.cancel = true; return r }
	long := room(roomFull)
	anyone := recvOp(AnySource, 0)
	for _, c := range []struct {
		name  string
		plant bug
		p     program
		want  string
	}{
		{"receives ahead are not counted", bugAhead, program{sends(sizeLong, sizeLong), {room(8), long}}, "was not offered"},
		{"what was seen is ignored", bugSeen, program{sends(sizeLong, sizeLong), {long, long}}, "was not offered"},
		{"a stale RTR is used", bugStale, program{sends(sizeLong, sizeLong), {long, long}}, "was not offered"},
		{"an eager message leaves its RTR", bugMispred, program{sends(sizeShort, sizeLong), {long, long}}, "was not offered"},
		{"a wildcard is before", bugWild, program{sends(sizeLong, sizeLong), {anyone, long}}, "was not offered"},
		{"cancelled at once, with an RTR", bugCancel, program{sends(sizeLong), {cancelled(long), long}}, "was not offered"},
		{"cancelled at once, before an RTR", bugCancel, program{sends(sizeLong, sizeLong), {cancelled(room(8)), long, long}}, "was not offered"},
		{"revoked and used", bugRevoke, program{sends(sizeLong), {cancelled(long), long}}, "was not offered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			findBug(t, c.plant, c.p, early(setting{rendezvous: "get"}), c.want)
		})
	}
}

func findBug(t *testing.T, plant bug, p program, set setting, want string) {
	allowed := ask(p).allowed
	var s searcher
	if _, failure := s.explore(p, set, allowed); failure != "" {
		t.Fatalf("without the bug: %s", failure)
	}
	s.run.plant = plant
	_, failure := s.explore(p, set, allowed)
	if !strings.Contains(failure, want) {
		t.Fatalf("the explorer should find %q, but it found: %s", want, failure)
	}
}
