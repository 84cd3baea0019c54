package p2p

// An explorer that never finds anything proves nothing. Here bugs are planted,
// one after the other, and the explorer must find each.

import (
	"strings"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

type bug uint8

const (
	bugNone     bug = iota
	bugOrder        // packets are worked on in the order in which they come
	bugLastRecv     // a message goes to the receive that was posted last
	bugEarlyAck     // a synchronous send ends with the ACK, even if the device still needs the buffer
	bugNoFIN        // the FIN of a rendezvous is lost
	bugOneMore      // a copy writes one byte too many
	bugLeak         // a registration is not given back
	bugTwice        // a message is delivered again
	bugOverdraw     // a sender thinks that it has more credit than it has
)

// misdeliver meddles with a packet before it is delivered.
func (r *run) misdeliver(e event) {
	wi := r.w.wire(int(e.a), int(e.b))
	l, pkt := r.w.nodes[e.b].links[e.a], wi.flight[e.i]
	switch {
	case r.plant == bugOrder:
		l.recvSeq = get32(pkt[offSeq:])
	case r.plant == bugTwice && r.doubled == 0 && packetKind(pkt[offKind]) == kindEager:
		r.doubled++
		r.w.nodes[e.b].m.dispatch(l, pkt)
		r.w.settle(int(e.b))
	case r.plant == bugNoFIN && packetKind(pkt[offKind]) == kindFIN:
		put64(pkt[offHandle:], 0) // names nobody
	case r.plant == bugOverdraw:
		r.w.nodes[e.a].links[e.b].credit += 1000
	}
}

// meddle changes a state after an event.
func (r *run) meddle() {
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
	short[1][0].size, short[1][1].size = 5, 5 // the receives have less room
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
		{"credit out of nothing", bugOverdraw, two(sizeShort, sizeShort, false), setting{credit: 300}, "credit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			allowed := ask(c.p).allowed
			var s searcher
			if _, failure := s.explore(c.p, c.set, allowed); failure != "" {
				t.Fatalf("without the bug: %s", failure)
			}
			s.run.plant = c.plant
			_, failure := s.explore(c.p, c.set, allowed)
			if !strings.Contains(failure, c.want) {
				t.Fatalf("the explorer should find %q, but it found: %s", c.want, failure)
			}
		})
	}
}
