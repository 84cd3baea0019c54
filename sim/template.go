package sim

import (
	"slices"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/sched"
)

// Schedules of many ranks differ only in their peers, and these follow from the rank: the
// peer is at a fixed distance (dissemination, rings, trees) or its number differs in fixed
// bits (recursive doubling). Ranks whose schedules are equal in this sense share a
// template. If peers follow neither rule, a rank has a list of its own and shares the rest.

const (
	byDistance uint8 = iota // peer = (rank + offset) mod size
	byBits                  // peer = rank xor offset
	byList                  // peer = list of the rank
	rules
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
	// messages is the number of sends and receives; offsets are theirs, by rule.
	messages int
	offsets  [byList][]int32
	// receives are in the order of offset, stream and sequence; for byList in the order of
	// operations.
	receives [rules][]receive
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
	of        []int32 // by rank
	rule      []uint8
	lists     [][]int32 // by rank: peers of its messages; nil if no rank needs a list
	ops       int       // of all ranks
	listed    int       // peers in lists
}

func (c *schedules) template(rank int32) *template { return c.templates[c.of[rank]] }

// newSchedules builds the schedules of all ranks. Shape.Rank is ignored.
func newSchedules(a *coll.Algorithm, shape coll.Shape, params []int, segment bool) (*schedules, error) {
	n := shape.Size
	c := &schedules{of: make([]int32, n), rule: make([]uint8, n)}
	known := map[key]int32{}
	var b sched.Builder
	shape.Rank = 0
	if _, err := a.Graph(&b, &shape, params); err != nil { // checks what holds for all ranks
		return nil, err
	}
	for r := range n {
		shape.Rank = r
		b.Reset(r, n)
		a.Build(&b, &shape, params)
		ops, from, deps, err := b.Peek()
		if err != nil {
			return nil, err
		}
		c.ops += len(ops)
		sums := fingerprints(ops, from, deps, int32(r), int32(n))
		if i, rule, ok := lookUp(known, &sums); ok {
			c.of[r], c.rule[r] = i, rule
			continue
		}
		alike := key{mix(sums[byList], coincidences(ops)), byList}
		i, ok := known[alike]
		if !ok {
			g, err := b.Graph()
			if err != nil {
				return nil, err
			}
			i = int32(len(c.templates))
			c.templates = append(c.templates, newTemplate(g, segment))
			known[alike], known[key{sums[byDistance], byDistance}], known[key{sums[byBits], byBits}] = i, i, i
			c.of[r], c.rule[r] = i, byDistance
			continue
		}
		c.of[r], c.rule[r] = i, byList
		c.list(r, ops)
	}
	return c, nil
}

// key identifies a template: the hash of a schedule in which peers are replaced by a rule.
type key struct {
	sum  uint64
	rule uint8
}

func lookUp(known map[key]int32, sums *[rules]uint64) (i int32, rule uint8, ok bool) {
	for _, rule := range []uint8{byDistance, byBits} {
		if i, ok := known[key{sums[rule], rule}]; ok {
			return i, rule, true
		}
	}
	return 0, 0, false
}

// list gives a rank a list of peers.
func (c *schedules) list(rank int, ops []sched.Op) {
	if c.lists == nil {
		c.lists = make([][]int32, len(c.of))
	}
	n := 0
	for i := range ops {
		if ops[i].Kind <= sched.Recv {
			n++
		}
	}
	peers := make([]int32, 0, n)
	for i := range ops {
		if ops[i].Kind <= sched.Recv {
			peers = append(peers, ops[i].Peer)
		}
	}
	c.lists[rank] = peers
	c.listed += n
}

// fingerprints returns hashes of a schedule with peers relative to the rank, by rule, and
// without peers for byList.
func fingerprints(ops []sched.Op, from, deps []int32, rank, size int32) (sums [rules]uint64) {
	same, distance, bits := uint64(len(ops)), uint64(1), uint64(2)
	for i := range ops {
		op := &ops[i]
		flags := uint64(op.Kind) | uint64(op.Stream)<<8
		if op.Unordered {
			flags |= 1 << 30
		}
		if op.HandOver {
			flags |= 1 << 31
		}
		same = mix(same, flags<<32^uint64(op.Src.Len+op.Dst.Len)^uint64(from[i])<<20)
		if op.Kind <= sched.Recv {
			distance = mix(distance, uint64(around(op.Peer-rank, size)))
			bits = mix(bits, uint64(op.Peer^rank))
		}
	}
	for _, d := range deps {
		same = mix(same, uint64(d))
	}
	return [rules]uint64{byDistance: mix(same, distance), byBits: mix(same, bits), byList: same}
}

// mix is a step of a 64-bit hash.
func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// coincidences returns a hash of which messages have the same peer, stream and kind.
func coincidences(ops []sched.Op) uint64 {
	h := uint64(3)
	last := map[[3]int32]int{}
	for i := range ops {
		if op := &ops[i]; op.Kind <= sched.Recv {
			key := [3]int32{int32(op.Kind), op.Peer, int32(op.Stream)}
			h = mix(h, uint64(last[key]))
			last[key] = i + 1
		}
	}
	return h
}

// around returns i mod n, not negative.
func around(i, n int32) int32 {
	if i %= n; i < 0 {
		i += n
	}
	return i
}

func newTemplate(g *sched.Graph, segment bool) *template {
	n := len(g.Ops)
	t := &template{ops: make([]operation, n), first: make([]int32, n+1), next: make([]int32, n), need: make([]uint32, n),
		matched: make([]match, n), ports: g.Ports}
	counts := map[[3]int32]int32{}
	rank, size := int32(g.Rank), int32(g.Size)
	for i := range g.Ops {
		op := &g.Ops[i]
		t.ops[i] = operation{kind: op.Kind, unordered: op.Unordered, stream: op.Stream, bytes: int32(max(op.Src.Len, op.Dst.Len))}
		if op.HandOver && segment {
			t.ops[i].bytes = 0
		}
		t.next[i], t.need[i] = int32(g.NextPost(i)), uint32(g.Need(i))
		t.after = append(t.after, g.After(i)...)
		t.first[i+1] = int32(len(t.after))
		if g.Need(i) == 0 {
			t.start = append(t.start, int32(i))
		}
		if op.Kind > sched.Recv {
			continue
		}
		key := [3]int32{int32(op.Kind), op.Peer, int32(op.Stream)}
		t.ops[i].message, t.ops[i].seq = int32(t.messages), counts[key]
		counts[key]++
		t.messages++
		t.offsets[byDistance] = append(t.offsets[byDistance], around(op.Peer-rank, size))
		t.offsets[byBits] = append(t.offsets[byBits], op.Peer^rank)
	}
	for rule := range rules {
		t.receives[rule] = t.receivesBy(rule)
	}
	return t
}

func (t *template) receivesBy(rule uint8) (list []receive) {
	for i := range t.ops {
		op := &t.ops[i]
		if op.kind != sched.Recv {
			continue
		}
		r := receive{stream: op.stream, seq: op.seq, id: int32(i)}
		if rule < byList {
			r.offset = t.offsets[rule][op.message]
		}
		list = append(list, r)
	}
	if rule < byList {
		slices.SortFunc(list, receive.compare)
	}
	return list
}

// bytes returns the memory of the template.
func (t *template) bytes() int {
	return len(t.ops)*(20+16+4+4+4) + 4*len(t.after) + 2*4*t.messages + 3*16*len(t.receives[0])
}

// peer returns the peer of an operation of a rank.
func (c *schedules) peer(t *template, rank, id int32) int32 {
	message := t.ops[id].message
	switch c.rule[rank] {
	case byDistance:
		p := rank + t.offsets[byDistance][message]
		if n := int32(len(c.of)); p >= n {
			p -= n
		}
		return p
	case byBits:
		return rank ^ t.offsets[byBits][message]
	}
	return c.lists[rank][message]
}

// receive returns the receive of rank dst that matches a send of rank src.
func (c *schedules) receive(src, dst, send int32) int32 {
	from, to := c.template(src), c.template(dst)
	rule := c.rule[dst]
	m := &from.matched[send]
	cached := rule < byList && rule == c.rule[src]
	if cached && m.template == to && m.rule == rule {
		return m.id
	}
	op := &from.ops[send]
	want := receive{stream: op.stream, seq: op.seq}
	id := int32(-1)
	if rule == byList {
		peers := c.lists[dst]
		for _, r := range to.receives[byList] {
			if peers[to.ops[r.id].message] == src && r.stream == want.stream && r.seq == want.seq {
				return r.id
			}
		}
	} else {
		want.offset = src ^ dst
		if rule == byDistance {
			want.offset = around(src-dst, int32(len(c.of)))
		}
		if i, ok := slices.BinarySearchFunc(to.receives[rule], want, receive.compare); ok {
			id = to.receives[rule][i].id
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
