package sim

import (
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/sched"
)

// Schedules of many ranks differ only in their peers, and these follow from the rank: the
// peer is at a fixed distance (dissemination, rings, trees) or its number differs in fixed
// bits (recursive doubling). Ranks whose schedules are equal in this sense share a
// template (sched.Pool). If peers follow neither rule, a rank has a list of its own and
// shares the rest.

const (
	byDistance uint8 = iota // peer = (rank + offset) mod size
	byBits                  // peer = rank xor offset
	byList                  // peer = list of the rank
)

// template is a schedule that ranks share.
type template struct {
	ops   []operation
	first []int32 // after[first[i]:first[i+1]] wait for operation i
	after []int32
	next  []int32 // the operation that is posted after i, or -1
	need  []uint32
	start []int32 // operations without dependencies, in order
	ports int
	size  int32 // ranks
	// offsets of the sends and receives, by the template's rule.
	offsets []int32
	// receives are in the order of offset, stream and sequence.
	receives []receive
	// matched is the receive that the message of a send met last, if the receiver has the
	// same rule.
	matched []match
}

// operation is a sched.Op without what the simulation does not need.
type operation struct {
	kind      sched.Kind
	unordered bool
	stream    uint16
	bytes     int32
	message   int32 // index among the messages, of Send and Recv
	seq       int32 // index among the messages of the same peer, stream and kind
}

// receive identifies a receive by what a message knows.
type receive struct {
	offset int32
	stream uint16
	seq    int32
	id     int32
}

type match struct {
	template *template
	rule     uint8
	id       int32
}

func (a receive) compare(b receive) int {
	switch {
	case a.offset != b.offset:
		return int(a.offset) - int(b.offset)
	case a.stream != b.stream:
		return int(a.stream) - int(b.stream)
	}
	return int(a.seq) - int(b.seq)
}

// schedules are those of all ranks for one call.
type schedules struct {
	templates []*template
	base      int32   // ranks that differ by a multiple of it have the same schedule; 0: all differ
	of        []int32 // by rank
	rule      []uint8
	lists     [][]int32 // by rank: peers of its messages; nil if no rank needs a list
	ops       int       // of all ranks
	listed    int       // peers in lists
}

func (c *schedules) template(rank int32) *template {
	if c.base > 0 {
		rank %= c.base
	}
	return c.templates[c.of[rank]]
}

// ruleOf returns how the peers of a rank follow from it.
func (c *schedules) ruleOf(rank int32) uint8 {
	if c.base > 0 {
		return byDistance
	}
	return c.rule[rank]
}

// newSchedules builds the schedules of all ranks. Shape.Rank is ignored.
func newSchedules(a *coll.Algorithm, shape coll.Shape, params []int, segment bool) (*schedules, error) {
	shape.Rank = 0
	var b sched.Builder
	if _, err := a.Graph(&b, &shape, params); err != nil { // checks what holds for all ranks
		return nil, err
	}
	return shareSchedules(shape.Size, segment, func(b *sched.Builder, rank int) {
		shape.Rank = rank
		a.Build(b, &shape, params)
	})
}

// shareSchedules builds the schedules of n ranks.
func shareSchedules(n int, segment bool, build func(b *sched.Builder, rank int)) (*schedules, error) {
	c := &schedules{of: make([]int32, n), rule: make([]uint8, n)}
	pool := sched.Pool{NoData: true}
	var b sched.Builder
	for r := range n {
		b.Reset(r, n)
		build(&b, r)
		g, err := pool.Share(&b)
		switch {
		case err != nil:
			return nil, err
		case g.Index < 0:
			return nil, fmt.Errorf("the schedule of rank %d is generated while it runs", r)
		case g.Index == len(c.templates):
			c.templates = append(c.templates, newTemplate(g.Graph, segment))
		}
		c.ops += len(g.Ops)
		c.of[r] = int32(g.Index)
		switch {
		case g.List != nil:
			c.rule[r] = byList
			if c.lists == nil {
				c.lists = make([][]int32, n)
			}
			c.lists[r] = g.List
			c.listed += len(g.List)
		case g.Peers == sched.Bits:
			c.rule[r] = byBits
		}
	}
	return c, nil
}

// wrap returns i mod n, not negative.
func wrap(i, n int32) int32 {
	if i %= n; i < 0 {
		i += n
	}
	return i
}

func newTemplate(g *sched.Graph, segment bool) *template {
	n := len(g.Ops)
	t := &template{ops: make([]operation, n), first: make([]int32, n+1), next: make([]int32, n), need: make([]uint32, n),
		matched: make([]match, n), ports: g.Ports, size: int32(g.Size)}
	counts := map[[3]int32]int32{}
	for i := range g.Ops {
		op := &g.Ops[i]
		t.ops[i] = operation{kind: op.Kind, unordered: op.Unordered, stream: op.Stream, bytes: int32(max(op.Src.Len, op.Dst.Len))}
		if op.HandOver && segment {
			t.ops[i].bytes = 0
		}
		t.next[i], t.need[i] = int32(g.NextPost(i)), uint32(g.Need(i))
		t.after = append(t.after, g.Successors(i)...)
		t.first[i+1] = int32(len(t.after))
		if g.Need(i) == 0 {
			t.start = append(t.start, int32(i))
		}
		if op.Kind > sched.Recv {
			continue
		}
		key := [3]int32{int32(op.Kind), op.Peer, int32(op.Stream)}
		own := &t.ops[i]
		own.message, own.seq = int32(len(t.offsets)), counts[key]
		counts[key]++
		t.offsets = append(t.offsets, op.Peer)
		if op.Kind == sched.Recv {
			t.receives = append(t.receives, receive{offset: op.Peer, stream: own.stream, seq: own.seq, id: int32(i)})
		}
	}
	slices.SortFunc(t.receives, receive.compare)
	return t
}

// bytes returns the memory of the template.
func (t *template) bytes() int {
	return len(t.ops)*(20+16+4+4+4) + 4*len(t.after) + 4*len(t.offsets) + 16*len(t.receives)
}

// peer returns the peer of an operation of a rank.
func (c *schedules) peer(t *template, rank, id int32) int32 {
	message := t.ops[id].message
	switch c.ruleOf(rank) {
	case byDistance:
		p := rank + t.offsets[message]
		if n := t.size; p >= n {
			p -= n
		}
		return p
	case byBits:
		return rank ^ t.offsets[message]
	}
	return c.lists[rank][message]
}

// receive returns the receive of rank dst that matches a send of rank src.
func (c *schedules) receive(src, dst, send int32) int32 {
	from, to := c.template(src), c.template(dst)
	rule := c.ruleOf(dst)
	m := &from.matched[send]
	cached := rule < byList && rule == c.ruleOf(src)
	if cached && m.template == to && m.rule == rule {
		return m.id
	}
	op := &from.ops[send]
	want := receive{stream: op.stream, seq: op.seq}
	id := int32(-1)
	if rule == byList {
		peers := c.lists[dst]
		for _, r := range to.receives {
			if peers[to.ops[r.id].message] == src && r.stream == want.stream && r.seq == want.seq {
				return r.id
			}
		}
	} else {
		want.offset = src ^ dst
		if rule == byDistance {
			want.offset = wrap(src-dst, to.size)
		}
		if i, ok := slices.BinarySearchFunc(to.receives, want, receive.compare); ok {
			id = to.receives[i].id
		}
	}
	if id < 0 {
		panic("sim: a message without a receive")
	}
	if cached {
		*m = match{to, rule, id}
	}
	return id
}

// send returns the send of rank src that matches a receive of rank dst.
func (c *schedules) send(src, dst, receive int32) int32 {
	from, want := c.template(src), &c.template(dst).ops[receive]
	for i := range from.ops {
		if op := &from.ops[i]; op.kind == sched.Send && op.stream == want.stream && op.seq == want.seq && c.peer(from, src, int32(i)) == dst {
			return int32(i)
		}
	}
	panic("sim: a receive without a message")
}
