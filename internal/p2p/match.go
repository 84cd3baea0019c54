package p2p

// Matching of messages and receives (MPI-4.1 section 3.5: messages from one sender do not
// overtake, and receives are satisfied in the order in which they were posted).
//
// One hash table maps a pattern (context, source, tag) to an entry with the receives
// posted for that pattern and the messages that arrived with it. An exact receive or
// message needs one lookup. Only users of wildcards pay for them: a wildcard receive is
// filed under its own pattern, and a message checks the up to three wildcard patterns
// that fit it, if any such receive is posted, and takes the earliest. From the first use
// of a wildcard on, messages are filed under the wildcard patterns too. So every step is
// O(1), for any number of waiting messages.

// pattern is what a receive or message is filed under.
type pattern struct {
	ctx      uint32
	src, tag int32
}

// entry holds the receives and messages of one pattern. Empty entries stay, since the same
// envelope usually comes again; the table reclaims them before it grows.
type entry struct {
	pattern
	posted xferList
	msgs   msgList
	chain  *entry

	cancels int // posted receives that are being cancelled
	history specHistory
}

// matcher is the hash table.
type matcher struct {
	last    *entry // most recently used: the next one is usually the same
	buckets []*entry
	shift   uint
	entries int
	free    *entry // free entries, linked by chain

	order     uint64 // number of receives posted so far
	wildcards int    // posted receives with a wildcard
	wild      bool   // a wildcard was used: messages are filed under all patterns
	arrived   msgList
	waiting   int // messages without a receive
}

// The lists that a message is on.
const (
	listExact   = iota
	listArrived // all messages in the order of arrival
	listAnyTag
	listAnySource
	listAny
	listCount
)

const firstBuckets = 64

func (t *matcher) hash(p pattern) uint64 {
	h := (uint64(p.ctx)<<32 | uint64(uint32(p.src))) * 0x9E3779B97F4A7C15
	h = (h ^ uint64(uint32(p.tag))) * 0xD6E8FEB86659FD93
	return h >> t.shift
}

func (t *matcher) find(p pattern) *entry {
	if t.buckets == nil {
		return nil
	}
	for e := t.buckets[t.hash(p)]; e != nil; e = e.chain {
		if e.pattern == p {
			return e
		}
	}
	return nil
}

func (t *matcher) entry(p pattern) *entry {
	if e := t.last; e != nil && e.pattern == p {
		return e
	}
	if e := t.find(p); e != nil {
		t.last = e
		return e
	}
	if t.entries >= len(t.buckets) {
		t.grow()
	}
	e := t.free
	if e == nil {
		e = &entry{}
	} else {
		t.free = e.chain
	}
	b := t.hash(p)
	*e = entry{pattern: p, chain: t.buckets[b]} // msgs is a listExact until fileWild changes its kind
	t.buckets[b] = e
	t.entries++
	t.last = e
	return e
}

// grow makes room. It first reclaims empty entries, so that a program that never reuses a
// tag needs no more memory; the table doubles only if many entries are in use.
func (t *matcher) grow() {
	if t.buckets == nil {
		t.buckets, t.shift = make([]*entry, firstBuckets), 64-6
		return
	}
	t.last = nil
	for b := range t.buckets {
		for at := &t.buckets[b]; *at != nil; {
			e := *at
			if !e.empty() {
				at = &e.chain
				continue
			}
			*at = e.chain
			e.chain, t.free = t.free, e
			t.entries--
		}
	}
	if t.entries*2 <= len(t.buckets) {
		return
	}
	old := t.buckets
	t.buckets, t.shift = make([]*entry, 2*len(old)), t.shift-1
	for _, e := range old {
		for e != nil {
			next, b := e.chain, t.hash(e.pattern)
			e.chain, t.buckets[b] = t.buckets[b], e
			e = next
		}
	}
}

func (e *entry) empty() bool { return e.posted.head == nil && e.msgs.head == nil }

// post files a receive.
func (t *matcher) post(x *Xfer, e *entry) {
	t.order++
	x.order = t.order
	x.entry = e
	e.posted.push(x)
	if x.Source == AnySource || x.Tag == AnyTag {
		t.wildcards++
	}
}

// unpost removes a receive.
func (t *matcher) unpost(x *Xfer) {
	if x.entry.src == AnySource || x.entry.tag == AnyTag {
		t.wildcards--
	}
	x.entry.posted.remove(x)
	x.entry = nil
}

// firstPosted returns the receive for an arriving message, or nil.
func (t *matcher) firstPosted(p pattern) *Xfer {
	var best *Xfer
	if e := t.find(p); e != nil {
		best = e.posted.head
	}
	if t.wildcards > 0 {
		for _, w := range wildcardsOf(p) {
			if e := t.find(w); e != nil && e.posted.head != nil && (best == nil || e.posted.head.order < best.order) {
				best = e.posted.head
			}
		}
	}
	return best
}

// wildBefore reports whether an earlier wildcard receive could take a message that fits an
// exact receive.
func (t *matcher) wildBefore(x *Xfer) bool {
	if t.wildcards == 0 {
		return false
	}
	for _, w := range wildcardsOf(x.entry.pattern) {
		if e := t.find(w); e != nil && e.posted.head != nil && e.posted.head.order < x.order {
			return true
		}
	}
	return false
}

// wildcardsOf returns the wildcard patterns that a message fits.
func wildcardsOf(p pattern) [3]pattern {
	return [3]pattern{{p.ctx, p.src, AnyTag}, {p.ctx, AnySource, p.tag}, {p.ctx, AnySource, AnyTag}}
}

// file keeps a message that has no receive yet.
func (t *matcher) file(g *Msg) {
	p := pattern{g.Ctx, g.Source, g.Tag}
	t.entry(p).msgs.push(g)
	t.arrived.kind = listArrived
	t.arrived.push(g)
	t.waiting++
	if t.wild {
		t.fileWild(g)
	}
}

func (t *matcher) fileWild(g *Msg) {
	for _, w := range [...]struct {
		pattern
		list int
	}{
		{pattern{g.Ctx, g.Source, AnyTag}, listAnyTag},
		{pattern{g.Ctx, AnySource, g.Tag}, listAnySource},
		{pattern{g.Ctx, AnySource, AnyTag}, listAny},
	} {
		e := t.entry(w.pattern)
		e.msgs.kind = w.list
		e.msgs.push(g)
	}
}

// lookMsg returns the first message that fits a receive or probe, or nil.
func (t *matcher) lookMsg(p pattern) *Msg {
	if (p.src == AnySource || p.tag == AnyTag) && !t.wild {
		t.wild = true
		for g := t.arrived.head; g != nil; g = g.nodes[listArrived].next {
			t.fileWild(g)
		}
	}
	if e := t.find(p); e != nil {
		return e.msgs.head
	}
	return nil
}

// takeMsg removes a message from all lists.
func (t *matcher) takeMsg(g *Msg) {
	for k := range g.nodes {
		if on := g.nodes[k].on; on != nil {
			on.remove(g)
		}
	}
	t.waiting--
}

// posted is the place of a receive in matching.
type posted struct {
	order      uint64 // of posting
	entry      *entry
	next, prev *Xfer
}

// xferList is a queue of receives.
type xferList struct{ head, tail *Xfer }

func (l *xferList) push(x *Xfer) {
	x.prev, x.next = l.tail, nil
	if l.tail != nil {
		l.tail.next = x
	} else {
		l.head = x
	}
	l.tail = x
}

func (l *xferList) remove(x *Xfer) {
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		l.head = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	} else {
		l.tail = x.prev
	}
	x.next, x.prev = nil, nil
}

// msgList is a queue of messages; kind selects which of a message's nodes it uses.
type msgList struct {
	head, tail *Msg
	kind       int
}

func (l *msgList) push(g *Msg) {
	n := &g.nodes[l.kind]
	n.on, n.prev, n.next = l, l.tail, nil
	if l.tail != nil {
		l.tail.nodes[l.kind].next = g
	} else {
		l.head = g
	}
	l.tail = g
}

func (l *msgList) remove(g *Msg) {
	n := &g.nodes[l.kind]
	if n.prev != nil {
		n.prev.nodes[l.kind].next = n.next
	} else {
		l.head = n.next
	}
	if n.next != nil {
		n.next.nodes[l.kind].prev = n.prev
	} else {
		l.tail = n.prev
	}
	*n = msgNode{}
}
