package coll

import "fmt"

// The lengths of an alltoall by columns whose blocks differ. The rank that hands blocks
// on is neither their sender nor their receiver, so it does not have their lengths.
// Callers therefore exchange them before they build the schedule:
//
//	LengthsCall   the exchange, a call of Neighbors with a number for each block
//	Lengths       what a rank sends in it
//	SetCarried    stores what it receives in Shape.Carried
//
// The exchange takes one short message for each message of the alltoall itself.

// CarriedFrom returns the ranks of other nodes whose blocks this rank hands on, in the
// order of Carried.
func (s *Shape) CarriedFrom() (list []int) {
	t := s.Nodes
	node := t.NodeOf(s.Rank)
	for i := 1; i < t.Nodes(); i++ {
		for _, from := range t.RanksOf(wrap(node-i, t.Nodes())) {
			if t.inColumn(node, from) == s.Rank {
				list = append(list, from)
			}
		}
	}
	return list
}

// LengthsCall returns the call that exchanges lengths, with elem bytes for each. It
// depends only on the nodes.
func (s *Shape) LengthsCall(elem int) *Shape {
	t := s.Nodes
	node := t.NodeOf(s.Rank)
	call := &Shape{Kind: Neighbors, Rank: s.Rank, Size: s.Size, Elem: elem, Nodes: t, Sources: s.CarriedFrom()}
	call.Send = Blocks{Lens: []int{}, Offs: []int{}}
	call.Recv = Blocks{Each: elem * t.Count(node)}
	at := 0
	for i := 1; i < t.Nodes(); i++ {
		n := wrap(node+i, t.Nodes())
		call.Dests = append(call.Dests, t.inColumn(n, s.Rank))
		bytes := elem * t.Count(n)
		call.Send.Lens, call.Send.Offs = append(call.Send.Lens, bytes), append(call.Send.Offs, at)
		at += bytes
	}
	return call
}

// Lengths calls put with the lengths of the blocks for other nodes, in the order in which
// LengthsCall sends them.
func (s *Shape) Lengths(put func(bytes int)) {
	t := s.Nodes
	node := t.NodeOf(s.Rank)
	for i := 1; i < t.Nodes(); i++ {
		for _, to := range t.RanksOf(wrap(node+i, t.Nodes())) {
			put(s.sentTo(to).Len)
		}
	}
}

// maxCarried bounds the bytes that a rank hands on, for which it allocates memory: a peer
// could report anything.
const maxCarried = 1 << 36

// SetCarried takes the lengths that this rank has received. get returns the next of them.
func (s *Shape) SetCarried(get func() int) error {
	senders, total := s.CarriedFrom(), 0
	local := s.Nodes.Count(s.Nodes.NodeOf(s.Rank))
	s.Carried = make([]Blocks, len(senders))
	for i, from := range senders {
		b := Blocks{Lens: make([]int, local), Offs: make([]int, local), Irregular: true}
		begin := total
		for j := range local {
			n := get()
			if n < 0 || n > maxCarried-total {
				return fmt.Errorf("rank %d reports a block of %d bytes to hand on", from, n)
			}
			b.Lens[j], b.Offs[j] = n, total-begin
			total += n
		}
		s.Carried[i] = b
	}
	return nil
}

// MayCarry reports whether Carries can be true for any call. Unlike Carries it needs no
// Shape, whose blocks are allocated.
func (t *Tuning) MayCarry() bool {
	if t == nil {
		return false
	}
	for i := range t.Rules {
		if t.Rules[i].Algorithm.Needs.Lengths {
			return true
		}
	}
	return false
}

// Carries reports whether a rule of the table selects an algorithm that must know the
// lengths of the blocks that ranks hand on, so that they must be exchanged first.
func (t *Tuning) Carries(s *Shape) bool {
	if !t.MayCarry() || s.Nodes == nil || !s.Recv.irregular() {
		return false
	}
	known, passed := *s, ""
	known.Carried = []Blocks{}
	rule, _ := t.match(&known, &passed)
	return rule != nil && rule.Algorithm.Needs.Lengths
}
