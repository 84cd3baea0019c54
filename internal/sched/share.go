package sched

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"slices"
)

// Graphs that ranks share. The graphs of many ranks differ only in the ranks of their
// peers, and are equal once peers are written relative to the own rank: all graphs of a
// dissemination by the distance, all those of a recursive doubling by the bit. A Pool
// keeps one copy of each, so that a process with many ranks, or a simulation of them,
// holds a few graphs instead of one for every rank.

// Addressing is the meaning of Op.Peer.
type Addressing uint8

const (
	Absolute Addressing = iota // a rank
	Distance                   // the rank's distance above the own rank, modulo Size
	Bits                       // the bits in which the rank differs from the own rank
)

// AnyRank is the Rank of a graph that ranks share.
const AnyRank = -1

// Peer returns the rank that an operation of the graph communicates with, if rank
// executes it.
func (g *Graph) Peer(rank int, op *Op) int32 {
	switch g.Peers {
	case Distance:
		p := int32(rank) + op.Peer
		if p >= int32(g.Size) {
			p -= int32(g.Size)
		}
		return p
	case Bits:
		return int32(rank) ^ op.Peer
	}
	return op.Peer
}

// For returns the graph of a rank with absolute peers. It is g itself if g is the graph of
// one rank.
func (g *Graph) For(rank int) *Graph {
	if g.Peers == Absolute {
		return g
	}
	own := *g
	own.Rank, own.Peers, own.Ops = rank, Absolute, slices.Clone(g.Ops)
	for i := range own.Ops {
		if op := &own.Ops[i]; op.Kind <= Recv {
			op.Peer = g.Peer(rank, op)
		}
	}
	return &own
}

// relative writes the peers of the graph of one rank relative to that rank. If peers differ
// from it in one bit each, as in a recursive doubling or a binomial tree, they are bits.
func (g *Graph) relative() {
	g.Peers = Bits
	for i := range g.Ops {
		if op := &g.Ops[i]; op.Kind <= Recv && bits.OnesCount32(uint32(op.Peer)^uint32(g.Rank)) != 1 {
			g.Peers = Distance
			break
		}
	}
	for i := range g.Ops {
		op := &g.Ops[i]
		switch {
		case op.Kind > Recv:
		case g.Peers == Bits:
			op.Peer ^= int32(g.Rank)
		default:
			if op.Peer -= int32(g.Rank); op.Peer < 0 {
				op.Peer += int32(g.Size)
			}
		}
	}
	g.Rank = AnyRank
}

// Pool holds graphs that ranks share. The zero Pool is empty. It is not safe for
// concurrent use; its graphs are.
type Pool struct {
	seed   maphash.Seed
	graphs map[uint64][]*Graph
	count  int
	bytes  int
	key    []byte
}

// Len returns the number of graphs, Bytes the memory that they use.
func (p *Pool) Len() int   { return p.count }
func (p *Pool) Bytes() int { return p.bytes }

// Share returns the graph that ranks share instead of the graph of one rank; a Run of it
// needs the rank (Run.Rank). Share may change g, which the caller must not use again.
// Graphs that are shared or generated already are returned as they are.
func (p *Pool) Share(g *Graph) *Graph {
	if g.Peers != Absolute || g.Generated() {
		return g
	}
	if p.graphs == nil {
		p.seed, p.graphs = maphash.MakeSeed(), map[uint64][]*Graph{}
	}
	g.relative()
	h := p.hash(g)
	for _, shared := range p.graphs[h] {
		if shared.equal(g) {
			return shared
		}
	}
	p.graphs[h] = append(p.graphs[h], g)
	p.count++
	p.bytes += g.Bytes()
	return g
}

// hash returns a hash of what equal compares, as far as graphs differ in practice.
func (p *Pool) hash(g *Graph) uint64 {
	b := p.key[:0]
	for _, n := range []int{g.Size, g.Tmp, g.Shared, int(g.Peers), len(g.Ops), len(g.after)} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	for i := range g.Ops {
		op := &g.Ops[i]
		b = append(b, byte(op.Kind), byte(op.Src.Buf), byte(op.Dst.Buf))
		b = binary.LittleEndian.AppendUint32(b, uint32(op.Peer))
		for _, n := range [...]int{op.Src.Off, op.Src.Len, op.Dst.Off} {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
	}
	p.key = b
	return maphash.Bytes(p.seed, b)
}

func (g *Graph) equal(o *Graph) bool {
	return g.Rank == o.Rank && g.Size == o.Size && g.Peers == o.Peers && g.Tmp == o.Tmp && g.Shared == o.Shared && g.Ports == o.Ports &&
		slices.Equal(g.Ops, o.Ops) && slices.Equal(g.first, o.first) && slices.Equal(g.after, o.after) &&
		slices.Equal(g.nextPost, o.nextPost) && slices.Equal(g.need, o.need)
}
