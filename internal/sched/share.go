package sched

import (
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

// Pool finds the graph that a rank has in common with others, without building it again.
// The zero Pool is empty. It is not safe for concurrent use; its graphs are.
type Pool struct {
	// NoData ignores where data lies, and permits ranks whose peers follow no rule
	// (Pooled.List). Its graphs describe messages and dependencies, and must not be run.
	// Graphs of a pool without data are compared by a 64-bit hash only.
	NoData bool

	graphs []*Graph
	known  map[poolKey]int
	bytes  int
}

// poolKey identifies a graph: the hash of its operations with peers by a rule, or without
// peers for Absolute.
type poolKey struct {
	sum  uint64
	rule Addressing
}

// Pooled is a graph of a pool as a rank uses it. A Run of it needs the rank (Run.Rank).
type Pooled struct {
	*Graph
	Index int // among the graphs of the pool; -1 if the rank does not share its graph
	// List has the peers of the rank's messages in the order of operations, if they follow
	// no rule; otherwise it is nil.
	List []int32
}

// Share returns the graph of the operations that b has, instead of a copy
// of its own for each rank. A generated graph holds less than a shared one and is returned
// as it is.
func (p *Pool) Share(b *Builder) (Pooled, error) {
	if b.err != nil || b.generator != nil {
		g, err := b.Graph()
		return Pooled{Graph: g, Index: -1}, err
	}
	sums := p.sums(b)
	for _, rule := range [...]Addressing{Distance, Bits} {
		if i, ok := p.known[poolKey{sums[rule], rule}]; ok && (p.NoData || p.graphs[i].builtBy(b)) {
			return Pooled{Graph: p.graphs[i], Index: i}, nil
		}
	}
	alike := poolKey{rule: Absolute}
	if p.NoData {
		alike.sum = mix(sums[Absolute], coincidences(b.ops))
		if i, ok := p.known[alike]; ok {
			return Pooled{Graph: p.graphs[i], Index: i, List: peersOf(b.ops)}, nil
		}
	}
	g, err := b.Graph()
	if err != nil {
		return Pooled{}, err
	}
	g.relative()
	i := len(p.graphs)
	p.graphs = append(p.graphs, g)
	p.bytes += g.Bytes()
	if p.known == nil {
		p.known = map[poolKey]int{}
	}
	p.known[poolKey{sums[g.Peers], g.Peers}] = i
	if p.NoData {
		p.known[alike] = i
	}
	return Pooled{Graph: g, Index: i}, nil
}

// sums returns hashes of the operations that b has, by the meaning of peers; for Absolute
// without peers.
func (p *Pool) sums(b *Builder) (sums [3]uint64) {
	same, distance, bits := mix(mix(uint64(len(b.ops)), uint64(b.size)), uint64(b.ports)), uint64(1), uint64(2)
	if !p.NoData {
		same = mix(mix(same, uint64(b.tmp)), uint64(b.shared))
	}
	for i := range b.ops {
		op := &b.ops[i]
		flags := uint64(op.Kind) | uint64(op.Stream)<<8
		if op.Unordered {
			flags |= 1 << 30
		}
		if op.HandOver {
			flags |= 1 << 31
		}
		same = mix(same, flags<<32^uint64(op.Src.Len+op.Dst.Len)^uint64(b.from[i])<<20)
		if !p.NoData {
			same = mix(mix(same, uint64(op.Src.Off)<<2|uint64(op.Src.Buf)), uint64(op.Dst.Off)<<2|uint64(op.Dst.Buf))
		}
		if op.Kind <= Recv {
			distance = mix(distance, uint64(b.distance(op.Peer)))
			bits = mix(bits, uint64(op.Peer^int32(b.rank)))
		}
	}
	for _, d := range b.deps {
		same = mix(same, uint64(d))
	}
	return [3]uint64{Absolute: same, Distance: mix(same, distance), Bits: mix(same, bits)}
}

func (b *Builder) distance(peer int32) int32 {
	if peer -= int32(b.rank); peer < 0 {
		peer += int32(b.size)
	}
	return peer
}

// mix is a step of a 64-bit hash.
func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// coincidences returns a hash of which messages have the same peer, stream and kind.
func coincidences(ops []Op) uint64 {
	h := uint64(3)
	last := map[[3]int32]int{}
	for i := range ops {
		if op := &ops[i]; op.Kind <= Recv {
			key := [3]int32{int32(op.Kind), op.Peer, int32(op.Stream)}
			h = mix(h, uint64(last[key]))
			last[key] = i + 1
		}
	}
	return h
}

func peersOf(ops []Op) []int32 {
	n := 0
	for i := range ops {
		if ops[i].Kind <= Recv {
			n++
		}
	}
	peers := make([]int32, 0, n)
	for i := range ops {
		if ops[i].Kind <= Recv {
			peers = append(peers, ops[i].Peer)
		}
	}
	return peers
}

// builtBy reports whether the shared graph is the one that b would build for its rank.
func (g *Graph) builtBy(b *Builder) bool {
	if g.Size != b.size || g.Tmp != b.tmp || g.Shared != b.shared || g.Ports != b.ports || len(g.Ops) != len(b.ops) || len(g.after) != len(b.deps) {
		return false
	}
	for i := range b.ops {
		op := b.ops[i]
		if op.Kind <= Recv && g.Peers == Bits {
			op.Peer ^= int32(b.rank)
		} else if op.Kind <= Recv {
			op.Peer = b.distance(op.Peer)
		}
		if op != g.Ops[i] {
			return false
		}
		end := len(b.deps)
		if i+1 < len(b.ops) {
			end = int(b.from[i+1])
		}
		for _, d := range b.deps[b.from[i]:end] {
			if _, ok := slices.BinarySearch(g.Successors(int(d)), int32(i)); !ok {
				return false
			}
		}
	}
	return true
}
