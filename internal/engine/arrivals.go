package engine

// Who has arrived at a collective, for the sends of its graph that may go in any
// order (sched.ArrivalTracker, T2 6.4.1). No message is sent for it:
//
//	an offer    the peer has posted the receive of our message and sent an RTR; so
//	            receives of such a graph are offered (T1 4.2). This is the zero-copy
//	            scheme of the thesis, where the address of a buffer is the news
//	a message   of this collective from the peer, whole or announced by an RTS: the
//	            copy scheme, where the data is the news
//
// Both are looked for when sends are held back and something has come: work calls
// serveHeld. Whether offers are worth sending is seen by p2p's habits, which stop
// them for an envelope whose senders are always first (decision 016).

import (
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/sched"
)

// crowd is what a collective knows of its peers.
type crowd struct {
	came   []bool  // by rank of the graph: a message of this run has come from it
	answer []int32 // by operation: of a loose send, the first receive from the same peer, or -1
	stays  bool    // the caller does nothing but wait
	holds  bool    // counted in Engine.held
}

// gatherCrowd prepares a collective whose graph has loose sends.
func (co *Collective) gatherCrowd() {
	g := co.run.Graph
	c := &crowd{came: make([]bool, g.Size), answer: make([]int32, len(g.Ops))}
	first := make([]int32, g.Size)
	for i := range first {
		first[i] = -1
	}
	for i := len(g.Ops) - 1; i >= 0; i-- {
		if op := &g.Ops[i]; op.Kind == sched.Recv {
			first[op.Peer] = int32(i)
		}
	}
	for i := range g.Ops {
		c.answer[i] = -1
		if op := &g.Ops[i]; op.Unordered {
			c.answer[i] = first[op.Peer]
		}
	}
	co.crowd, co.run.Arrivals = c, co
}

func (c *crowd) reset(stays bool) {
	clear(c.came)
	c.stays = stays
}

// tell lets the sender of a receive that waits know that this rank is there.
func (co *Collective) tell(x *p2p.Xfer) {
	if co.crowd.stays {
		co.e.m.OfferStaying(x)
	} else {
		co.e.m.Offer(x)
	}
}

// heard notes that a message of the run has ended.
func (co *Collective) heard(op *sched.Op) {
	if co.crowd != nil && op.Kind == sched.Recv {
		co.crowd.came[op.Peer] = true
	}
}

// Arrived reports whether the peer of a loose send has arrived.
func (co *Collective) Arrived(_ *sched.Run, id int, op *sched.Op) bool {
	c, p := co.crowd, &co.parts[id]
	if c.came[op.Peer] {
		return true
	}
	if p.link == nil {
		p.link = co.e.link(co.world(op.Peer))
	}
	if i := c.answer[id]; i >= 0 && co.parts[i].x != nil && co.parts[i].x.Announced() ||
		p.x == nil && p.link.Awaits(co.Comm.Ctx, co.tag(op)) {
		c.came[op.Peer] = true
		return true
	}
	return false
}

// noteHeld counts a collective among those that hold sends back, or not any more.
func (e *Engine) noteHeld(co *Collective) {
	if holds := co.run.Held() > 0 && co.run.Err() == nil; holds != co.crowd.holds {
		co.crowd.holds = holds
		if holds {
			e.held++
		} else {
			e.held--
		}
	}
}

// Overtaken is how many sends of collectives have gone before others so far, because
// their peers had arrived. The lock is held.
func (e *Engine) Overtaken() uint64 {
	n := e.overtaken
	for _, co := range e.active {
		n += uint64(co.run.Overtaken())
	}
	return n
}

// noteOver is for the end of a run.
func (e *Engine) noteOver(co *Collective) {
	e.overtaken += uint64(co.run.Overtaken())
	if co.crowd.holds {
		co.crowd.holds = false
		e.held--
	}
}

// serveHeld lets sends go whose peers have arrived. A run that ends takes itself off
// the list, and the last one has its place, which was served already.
func (e *Engine) serveHeld() {
	for i := len(e.active) - 1; i >= 0; i-- {
		if co := e.active[i]; co.crowd != nil && co.crowd.holds {
			co.run.Serve()
			e.moved(co)
		}
	}
}

// Meter learns from the runs of collectives how evenly ranks come to them. It is
// called with the lock held and must not call the engine.
type Meter interface {
	Begin(now int64)  // in nanoseconds since some moment
	Event(now int64)  // a message has ended
	End(now int64)    // of the run
	Served(early int) // of a run with loose sends, timed or not: how many went before others
}

func (e *Engine) now() int64 { return int64(time.Since(e.began)) }

// measured tells the meter of a run that is over, once.
func (e *Engine) measured(co *Collective) {
	if co.Timed {
		co.Meter.End(e.now())
	}
	if co.crowd != nil {
		co.Meter.Served(co.run.Overtaken())
	}
	co.Meter, co.Timed = nil, false
}
