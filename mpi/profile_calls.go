package mpi

// The profile of calls (Config.Profile): how often and how long the rank was in each call
// of each call site, the lengths of its messages, for which peers it waited, and how often
// it sent from the same buffer (T1 table 5.1). It observes the calls that hooks see. What
// happens between the start of an operation and its end is in profile_overlap.go.
//
//	begin      finds the call site and reads the clock
//	complete   adds the time since the wait began, or since the completion before, to the
//	           peer of the operation
//	end        adds the call to the statistics of its site
//
// Statistics are sums in memory of the rank; a call allocates nothing.

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/prof"
)

// callProfile holds the statistics of a rank.
type callProfile struct {
	base  time.Time
	sites siteTable
	fromC atomic.Bool // the calls come from C

	mu      sync.Mutex // guards what follows, and the statistics of sites
	peers   []peerWait // by rank in the world, as far as needed
	buffers bufferUses
	outer   outerCall
	app     appTime
}

// peerWait counts the waits for a peer.
type peerWait struct{ waits, time uint64 }

// outerCall is a call of C, which may make several calls of this package or none.
type outerCall struct {
	name    string
	pc      uintptr
	counted bool // a call of this package was counted as this one
}

// timedCall is the part of a hookedCall that the profile uses. Times are in ns.
type timedCall struct {
	site   *callSite
	comm   *Comm
	begin  int64
	marked int64 // until when a wait belongs to peers that have been added
	done   int64 // when the operation that the call started was completed; 0: not known
	bytes  int
	peer   int
	buffer uintptr // of a short message that the call sends; else 0
	length int     // of the buffer
	kind   CallKind
	starts bool
	again  bool   // it is counted as a call of C already
	start  moment // if it starts an operation: when it returned
	over   moment // and when the operation completed; zero: not known, or before
}

func newCallProfile() *callProfile {
	p := &callProfile{base: time.Now()}
	p.sites.unknown.name = "other"
	return p
}

func (p *callProfile) now() int64 { return int64(time.Since(p.base)) }

// begin is called when a call begins.
func (p *callProfile) begin(c *timedCall, call *Call) {
	*c = timedCall{comm: call.Comm, bytes: call.Bytes, peer: call.Peer, kind: call.Kind, starts: call.Starts}
	if p.fromC.Load() {
		o := p.count()
		c.site, c.again = p.sites.foreign(o.pc, o.name, call.Kind), o.counted
	} else {
		c.site = p.sites.siteOf(call.Name, call.Kind)
	}
	c.begin = p.now()
	c.marked = c.begin
	p.mu.Lock()
	p.app.enter(c.begin, c.kind)
	p.mu.Unlock()
}

// end is called when a call returns. Calls that failed count as the others.
func (p *callProfile) end(c *timedCall, st Status, err error) {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.app.leave(now, c.kind)
	c.start = p.app.moment()
	s := c.site
	if !c.again {
		s.calls++
	}
	took := uint64(now - c.begin)
	s.time += took
	s.longest = max(s.longest, took)
	if c.buffer != 0 {
		p.buffers.count(c.buffer, c.length)
	}
	switch c.kind {
	case CallSend, CallSendrecv, CallCollective, CallAccess, CallPartitioned:
		s.message(c.bytes)
	case CallRecv, CallMrecv:
		if !c.starts && err == nil && st.Source >= 0 {
			s.message(st.Bytes)
		}
	}
	if c.starts || err != nil {
		return
	}
	switch c.kind {
	case CallSend, CallAccess:
		p.addWait(c.comm, c.peer, took)
	case CallRecv, CallMrecv, CallSendrecv, CallProbe:
		p.addWait(c.comm, st.Source, took)
	}
}

// complete is called when the call by has completed the operation that the call c started.
func (p *callProfile) complete(c, by *timedCall, st Status, err error) {
	if c == by || err != nil {
		return // nothing was waited for
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	peer := c.peer
	if c.kind == CallRecv || c.kind == CallMrecv || c.kind == CallSendrecv {
		if peer = st.Source; peer >= 0 && c.kind != CallSendrecv {
			c.site.message(st.Bytes)
		}
	}
	if c.counts(st) {
		c.site.overlap.Add(overlap(c.start, c.over, by.begin))
	}
	if by.kind != CallWait {
		return
	}
	at := c.done
	if at == 0 {
		at = p.now()
	}
	if c.kind != CallCollective && at > by.marked {
		p.addWait(c.comm, peer, uint64(at-by.marked))
	}
	by.marked = max(by.marked, at)
}

// noteArrival notes when one of several requests is complete. They are waited for in order, so
// the time since the one before belongs to its peer.
func (h *hookedCall) noteArrival() {
	if h != nil && h.w.watch.calls != nil {
		h.timed.done = h.w.watch.calls.now()
	}
}

// addWait adds a wait for a rank of the communicator.
func (p *callProfile) addWait(c *Comm, rank int, nanos uint64) {
	if rank < 0 || rank >= c.size {
		return
	}
	if rank = c.world(rank); rank >= len(p.peers) {
		p.peers = append(p.peers, make([]peerWait, rank+1-len(p.peers))...)
	}
	p.peers[rank].waits++
	p.peers[rank].time += nanos
}

// message counts a message, or the data of a call.
func (s *callSite) message(bytes int) {
	n := uint64(max(bytes, 0))
	if s.messages == 0 || n < s.shortest {
		s.shortest = n
	}
	s.messages++
	s.bytes += n
	s.largest = max(s.largest, n)
	s.sizes[min(bits.Len64(n), prof.SizeClasses-1)]++
}

// enter tells the profile that a function of C is called and where it returns to. If several
// threads are in calls at the same time, a call may be counted for another of them.
func (p *callProfile) enter(name string, pc uintptr) {
	p.mu.Lock()
	p.outer = outerCall{name: name, pc: pc}
	p.mu.Unlock()
}

// count returns the call of C that is under way, and marks it as counted.
func (p *callProfile) count() outerCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.outer
	p.outer.counted = true
	return o
}

// addTo adds the statistics to the counters of the rank.
func (p *callProfile) addTo(c *prof.Counters) {
	p.sites.mu.Lock()
	all := append([]*callSite{&p.sites.unknown}, p.sites.all...)
	p.sites.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	resolve := prof.NewObjects()
	total := uint64(0)
	for _, s := range all {
		if s.calls+s.time == 0 {
			continue
		}
		total += s.time
		site := prof.CallSite{Routine: s.name, Kind: s.kind.String(), Site: s.line, Function: s.function, Longest: s.longest}
		if s.pc != 0 {
			site.Object, site.Offset = resolve.Locate(s.pc - 1)
		}
		site.Set(c.Rank, s.calls, s.time, s.messages, s.bytes)
		site.Shortest, site.Largest, site.Overlap = s.shortest, s.largest, s.overlap
		for class, n := range s.sizes {
			if n > 0 {
				site.Sizes = append(site.Sizes, prof.ClassCount{Class: class, Count: uint64(n)})
			}
		}
		c.Sites = append(c.Sites, site)
	}
	c.Add(prof.TimeInCalls, total)
	for rank, w := range p.peers {
		if w.waits > 0 {
			c.Waits = append(c.Waits, prof.Wait{Rank: c.Rank, For: rank, Calls: w.waits, Nanos: w.time})
		}
	}
	p.buffers.addTo(c)
}
