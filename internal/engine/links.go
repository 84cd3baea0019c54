package engine

// Connections to peers. A rank keeps no state for a peer before the first message to
// or from it, and fetches the peer's address when it posts the first packet:
//
//	connect      the first packets wait in the link
//	openNext     the call fetches the card and connects the link, before it waits or
//	             returns. It releases the lock meanwhile: the launcher may take long to
//	             answer, and other goroutines of the rank go on
//	openLate     does the same in a goroutine of its own, for packets that no such call
//	             has posted, such as replies of the progress thread
//	connected    the packets go to the device
//
// Between ranks of one process openAtOnce does all of it when the first packet is posted.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
)

// link returns the link to a rank of the world, creating it if necessary.
func (e *Held) link(rank int) *p2p.Link {
	if l := e.links.last; l != nil && l.Rank == rank {
		return l
	}
	l := e.links.byRank[rank]
	if l == nil {
		l = e.linkTo(rank)
	}
	e.links.last = l
	return l
}

// linkTo creates the link to a rank over the lane that reaches it.
func (e *Held) linkTo(rank int) *p2p.Link {
	d := e.laneTo(rank)
	if d == nil { // the first packet returns the error
		d = &e.home
		l := &p2p.Link{Rank: rank, Attr: d.attr, QP: d.qp}
		e.m.SetUp(l)
		e.m.FailLink(l, fmt.Errorf("rank %d runs on another host, and this rank has no network device: see muster explain network", rank))
		e.links.byRank[rank] = l
		return l
	}
	l := e.newLink(d, rank)
	switch {
	case d.local:
		d.setPeer(l, e.peerOf(rank))
	case d.caps.NameOf == nil:
		d.setPeer(l, rdma.PeerID(rank))
	} // otherwise open sets the handle
	return l
}

// arrivalLink returns the link of a peer whose packet arrived over a lane before its
// handle was known. It returns nil for an invalid peer.
func (e *Held) arrivalLink(d *lane, peer rdma.PeerID) *p2p.Link {
	rank := int(peer)
	switch {
	case d.local:
		rank = e.rankOf(peer)
	case d.caps.NameOf != nil:
		name, ok := d.caps.NameOf(peer)
		if rank = int(name); !ok {
			return nil
		}
	}
	if rank < 0 || rank >= e.size || e.laneTo(rank) != d {
		return nil
	}
	l := e.links.byRank[rank]
	if l == nil {
		l = e.newLink(d, rank)
	}
	if !l.Open { // an open link has another handle: an earlier incarnation of that rank, or an impostor
		d.setPeer(l, peer)
		return l
	}
	return nil
}

func (e *Held) newLink(d *lane, rank int) *p2p.Link {
	l := &p2p.Link{Rank: rank, Host: e.hostOf(rank), Dev: d.number, Attr: d.attr, QP: d.qp}
	e.m.SetUp(l)
	if d.sources != nil && d.sources.least < p2p.MaxSize {
		e.m.SourceFrom(l, d.sources.least)
	}
	if d.stages != nil {
		e.m.StageUpTo(l, stageMost)
	}
	if e.failed != nil {
		e.m.FailLink(l, e.failed)
	} else if err := e.ft.dead[rank]; err != nil {
		e.m.FailLink(l, err)
	}
	e.links.byRank[rank] = l
	return l
}

// setPeer sets the lane's handle for the peer of a link.
func (d *lane) setPeer(l *p2p.Link, peer rdma.PeerID) {
	l.SetPeer(peer)
	d.byPeer.Set(int(peer), l)
}

// hostOf returns the name of a rank's host, as far as it is known locally.
func (s *setup) hostOf(rank int) string {
	if s.client.Node(rank) == s.client.Node(s.rank) {
		return s.client.Host()
	}
	return "another host"
}

// peerOf and rankOf translate between ranks of the world and indexes on the node, which
// the shared-memory device uses as peer handles. They compute or count, which saves a
// table per rank.
func (s *setup) peerOf(rank int) rdma.PeerID {
	if s.client.LocalSize() == s.size {
		return rdma.PeerID(rank)
	}
	if l, ok := s.client.(pmi.Locator); ok {
		return rdma.PeerID(l.LocalIndex(rank))
	}
	index := 0
	for r := range rank {
		if s.client.Node(r) == s.client.Node(s.rank) {
			index++
		}
	}
	return rdma.PeerID(index)
}

func (s *setup) rankOf(peer rdma.PeerID) int {
	if s.client.LocalSize() == s.size {
		return int(peer)
	}
	if l, ok := s.client.(pmi.Locator); ok && int(peer) < s.client.LocalSize() {
		return l.LocalAt(int(peer))
	}
	index := -1
	for r := range s.size {
		if s.client.Node(r) == s.client.Node(s.rank) {
			if index++; index == int(peer) {
				return r
			}
		}
	}
	return -1
}

// connect queues a link to be connected for its first packets, which the caller adds to
// Link.Wait.
func (e *Held) connect(l *p2p.Link) {
	if e.links.connecting = append(e.links.connecting, l); len(e.links.connecting) > 1 {
		return
	}
	if e.links.timer == nil {
		e.links.timer = time.AfterFunc(openAfter, e.engine.openLate)
	} else {
		e.links.timer.Reset(openAfter)
	}
}

// openAfter is the time after which links are connected in the background.
const openAfter = time.Millisecond

// openNext connects the link that has waited longest. It releases the lock meanwhile; the
// caller does not drive.
func (e *Held) openNext() {
	l := e.beginOpen()
	e.handOver()
	e.mu.unlock()
	card, err := e.fetchCard(l.Rank)
	e.mu.lock()
	e.endOpen(l, card, err)
}

// openAll connects all links that wait for it.
func (e *Held) openAll() {
	for len(e.links.connecting) > 0 {
		e.openNext()
	}
}

// openLate connects links in the background. Like the progress thread it borrows the lock,
// so the application's goroutine stays the lock's owner.
func (r *Engine) openLate() {
	e := r.borrowWanted()
	for len(e.links.connecting) > 0 && !e.closed {
		l := e.beginOpen()
		e.mu.giveBack()
		card, err := e.fetchCard(l.Rank)
		e.mu.borrowWanted()
		e.endOpen(l, card, err)
	}
	e.mu.giveBack()
}

func (e *Held) beginOpen() *p2p.Link {
	l := e.links.connecting[0]
	if e.links.connecting = slices.Delete(e.links.connecting, 0, 1); len(e.links.connecting) == 0 {
		e.links.timer.Stop()
	}
	e.links.opens++
	e.links.opening.Add(1)
	return l
}

func (e *Held) endOpen(l *p2p.Link, card string, err error) {
	e.finishConnect(l, card, err)
	e.settle()
	e.poke()
	e.links.opens--
	e.links.opening.Done()
}

// openAtOnce connects a link whose card needs no request and whose device does not wait: that
// of a rank of this process. It reports whether it has done so; if the card is not there
// yet, or is refused, the link is connected in the usual way.
func (e *Held) openAtOnce(l *p2p.Link) bool {
	h, ok := e.client.(pmi.Holder)
	if !ok || !e.lanes[l.Dev].local {
		return false
	}
	card, ok := h.HeldValue(l.Rank, cardKey)
	if !ok || e.open(l, string(card)) != nil {
		return false
	}
	e.links.cards++
	return true
}

// Card returns what other ranks need to reach this one.
func (r *Engine) Card() []byte { return r.held.card() }

// SetCards sets the cards of all ranks, for a job whose launcher may end before it: no link then
// needs to ask for one.
func (r *Engine) SetCards(all [][]byte) { r.held.cards.Store(&all) }

func (s *setup) fetchCard(rank int) (string, error) {
	if all := s.cards.Load(); all != nil {
		return string((*all)[rank]), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
	defer cancel()
	card, err := s.client.Get(ctx, rank, cardKey)
	if err != nil {
		return "", fmt.Errorf("fetch the address of rank %d: %w", rank, err)
	}
	return string(card), nil
}

// finishConnect posts the packets that have waited for the card of a link's peer.
func (e *Held) finishConnect(l *p2p.Link, card string, err error) {
	if l.Err == nil {
		if err == nil {
			e.links.cards++
			err = e.open(l, card)
		}
		if err != nil && e.cfg.Tolerate && e.lanes[l.Dev].local { // its process has just ended
			err = &PeerDeadError{l.Rank, l.Host, err.Error()}
		}
		if err != nil && !e.cfg.Tolerate && e.lanes[l.Dev].local {
			err = e.deathOr(err)
		}
		if err != nil && l.Err == nil {
			e.m.FailLink(l, err)
		}
	}
	if l.Err != nil {
		e.m.HandleDropped(l.Wait)
		l.Wait = nil
		return
	}
	for i := range l.Wait {
		l.Wait[i].Peer = l.Peer // open may have set it
	}
	e.links.blocked = append(e.links.blocked, l)
	e.retry()
}

// open connects a link to the peer with a card.
func (e *Held) open(l *p2p.Link, card string) error {
	host, addr, others := readCard(card, l.Attr.Name)
	l.Host = host
	if addr == "" {
		return fmt.Errorf("reach rank %d on %s over %s: it has no such device, only %s; set MUSTER_NETWORK to the same on all hosts",
			l.Rank, host, l.Attr.Name, strings.Join(others, ", "))
	}
	peer, err := e.lanes[l.Dev].dev.Resolve(addr)
	if err != nil {
		return fmt.Errorf("reach rank %d on %s over %s: %w", l.Rank, host, l.Attr.Name, err)
	}
	if d := e.lanes[l.Dev]; d.caps.NameOf != nil {
		d.setPeer(l, peer)
	} else if peer != l.Peer {
		return fmt.Errorf("reach rank %d on %s over %s: the device calls it peer %d, expected %d", l.Rank, host, l.Attr.Name, peer, l.Peer)
	}
	l.Open = true
	return nil
}

// CardsFetched returns how many cards this rank has fetched from the launcher: one for
// each rank it has sent to.
func (r *Engine) CardsFetched() int {
	e := r.lock()
	defer e.unlock()
	return e.links.cards
}

// Stats returns the counters of the link to a rank, zero if there is none.
func (r *Engine) Stats(rank int) (s p2p.LinkStats) {
	e := r.lock()
	defer e.unlock()
	if l := e.links.byRank[rank]; l != nil {
		s = l.Stats
	}
	return s
}

// OffersFrom returns the length of the shortest buffer that a receive from a rank
// offers before the sender's RTS, and whether receives offer any.
func (r *Engine) OffersFrom(rank int) (int, bool) {
	e := r.lock()
	defer e.unlock()
	return e.m.OffersFrom(e.link(rank))
}

// Choices returns the link's table of protocols by size.
func (r *Engine) Choices(rank int) []p2p.Choice {
	e := r.lock()
	defer e.unlock()
	return e.link(rank).Choices()
}
