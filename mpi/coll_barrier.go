package mpi

// Barrier (MPI-4.1 section 6.3).

import (
	"fmt"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/pmi"
)

// Barrier returns when all ranks have called it.
func (c *Comm) Barrier() error {
	if done, err := c.quickBarrier(); done {
		return err
	}
	if err := c.usable("Barrier"); err != nil {
		return err
	}
	h := c.begin("Barrier", CallCollective, ProcNull, AnyTag, 0)
	return h.finish(c.barrier("Barrier"))
}

// Ibarrier starts a [Comm.Barrier]: the request is complete when all ranks have called it.
func (c *Comm) Ibarrier() Request { return collArgs[byte]{c: c, kind: coll.Barrier}.start() }

// BarrierInit prepares a [Comm.Barrier].
func (c *Comm) BarrierInit() *Persistent { return collArgs[byte]{c: c, kind: coll.Barrier}.prepare() }

func barrierCall(name string) collCall {
	return collCall{name: name, key: planKey{kind: coll.Barrier}}
}

func (c *Comm) barrier(op string) error {
	k := barrierCall(op)
	return c.synchronize(&k)
}

// finalize is the barrier of Finalize.
func (c *Comm) finalize() error {
	k := barrierCall("Finalize")
	k.leaving = true
	return c.synchronize(&k)
}

// synchronize uses the counter of the board where the table says so (coll.Gate).
func (c *Comm) synchronize(k *collCall) error {
	op := k.name
	if err := c.checkCall(k, coll.Blocking); err != nil {
		return err
	}
	if c.nodeState().gate {
		// The board counts arrivals, and an earlier failed call may have left some.
		if err := c.e.CheckComm(c.co.Ctx); err != nil {
			return c.failure(err, op, ProcNull, noTag, 0)
		}
		c.openHistory()
		c.past.Add(k.call(c, coll.Blocking))
		opening, arrival := c.e.Arrive(c.past.Hash())
		c.w.gates++
		a := c.arrive(coll.Barrier, op, 0)
		err := c.gateBarrier(op, opening, arrival)
		a.leave(err)
		return err
	}
	k.inner = true
	return blocking[byte](c, k, nil)
}

// gateBarrier is the barrier of the world when all its ranks share a host and a board: no
// message is sent unless a rank sleeps. The message that wakes it carries the source rank
// 0, because a sleeping rank cannot know which rank will be last.
func (c *Comm) gateBarrier(op string, opening uint64, arrival pmi.Arrival) error {
	release := c.co
	release.Rank = 0
	switch arrival {
	case pmi.ArrivedAmiss:
		err := c.e.BreakAmiss(&c.co, &gateError{rank: c.rank, op: op})
		return c.failure(err, op, ProcNull, noTag, 0)
	case pmi.ArrivedLast:
		return c.e.OpenGate(opening, func(rank int) error {
			if err := c.e.Send(&release, op, rank, engine.ReleaseTag, nil, p2p.Standard); err != nil {
				return c.failure(err, op, rank, noTag, 0)
			}
			return nil
		})
	}
	if c.e.AwaitGate(opening, c.co.Ctx) {
		return nil
	}
	if _, err := c.e.Recv(&release, op, engine.Anyone, 0, engine.ReleaseTag, nil); err != nil {
		return c.failure(err, op, ProcNull, noTag, 0)
	}
	return nil
}

// gateError reports that ranks have arrived at the gate in different calls.
type gateError struct {
	rank int
	op   string
}

func (g *gateError) Error() string {
	return fmt.Sprintf("not all ranks have made the same collective calls before %s, where rank %d was the last to arrive; "+
		"check mode (MUSTER_CHECK=on) reports the first that differs", g.op, g.rank)
}
