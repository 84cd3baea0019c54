package mpi

// Barrier (MPI-4.1 section 6.3).

import (
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// Barrier returns when every rank has called it.
func Barrier(c *Comm) error {
	if done, err := c.quickBarrier(); done {
		return err
	}
	if err := c.usable("Barrier"); err != nil {
		return err
	}
	return c.barrier("Barrier")
}

// Ibarrier starts a barrier: the request ends when every rank has called it.
func Ibarrier(c *Comm) Request {
	k := barrierCall("Ibarrier")
	return c.started(&k, c.usable("Ibarrier"))
}

// BarrierInit prepares a barrier.
func BarrierInit(c *Comm) *Persistent {
	k := barrierCall("BarrierInit")
	return c.prepared(&k, c.usable("BarrierInit"))
}

func barrierCall(name string) collCall {
	return collCall{name: name, key: planKey{kind: coll.Barrier}}
}

// barrier goes through the gate, if there is one and ranks share cores: then each
// message costs a context switch, and the gate needs hardly any.
func (c *Comm) barrier(op string) error {
	if c == c.w.comm && c.onSharedCores() {
		// The gate counts who comes, and somebody may have come in vain before.
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

// onSharedCores reports whether the job has one host and more ranks than cores there.
// Ranks of one host agree about that; those of several may not.
func (c *Comm) onSharedCores() bool {
	return c.w.client.LocalSize() == c.w.comm.size && c.e.Oversubscribed()
}

// gateBarrier is the barrier of the world when all its ranks share a machine and a
// board: no message is sent unless somebody sleeps. Such a message comes in the
// name of rank 0, since the sleeper cannot know who will be last.
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
