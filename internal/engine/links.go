package engine

// A peer's first contact. Nothing is known of a rank before the first message
// to or from it; its address is fetched when the first packet must be posted.

import (
	"context"
	"fmt"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/rdma"
)

// link finds or makes the link to a rank of the world.
func (e *Engine) link(rank int) *p2p.Link {
	if l := e.last; l != nil && l.Rank == rank {
		return l
	}
	l := e.links[rank]
	if l == nil {
		l = e.newLink(rank, e.peerOf(rank))
	}
	e.last = l
	return l
}

// arrivalLink finds or makes the link of a peer of the device.
func (e *Engine) arrivalLink(peer rdma.PeerID) *p2p.Link {
	if int(peer) < len(e.byPeer) && e.byPeer[peer] != nil {
		return e.byPeer[peer]
	}
	return e.newLink(e.rankOf(peer), peer)
}

func (e *Engine) newLink(rank int, peer rdma.PeerID) *p2p.Link {
	l := &p2p.Link{Rank: rank, Host: e.client.Host(), Peer: peer, Attr: e.dev.Attr()}
	e.m.SetUp(l)
	if e.failed != nil {
		e.m.FailLink(l, e.failed)
	}
	e.links[rank] = l
	for int(peer) >= len(e.byPeer) {
		e.byPeer = append(e.byPeer, nil)
	}
	e.byPeer[peer] = l
	return l
}

// peerOf and rankOf translate between ranks of the world and places on the node,
// which are what the shared-memory device calls its peers. They count instead of
// keeping a table.
func (e *Engine) peerOf(rank int) rdma.PeerID {
	if e.client.LocalSize() == e.size {
		return rdma.PeerID(rank)
	}
	place := 0
	for r := range rank {
		if e.client.Node(r) == e.client.Node(e.rank) {
			place++
		}
	}
	return rdma.PeerID(place)
}

func (e *Engine) rankOf(peer rdma.PeerID) int {
	if e.client.LocalSize() == e.size {
		return int(peer)
	}
	place := -1
	for r := range e.size {
		if e.client.Node(r) == e.client.Node(e.rank) {
			if place++; place == int(peer) {
				return r
			}
		}
	}
	return -1
}

// open makes a link ready for its first packet.
func (e *Engine) open(l *p2p.Link) error {
	if e.client.Node(l.Rank) != e.client.Node(e.rank) {
		return fmt.Errorf("rank %d runs on another host, and no device here reaches other hosts yet: start all ranks on one host", l.Rank)
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.Timeout)
	defer cancel()
	card, err := e.client.Get(ctx, l.Rank, cardKey)
	if err != nil {
		return fmt.Errorf("fetch the address of rank %d: %w", l.Rank, err)
	}
	peer, err := e.dev.Resolve(rdma.Addr(card))
	if err != nil {
		return fmt.Errorf("reach rank %d over %s: %w", l.Rank, l.Attr.Name, err)
	}
	if peer != l.Peer {
		return fmt.Errorf("reach rank %d over %s: the device calls it peer %d, expected %d", l.Rank, l.Attr.Name, peer, l.Peer)
	}
	l.Open = true
	return nil
}

// Choices is the link's table of protocols by size.
func (e *Engine) Choices(rank int) []p2p.Choice {
	e.lock()
	defer e.unlock()
	return e.link(rank).Choices()
}
