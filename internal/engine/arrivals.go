package engine

// Arrival tracking: which peers have entered a collective. Sends of its graph that
// may go in any order go first to peers that have arrived (sched.ArrivalTracker,
// T2 6.4.1). No extra message is needed; a peer has arrived if it sent
//
//	an offer    it has posted the receive of our message and sent an RTR. Receives of
//	            such a graph therefore offer their buffers (T1 4.2). This corresponds to
//	            the thesis' zero-copy scheme, where the buffer's address signals arrival
//	a message   of this collective, complete or announced by an RTS. This corresponds
//	            to the copy scheme, where the data signals arrival
//
// If the messages of all peers are more than the port of this rank delivers at once
// (Comm.Grant), they are announced by an RTS each, whatever their length, and their
// transfers start as others end (p2p.Grants). Such receives offer no buffers: the offer
// would permit its sender to write at any time.
//
// work calls serveHeld to check for both while sends are held back. The speculation
// history of p2p stops offers for an envelope whose senders always arrive first
// (decision 016).

import (
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/sched"
)

// arrivals records which peers of a collective have arrived.
type arrivals struct {
	arrived  []bool      // by rank of the graph: the peer has arrived in this run
	answer   []int32     // by operation: for an unordered send, the first receive from its peer, or -1
	blocking bool        // the caller blocks until the run ends
	grants   *p2p.Grants // of the receives over a network; nil: no limit
	holds    bool        // counted in Engine.held
}

// trackArrivals prepares a collective whose graph has unordered sends.
func (co *Collective) trackArrivals() {
	g := co.run.Graph
	c := &arrivals{arrived: make([]bool, g.Size), answer: make([]int32, len(g.Ops))}
	first := make([]int32, g.Size)
	for i := range first {
		first[i] = -1
	}
	received := 0
	for i := len(g.Ops) - 1; i >= 0; i-- {
		if op := &g.Ops[i]; op.Kind == sched.Recv {
			first[co.run.Peer(op)] = int32(i)
			received += op.Dst.Len
		}
	}
	for i := range g.Ops {
		c.answer[i] = -1
		if op := &g.Ops[i]; op.Unordered {
			c.answer[i] = first[co.run.Peer(op)]
		}
	}
	co.arrivals, co.run.Arrivals = c, co
	if limit := co.Comm.Grant; limit > 0 && received > limit {
		c.grants = &p2p.Grants{Limit: limit}
	}
}

// leastAnnounced is the length from which messages of a collective with grants are announced.
const leastAnnounced = 4 << 10

// grants returns what limits the messages of a link, nil if nothing does.
func (co *Collective) grants(l *p2p.Link) *p2p.Grants {
	if co.arrivals == nil || co.e.lanes[l.Dev].local {
		return nil
	}
	return co.arrivals.grants
}

func (c *arrivals) reset(blocking bool) {
	clear(c.arrived)
	c.blocking = blocking
}

// announce offers the buffer of a posted receive, which tells its sender that this
// rank has arrived.
func (co *Collective) announce(x *p2p.Xfer) {
	if co.arrivals.blocking {
		co.e.m.OfferBlocking(x)
	} else {
		co.e.m.Offer(x)
	}
}

// noteArrived records the peer of a completed receive as arrived.
func (co *Collective) noteArrived(op *sched.Op) {
	if co.arrivals != nil && op.Kind == sched.Recv {
		co.arrivals.arrived[co.run.Peer(op)] = true
	}
}

// Arrived reports whether the peer of an unordered send has arrived.
func (co *Collective) Arrived(_ *sched.Run, id int, op *sched.Op) bool {
	c, p := co.arrivals, &co.parts[id]
	if c.arrived[co.run.Peer(op)] {
		return true
	}
	if p.link == nil {
		p.link = co.e.link(co.world(co.run.Peer(op)))
	}
	if i := c.answer[id]; i >= 0 && co.parts[i].x != nil && co.parts[i].x.Announced() ||
		p.x == nil && p.link.HasOffer(co.Comm.Ctx, co.tag(op)) {
		c.arrived[co.run.Peer(op)] = true
		return true
	}
	return false
}

// noteHeld updates the count of collectives that hold sends back.
func (e *Held) noteHeld(co *Collective) {
	if holds := co.run.CountHeld() > 0 && co.run.Err() == nil; holds != co.arrivals.holds {
		co.arrivals.holds = holds
		if holds {
			e.colls.held++
		} else {
			e.colls.held--
		}
	}
}

// Overtaken returns how many sends of collectives have overtaken others because
// their peers had arrived.
func (r *Engine) Overtaken() uint64 {
	e := r.lock()
	defer e.unlock()
	return e.colls.overtakenNow()
}

// overtakenNow includes the sends of collectives under way.
func (s *collectives) overtakenNow() uint64 {
	n := s.overtaken
	for _, co := range s.active {
		n += uint64(co.run.Overtaken())
	}
	return n
}

// noteFinished updates the counters at the end of a run.
func (e *Held) noteFinished(co *Collective) {
	e.colls.overtaken += uint64(co.run.Overtaken())
	if co.arrivals.holds {
		co.arrivals.holds = false
		e.colls.held--
	}
}

// serveHeld starts held sends whose peers have arrived. A run that ends removes
// itself from the list; the last entry takes its index and has been served already.
func (e *Held) serveHeld() {
	for i := len(e.colls.active) - 1; i >= 0; i-- {
		if co := e.colls.active[i]; co.arrivals != nil && co.arrivals.holds {
			co.run.Serve()
			e.checkRun(co)
		}
	}
}

// Meter measures how evenly ranks arrive at collectives. It is called with the lock
// held and must not call the engine.
type Meter interface {
	Begin(now int64)        // a run starts; now is in nanoseconds
	Event(now int64)        // a message has completed
	End(now int64)          // the run has ended
	RecordServed(early int) // a run with unordered sends has ended; early counts the sends that overtook others
}

func (s *setup) now() int64 { return int64(time.Since(s.began)) }

// reportRun reports a finished run to the meter, once.
func (e *Held) reportRun(co *Collective) {
	if co.Timed {
		co.Meter.End(e.now())
	}
	if co.arrivals != nil {
		co.Meter.RecordServed(co.run.Overtaken())
	}
	co.Meter, co.Timed = nil, false
}
