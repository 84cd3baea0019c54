package p2p

// The explorer with speculation: receives that send an RTR, that are cancelled at any time,
// and ranks that die at any time. The programs are in the sets below.

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/race"
)

// offer makes a receive send its RTR, as the engine does for non-blocking calls.
func (r *run) offer(m *Machine, x *Xfer) {
	if r.plant == bugWild && x.entry != nil {
		wildcards := m.match.wildcards
		m.match.wildcards = 0 // hide them
		m.Offer(x)
		m.match.wildcards = wildcards
		return
	}
	m.Offer(x)
}

// cancel tries to cancel a receive.
func (r *run) cancel(rank, i int) {
	m := r.w.nodes[rank].m
	r.ranks[rank].asked[i] = true
	x := r.under(rank, i)
	if r.plant == bugCancel && (x.stage == stagePosted || x.stage == stageReady) {
		m.finishCancelled(x)
	} else {
		m.Cancel(x)
	}
	r.w.settle(rank)
}

// speak makes a receive that has waited for some time send its RTR.
func (r *run) speak(rank, i int) {
	r.ranks[rank].spoke[i] = true
	r.offer(r.w.nodes[rank].m, r.under(rank, i))
	r.w.settle(rank)
}

// under returns a pending operation.
func (r *run) under(rank, i int) *Xfer {
	for k, x := range r.w.nodes[rank].m.slab {
		if x.stage != stageIdle && int(r.ranks[rank].opOf[k]) == i {
			return x
		}
	}
	return nil
}

// deaths adds the events of a death: any rank may die while events are left, and then the
// others notice, before or after its packets arrive.
func (r *run) deaths(out []event) []event {
	left := len(out) > 0
	for rank := range r.w.nodes {
		switch {
		case r.dead < 0:
			if left {
				out = append(out, event{kind: evDie, a: int8(rank)})
			}
		case rank == r.dead:
		case !r.ranks[rank].noticed:
			out = append(out, event{kind: evNotice, a: int8(rank)})
			fallthrough
		default:
			if len(r.w.wire(r.dead, rank).inFlight) > 0 {
				out = append(out, event{kind: evDeliver, a: int8(r.dead), b: int8(rank)})
			}
		}
	}
	return out
}

// die ends a rank: it does nothing any more, and packets to it are lost.
func (r *run) die(rank int) {
	r.dead = rank
	r.w.nodes[rank].work = r.w.nodes[rank].work[:0]
	for k := range r.w.nodes {
		r.w.wire(rank, k).wait = r.w.wire(rank, k).wait[:0]
		r.w.wire(k, rank).inFlight = r.w.wire(k, rank).inFlight[:0]
	}
}

// notice reports a death to another rank.
func (r *run) notice(rank int) {
	r.ranks[rank].noticed = true
	n := r.w.nodes[rank]
	n.m.FailLink(n.links[r.dead], errGone)
	r.w.settle(rank)
}

// links checks that no RTR is left when all messages have arrived.
func (r *run) links(rank int) {
	for p, l := range r.w.nodes[rank].links {
		if l.offered != 0 || len(l.offers) != 0 {
			r.wrong("rank %d has %d RTRs out to rank %d and %d RTRs from it", rank, l.offered, p, len(l.offers))
		}
	}
}

// finalOf is final for a program with leftovers: cancelled receives, messages without a
// receive because of that, all operations of a dead rank. All other operations have
// completed, and all resources are released when the leftovers are ended too.
func (r *run) finalOf() {
	for rank, n := range r.w.nodes {
		if rank == r.dead {
			continue
		}
		pr := &r.ranks[rank]
		for i, op := range r.p[rank] {
			switch {
			case i >= pr.pc:
				r.wrong("stuck: rank %d has not begun its operation %d and nothing can happen", rank, i)
			case pr.done[i]:
			case op.cancel:
				r.wrong("stuck: rank %d's operation %d was cancelled and has not ended", rank, i)
			case r.dead >= 0 && int(op.peer) == r.dead:
				r.wrong("stuck: rank %d's operation %d with a dead rank has not ended", rank, i)
			case op.send && r.taken(message(rank, i), -1, 0):
				r.wrong("stuck: rank %d's send %d has been received and has not ended", rank, i)
			}
		}
		if r.dead < 0 {
			r.memory(rank, n.mem)
		} else if at := n.mem.spoilt(spots); at >= 0 {
			r.wrong("byte %d of rank %d's memory, outside the buffers, was written", at, rank)
		}
	}
	r.ending = true
	for rank, n := range r.w.nodes {
		if rank == r.dead {
			continue
		}
		n.m.Fail(errors.New("the end"))
		r.w.settle(rank)
		if len(n.mem.regs) > 0 {
			r.wrong("rank %d leaves %d regions", rank, len(n.mem.regs))
		}
		for p, l := range n.links {
			if l.offered != 0 {
				r.wrong("rank %d has %d RTRs out to rank %d", rank, l.offered, p)
			}
		}
	}
}

// spots are the offsets of the buffers in a rank's arena.
var spots = func() (out []region) {
	for i := range maxOps {
		out = append(out, region{off: guardLen + i*spotLen, n: roomFull})
	}
	return out
}()

// The settings: speculation has one for each rendezvous that it falls back to, where that
// matters.
func early(s setting) setting { s.early = true; return s }
func adapt(s setting) setting { s.early, s.adapt = true, true; return s }

func get(variants ...setting) []setting {
	for i := range variants {
		variants[i].rendezvous = "get"
	}
	return variants
}

// oneWay makes rank 0 send to rank 1, which receives with these patterns.
func oneWay(messages, spare int, tags []int, patterns [][2]int) grammar {
	return grammar{ranks: 2, messages: messages, spare: spare, alphabet: fanIn(2, tags, patterns)}
}

var (
	anyPattern = [][2]int{{0, 0}, {0, 1}, {0, AnyTag}, {AnySource, 0}, {AnySource, AnyTag}}
	oneTag     = []int{0}
)

var specSets = []set{
	{name: "early: one rank, 1 and 2 messages to itself", short: true,
		grammars: []grammar{{ranks: 1, messages: 1, alphabet: everyone(1, tags, tagsAny, true)}, {ranks: 1, messages: 2, alphabet: everyone(1, tags, tagsAny, true)}},
		dress:    dress{sizes: product(sizeEmpty, sizeShort, sizeLong), sync: syncBoth, blocks: []blocking{blockNone, blockSends}},
		settings: get(early(inOrder), adapt(inOrder))},
	{name: "early: two ranks, 1 and 2 messages", short: true,
		grammars: []grammar{pairOf(1, true), pairOf(2, true)},
		dress:    dress{sizes: product(sizeShort, sizeLong), blocks: []blocking{blockNone, blockSends}},
		settings: by(early(inOrder))},
	{name: "early: two ranks, 1 and 2 messages, every size, mode, blocking call and device",
		grammars: []grammar{pairOf(1, true), pairOf(2, true)},
		dress:    dress{sizes: product(sizeEmpty, sizeShort, sizeSegment, sizeLong), sync: every(2), blocks: allBlock},
		settings: get(early(inOrder), adapt(inOrder), early(reorder), early(slow), early(setting{double: true}),
			early(setting{localKeys: true, plain: true, slow: true}))},
	{name: "early: one way, 2 messages, reordered, slow and doubled", short: true,
		grammars: []grammar{oneWay(2, 0, tags, anyPattern)},
		dress:    dress{sizes: product(sizeShort, sizeLong)},
		settings: get(early(reorder), early(slow), early(setting{double: true}), early(setting{localKeys: true, plain: true}))},
	{name: "early: one way, 2 messages, RTRs at any time", short: true,
		grammars: []grammar{oneWay(2, 0, tags, anyPattern)},
		dress:    dress{sizes: product(sizeShort, sizeLong), sync: syncBoth},
		settings: get(early(setting{anytime: true}))},
	{name: "early: one way, 3 messages, RTRs at any time",
		grammars: []grammar{oneWay(3, 0, oneTag, anyPattern)},
		dress:    dress{sizes: product(sizeShort, sizeLong)},
		settings: get(early(setting{anytime: true}), adapt(setting{anytime: true}))},
	{name: "early: one way, 1 and 2 messages, every room", short: true,
		grammars: []grammar{oneWay(1, 0, tags, anyPattern), oneWay(2, 0, tags, anyPattern)},
		dress:    dress{sizes: product(sizeShort, sizeSegment, sizeLong), sync: syncBoth, rooms: []int8{2, 8, 10, roomFull}, mixed: true},
		settings: get(early(inOrder))},
	{name: "early: one way, 3 messages of one envelope, mixed sizes and rooms", short: true,
		grammars: []grammar{oneWay(3, 0, oneTag, [][2]int{{0, 0}})},
		dress:    dress{sizes: product(sizeShort, sizeLong), rooms: []int8{8, roomFull}, mixed: true},
		settings: get(early(inOrder), adapt(inOrder))},
	{name: "early: one way, 3 messages, wildcards in every place", short: true,
		grammars: []grammar{oneWay(3, 0, tags, anyPattern)},
		dress:    dress{sizes: patterns([]int8{sizeLong}, []int8{sizeLong, sizeShort})},
		settings: get(early(inOrder))},
	{name: "early: one way, 3 messages, every mix of sizes, all protocols",
		grammars: []grammar{oneWay(3, 0, tags, anyPattern)},
		dress:    dress{sizes: product(sizeShort, sizeLong)},
		settings: by(early(inOrder), adapt(inOrder))},
	{name: "early: one way, 3 messages, reordered and synchronous",
		grammars: []grammar{oneWay(3, 0, oneTag, anyPattern)},
		dress:    dress{sizes: product(sizeShort, sizeLong), sync: syncBoth},
		settings: get(early(reorder))},
	{name: "early: one way, 3 messages of one envelope, every mix of sizes and rooms, reordered",
		grammars: []grammar{oneWay(3, 0, oneTag, [][2]int{{0, 0}})},
		dress:    dress{sizes: product(sizeShort, sizeSegment, sizeLong), rooms: []int8{8, 10, roomFull}, mixed: true},
		settings: by(early(inOrder), adapt(inOrder), early(reorder))},
	{name: "early: one way, 4 messages, wildcards in every place",
		grammars: []grammar{oneWay(4, 0, oneTag, [][2]int{{0, 0}, {AnySource, 0}})},
		dress:    dress{sizes: product(sizeShort, sizeLong)},
		settings: get(early(inOrder), adapt(inOrder))},
	{name: "early: two ranks, 3 messages",
		grammars: []grammar{pairOf(3, false)},
		dress:    dress{sizes: patterns([]int8{sizeLong}, []int8{sizeLong, sizeShort})},
		settings: get(early(inOrder))},
	{name: "early: two ranks, 3 messages, little credit",
		grammars: []grammar{pairOf(3, false)},
		dress:    dress{sizes: patterns([]int8{sizeShort}, []int8{sizeSegment})},
		settings: get(early(setting{credit: 150}), early(setting{credit: 300}))},
	{name: "early: two ranks, 2 messages, queues of 1, one and two registrations", short: true,
		grammars: []grammar{pairOf(2, false)},
		dress:    dress{sizes: product(sizeShort, sizeLong), sync: syncBoth},
		settings: by(early(setting{depth: 1}), early(setting{depth: 1, regions: 1}), early(setting{regions: 2}))},
	{name: "early: two ranks, 3 messages, queues of 1, one and two registrations",
		grammars: []grammar{pairOf(3, false)},
		dress:    dress{sizes: patterns([]int8{sizeLong}, []int8{sizeLong, sizeShort})},
		settings: get(early(setting{depth: 1, regions: 2}))},
	{name: "early: three ranks, 2 messages", short: true,
		grammars: []grammar{{ranks: 3, messages: 2, alphabet: fanIn(3, oneTag, [][2]int{{0, 0}, {1, 0}, {AnySource, 0}, {0, AnyTag}})}},
		dress:    dress{sizes: product(sizeShort, sizeLong)},
		settings: get(early(inOrder))},
	{name: "early: two ranks send 3 messages to a third, mixed tags and sources",
		grammars: []grammar{{ranks: 3, messages: 3, alphabet: fanIn(3, tags, fanPatterns)}},
		dress:    dress{sizes: patterns([]int8{sizeLong})},
		settings: get(early(inOrder))},
	{name: "early: one way, 1 and 2 messages, a receive too many, cancelled ones", short: true,
		grammars: []grammar{oneWay(1, 1, oneTag, [][2]int{{0, 0}, {AnySource, 0}, {0, 1}}), oneWay(2, 1, oneTag, [][2]int{{0, 0}})},
		dress:    dress{sizes: product(sizeShort, sizeLong), rooms: []int8{8, roomFull}, mixed: true, cancels: []int{1, 2, 3, 4, 5, 7}},
		settings: get(early(inOrder))},
	{name: "early: one way, 1 and 2 messages, receives too many, cancelled ones, wildcards in every place",
		grammars: []grammar{oneWay(1, 1, oneTag, anyPattern), oneWay(1, 2, oneTag, anyPattern), oneWay(2, 1, oneTag, anyPattern)},
		dress:    dress{sizes: product(sizeShort, sizeLong), rooms: []int8{8, roomFull}, mixed: true, cancels: []int{1, 2, 3, 4, 5, 6, 7}},
		settings: get(early(inOrder))},
	{name: "early: one way, 1 and 2 messages, cancelled ones, reordered and slow",
		grammars: []grammar{oneWay(1, 1, oneTag, [][2]int{{0, 0}}), oneWay(2, 1, oneTag, [][2]int{{0, 0}})},
		dress:    dress{sizes: product(sizeShort, sizeLong), rooms: []int8{8, roomFull}, mixed: true, cancels: []int{1, 2, 3, 4, 5, 7}},
		settings: get(early(reorder), early(slow))},
	{name: "early: one way, 1 and 2 messages, a rank dies", short: true,
		grammars: []grammar{oneWay(1, 0, oneTag, anyPattern), oneWay(2, 0, oneTag, [][2]int{{0, 0}, {AnySource, 0}})},
		dress:    dress{sizes: product(sizeShort, sizeLong)},
		settings: get(early(setting{mortal: true}))},
	{name: "early: one way, 1 and 2 messages cut into several transfers, a rank dies", short: true,
		grammars: []grammar{oneWay(1, 0, oneTag, anyPattern), oneWay(2, 0, oneTag, [][2]int{{0, 0}})},
		dress:    dress{sizes: product(sizeShort, sizeLong), rooms: []int8{10, roomFull}, mixed: true},
		settings: by(early(setting{mortal: true, transfer: 5}))},
	{name: "early: two ranks, 2 messages, queues of 1, two registrations, a rank dies", short: true,
		grammars: []grammar{pairOf(2, false)},
		dress:    dress{sizes: patterns([]int8{sizeLong})},
		settings: by(early(setting{mortal: true, depth: 1, regions: 2}), setting{mortal: true, depth: 1, regions: 1})},
	{name: "early: two ranks, 1 and 2 messages, a rank dies",
		grammars: []grammar{pairOf(1, true), pairOf(2, true)},
		dress:    dress{sizes: product(sizeShort, sizeSegment, sizeLong), sync: syncBoth},
		settings: by(early(setting{mortal: true}), early(setting{mortal: true, slow: true}))},
	{name: "early: one way, cancelled receives and a rank dies",
		grammars: []grammar{oneWay(1, 1, oneTag, [][2]int{{0, 0}}), oneWay(2, 1, oneTag, [][2]int{{0, 0}})},
		dress:    dress{sizes: product(sizeShort, sizeLong), rooms: []int8{8, roomFull}, mixed: true, cancels: []int{1, 2, 3, 4, 5, 7}},
		settings: get(early(setting{mortal: true}))},
}

func TestExploreSpeculation(t *testing.T) {
	sum := exploreAll(t, specSets)
	if f := flag.Lookup("test.run"); race.Enabled || strings.Contains(f.Value.String(), "/") {
		return // not all sets were run
	}
	if sum.used == 0 || sum.wasted == 0 || sum.revoked == 0 || sum.stopped == 0 {
		t.Errorf("the programs show %d RTRs used, %d wasted, %d revoked, %d not sent", sum.used, sum.wasted, sum.revoked, sum.stopped)
	}
}
