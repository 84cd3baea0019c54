package engine

// The counters of a rank: those of the machine, the links, the devices and the
// registration caches, and the memory that the engine uses. The engine's lock guards
// them; gathering takes microseconds and happens on request.

import (
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/prof"
	"github.com/muster-mpi/muster/rdma"
)

// waitStats counts what waits did after they had spun. Shorter waits are not timed: they
// take no longer than reading the clock.
type waitStats struct {
	total   time.Duration // of waits that have yielded and ended
	begun   int           // waits that have yielded and are under way
	begins  time.Duration // sum of their begins, by Engine.clock
	times   uint64        // number of them
	yields  uint64
	parks   uint64
	blocked uint64        // parks with packets that the device had no room for
	late    uint64        // parks that ended by their timeout although there was something to do
	longest time.Duration // between two polls of a wait that yields
	stalls  uint64        // such times above stallTime
}

// totalAt returns the time of all waits until now.
func (w *waitStats) totalAt(now time.Duration) time.Duration {
	return w.total + time.Duration(w.begun)*now - w.begins
}

// stallTime is more than the time slices of the other ranks take on a shared core.
const stallTime = 5 * time.Millisecond

// gap records the time between two polls.
func (w *waitStats) gap(d time.Duration) {
	if d > w.longest {
		w.longest = d
	}
	if d > stallTime {
		w.stalls++
	}
}

// Counters returns the counters of this rank.
func (r *Engine) Counters() prof.Counters {
	e := r.lock()
	defer e.unlock()
	return e.counters()
}

// Sample returns the counters to a goroutine in the background. It borrows the lock, so the
// application's goroutine stays the lock's owner, and the front of C keeps its direct path.
func (r *Engine) Sample() prof.Counters {
	e := r.borrowWanted()
	defer e.mu.giveBack()
	return e.counters()
}

func (e *Held) counters() prof.Counters {
	c := prof.Counters{Rank: e.rank, Host: e.client.Host()}
	c.Add(prof.TimeRunning, uint64(time.Since(e.began)))
	c.Add(prof.TimeWaiting, uint64(e.waits.stats.totalAt(e.clock())))
	c.Add(prof.Waits, e.waits.stats.times)
	c.Add(prof.WaitYields, e.waits.stats.yields)
	c.Add(prof.WaitParks, e.waits.stats.parks)
	c.Add(prof.WaitParksBlocked, e.waits.stats.blocked)
	c.Add(prof.WaitParksLate, e.waits.stats.late)
	c.Add(prof.WaitStalls, e.waits.stats.stalls)
	c.Add(prof.TimeLongestGap, uint64(e.waits.stats.longest))
	c.Add(prof.CollectivesByMessages, e.colls.started)
	c.Add(prof.CollectivesAware, e.colls.aware)
	c.Add(prof.CollectivesEarly, e.colls.overtakenNow())
	if e.client.LocalRank() == 0 {
		c.Add(prof.Hosts, 1)
	}
	e.countMessages(&c)
	e.countLinks(&c)
	e.m.Packets(e.eachLink, func(kind string, n uint64) { c.Add(prof.PacketsSent(kind), n) })
	e.countMemory(&c)
	for _, d := range e.lanes {
		d.count(&c)
	}
	if e.thread != nil {
		s := e.thread.stats
		c.Add(prof.BackgroundDuties, s.Duties)
		c.Add(prof.BackgroundWakes, s.Wakes)
		c.Add(prof.BackgroundServed, s.Served)
	}
	return c
}

// countMessages adds the lengths of sent messages.
func (e *Held) countMessages(c *prof.Counters) {
	sizes := e.m.Sizes()
	for p, name := range p2p.Protocols() {
		for class, n := range sizes[p] {
			if n.Messages > 0 {
				c.AddSizes(name, class, n.Messages, n.Bytes)
			}
		}
	}
}

func (e *Held) countLinks(c *prof.Counters) {
	var s p2p.LinkStats
	talked := uint64(0)
	for _, l := range e.links.byRank {
		t := &l.Stats
		s.Sent, s.BytesSent = s.Sent+t.Sent, s.BytesSent+t.BytesSent
		s.Received, s.BytesRx = s.Received+t.Received, s.BytesRx+t.BytesRx
		s.Unexpected += t.Unexpected
		s.NoCredit += t.NoCredit
		s.ControlBytes += t.ControlBytes
		s.RingSent, s.RingReceived = s.RingSent+t.RingSent, s.RingReceived+t.RingReceived
		s.RingDirect += t.RingDirect
		s.Held, s.Duplicates = s.Held+t.Held, s.Duplicates+t.Duplicates
		s.RTRSent, s.RTRUsed, s.RTRWasted = s.RTRSent+t.RTRSent, s.RTRUsed+t.RTRUsed, s.RTRWasted+t.RTRWasted
		s.RTRRevoked, s.RTRStopped, s.RTRStale = s.RTRRevoked+t.RTRRevoked, s.RTRStopped+t.RTRStopped, s.RTRStale+t.RTRStale
		if l.Rank != e.rank && t.Sent+t.Received > 0 {
			talked++
		}
		if t.Sent > 0 {
			c.Peers = append(c.Peers, prof.Pair{From: e.rank, To: l.Rank, Messages: t.Sent, Bytes: t.BytesSent})
		}
	}
	// Messages without a receive do not count as received. At the end of a job, these are
	// the first messages of ranks that leave it already.
	waiting, bytes := e.m.Waiting()
	c.Add(prof.MessagesSent, s.Sent)
	c.Add(prof.MessagesReceived, s.Received-waiting)
	c.Add(prof.MessagesUnexpected, s.Unexpected-waiting)
	c.Add(prof.MessagesWaiting, waiting)
	c.Add(prof.MessagesNoCredit, s.NoCredit)
	c.Add(prof.BytesSent, s.BytesSent)
	c.Add(prof.BytesReceived, s.BytesRx-bytes)
	c.Add(prof.BytesControl, s.ControlBytes)
	c.Add(prof.PacketsHeld, s.Held)
	c.Add(prof.PacketsDuplicate, s.Duplicates)
	c.Add(prof.PacketsByRing, s.RingSent)
	c.Add(prof.BuffersByRing, s.RingDirect)
	c.Add(prof.OffersMade, s.RTRSent)
	c.Add(prof.OffersUsed, s.RTRUsed)
	c.Add(prof.OffersWasted, s.RTRWasted)
	c.Add(prof.OffersRevoked, s.RTRRevoked)
	c.Add(prof.OffersWithheld, s.RTRStopped)
	c.Add(prof.OffersLate, s.RTRStale)
	c.Add(prof.PeersTalkedTo, talked)
	c.Add(prof.AddressesFetched, uint64(e.links.cards))
}

func (e *Held) eachLink(visit func(*p2p.Link)) {
	for _, l := range e.links.byRank {
		visit(l)
	}
}

func (e *Held) countMemory(c *prof.Counters) {
	f := e.m.Footprint(e.eachLink)
	c.Add(prof.MemoryLinks, uint64(f.Links))
	c.Add(prof.Name(rdma.MemoryRings), uint64(f.Rings))
	c.Add(prof.MemoryOperations, uint64(f.Operations))
	c.Add(prof.MemoryMatching, uint64(f.Matching))
	c.Add(prof.MemoryUnexpected, uint64(f.UnexpectedPeak))
	c.Add(prof.MemoryScratch, uint64(e.scratch.bytes()))
}

// count adds the counters of a lane's device and registration cache.
func (d *lane) count(c *prof.Counters) {
	c.Devices = append(c.Devices, d.attr.Name)
	c.Add(prof.Name(rdma.PeersRinged), uint64(len(d.rings)))
	if d.caps.Count != nil {
		d.caps.Count(func(name rdma.Counter, value uint64) { c.Add(prof.Name(name), value) })
	}
	if d.pool != nil {
		d.countBuffers(c)
	}
	if d.regs != nil {
		s := d.regs.Stats()
		c.Add(prof.MemoryRegistered, uint64(s.Bytes))
		c.Add(prof.RegistrationsHit, s.Hits)
		c.Add(prof.RegistrationsMissed, s.Misses)
		c.Add(prof.RegistrationsEvicted, s.Evicted+s.Aged+s.Retired)
	}
	if d.stages != nil {
		c.Add(prof.Name(rdma.MemorySend), uint64(d.stages.bytes()))
	}
	if d.sources != nil {
		s, t := d.sources.stats, d.sources.uses.Stats()
		c.Add(prof.BuffersDirect, s.Direct)
		c.Add(prof.BuffersCollective, s.Collective)
		c.Add(prof.BuffersCopied, s.Copied)
		c.Add(prof.BuffersRefused, s.Refused)
		c.Add(prof.BuffersKnown, uint64(t.Buffers))
		c.Add(prof.BuffersFrequent, uint64(t.Frequent))
	}
}
