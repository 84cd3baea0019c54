package mpi

// Barrier (MPI-4.1 section 6.3).

import (
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// Barrier returns when all ranks have called it.
func Barrier(c *Comm) error {
	if done, err := c.quickBarrier(); done {
		return err
	}
	if err := c.usable("Barrier"); err != nil {
		return err
	}
	return c.barrier("Barrier")
}

// Ibarrier starts a [Barrier]: the request is complete when all ranks have called it.
func Ibarrier(c *Comm) Request {
	k := barrierCall("Ibarrier")
	return c.started(&k, c.usable("Ibarrier"))
}

// BarrierInit prepares a [Barrier].
func BarrierInit(c *Comm) *Persistent {
	k := barrierCall("BarrierInit")
	return c.prepared(&k, c.usable("BarrierInit"))
}

func barrierCall(name string) collCall {
	return collCall{name: name, key: planKey{kind: coll.Barrier}}
}

// barrier uses the counter of the board, if there is one and ranks share cores: then each
// message costs a context switch, and the counter needs hardly any.
func (c *Comm) barrier(op string) error {
	if c == c.w.comm && c.onSharedCores() {
		// The board counts arrivals, and an earlier failed call may have left some.
		if err := c.e.Broken(c.co.Ctx); err != nil {
			return c.failure(err, op, ProcNull, noTag, 0)
		}
		if opening, last := c.e.Arrive(); opening != 0 {
			c.w.gates++
			c.noteCallUnlocked(coll.MakeCall(coll.Barrier, coll.Blocking, coll.NoRoot, 0))
			a := c.arrive(coll.Barrier, op, 0)
			err := c.gateBarrier(op, opening, last)
			a.leave(err)
			return err
		}
	}
	k := barrierCall(op)
	return c.blocking(&k)
}

// onSharedCores reports whether the job has one host and more ranks than cores there. The
// ranks of one host agree about that; those of several hosts may not.
func (c *Comm) onSharedCores() bool {
	return c.w.client.LocalSize() == c.w.comm.size && c.e.Oversubscribed()
}

// gateBarrier is the barrier of the world when all its ranks share a host and a board: no
// message is sent unless a rank sleeps. The message that wakes it carries the source rank
// 0, because a sleeping rank cannot know which rank will be last.
func (c *Comm) gateBarrier(op string, opening uint64, last bool) error {
	release := c.co
	release.Rank = 0
	if last {
		return c.e.OpenGate(opening, func(rank int) error {
			if err := c.e.Send(&release, op, rank, releaseTag, nil, p2p.Standard); err != nil {
				return c.failure(err, op, rank, noTag, 0)
			}
			return nil
		})
	}
	if c.e.AwaitGate(opening, c.co.Ctx) {
		return nil
	}
	if _, err := c.e.Recv(&release, op, engine.Anyone, 0, releaseTag, nil); err != nil {
		return c.failure(err, op, ProcNull, noTag, 0)
	}
	return nil
}
