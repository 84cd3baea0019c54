package sim

import "github.com/muster-mpi/muster/internal/sched"

// The critical path: from the operation that completes last back to the beginning, each
// time to the operation that delayed it: the one before on the same processor, or the send
// of the message that a processor without work received.

type path struct {
	cause []int32 // by operation of Sim.state: the one that delayed it, or -1
	end   []int64
	last  []int32 // by rank: the operation that its processor did last, or -1
	next  int32   // the cause of the next operation of the current rank
}

func newPath(ranks, ops int) *path {
	return &path{cause: make([]int32, ops), end: make([]int64, ops), last: make([]int32, ranks)}
}

func (p *path) enter(r int32, k *rank, ops int) {
	for i := k.base; i < k.base+int64(ops); i++ {
		p.cause[i], p.end[i] = -1, 0
	}
	p.last[r], p.next = -1, -1
}

// arrived records what the rank does next: it takes the message of e, for which it waited
// if its processor had nothing to do.
func (p *path) recordArrival(s *Sim, r int32, e *event) {
	if p.next = p.last[r]; p.next >= 0 && p.end[p.next] >= e.t {
		return
	}
	if from := &s.ranks[e.src]; e.kind != evSent && e.kind != evPull && from.step == e.step {
		p.next = int32(from.base) + e.op
	}
}

// did records the end of an operation at k.cpu. A long send is recorded when it is
// posted, because the receive depends on that.
func (p *path) did(r int32, k *rank, id int32) {
	at := int32(k.base) + id
	if p.end[at] == 0 {
		p.cause[at], p.end[at] = p.next, max(k.cpu, 1)
	}
	p.next, p.last[r] = at, at
}

// Hop is an operation of the critical path.
type Hop struct {
	Rank  int     `json:"rank"`
	Node  int     `json:"node"`
	What  string  `json:"what"` // send, recv, copy, reduce
	Peer  int     `json:"peer"` // of a message; -1 otherwise
	Bytes int     `json:"bytes"`
	End   float64 `json:"end_us"`
}

func nameOf(kind sched.Kind) string {
	if kind == compute {
		return "compute"
	}
	return kind.String()
}

// criticalPath returns the operations of the last call, the first of them first.
func (s *Sim) criticalPath(last int32) []Hop {
	c := &s.steps[len(s.steps)-1]
	owner := func(at int32) int32 {
		lo, hi := 0, len(s.ranks)
		for hi-lo > 1 {
			if m := (lo + hi) / 2; s.ranks[m].base <= int64(at) {
				lo = m
			} else {
				hi = m
			}
		}
		for lo > 0 && len(c.template(int32(lo)).ops) == 0 {
			lo--
		}
		return int32(lo)
	}
	k := &s.ranks[last]
	at, best := int32(-1), int64(-1)
	for i := range c.template(last).ops {
		if id := int32(k.base) + int32(i); s.path.end[id] > best {
			at, best = id, s.path.end[id]
		}
	}
	var hops []Hop
	for at >= 0 && len(hops) < len(s.state) {
		r := owner(at)
		t := c.template(r)
		id := at - int32(s.ranks[r].base)
		op := &t.ops[id]
		h := Hop{Rank: int(r), Node: s.node(r), What: nameOf(op.kind), Peer: -1, Bytes: int(op.bytes), End: float64(s.path.end[at]) / 1e6}
		if op.kind <= sched.Recv {
			h.Peer = int(c.peer(t, r, id))
		}
		hops = append(hops, h)
		at = s.path.cause[at]
	}
	for i, j := 0, len(hops)-1; i < j; i, j = i+1, j-1 {
		hops[i], hops[j] = hops[j], hops[i]
	}
	return hops
}
