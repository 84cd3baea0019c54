package inspect

import (
	"github.com/muster-mpi/muster/internal/direct"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/rankset"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/internal/hook"
)

// Direct is what the C interface needs to send and receive short messages without entering
// Go. It is of no use to other programs.
type Direct struct {
	e *engine.Engine
	// Context identifies the communicator in messages.
	Context uint32
	ranks   *rankset.List
}

// DirectOf returns the Direct of a communicator, and whether its short messages need not
// pass package mpi.
func DirectOf(c *mpi.Comm) (d Direct, ok bool) {
	e, pt, ranks := hook.Get().Direct(c)
	if e == nil {
		return d, false
	}
	return Direct{e: e, Context: pt.Ctx, ranks: ranks}, true
}

// World returns the rank in the world of a rank of the communicator, Table those of all
// ranks, nil if they are equal.
func (d Direct) World(rank int) int { return d.ranks.At(rank) }
func (d Direct) Table() []int32     { return d.ranks.Table() }

// Engine stores pointers to the words of the rank's engine, which it pins. It returns the owner of its
// lock, 0 unless that is the caller, and the number of polls before a waiter yields the
// core.
func (d Direct) Engine(t *direct.Engine, pins *direct.Pins) (owner uintptr, spin int) {
	return d.e.Direct(t, pins), d.e.Spin()
}

// Peer stores pointers to the words of a rank of the world, which it pins.
func (d Direct) Peer(world int, t *direct.Peer, pins *direct.Pins) bool {
	return d.e.DirectPeer(world, t, pins)
}

// Wake wakes a rank of the world that slept when a message was stored for it.
func (d Direct) Wake(world int) { d.e.DirectWake(world) }

// RunLocked calls f with the engine locked: the C front does nothing meanwhile.
func (d Direct) RunLocked(f func()) {
	d.e.Lock()
	defer d.e.Unlock()
	f()
}

// ProfileFromC returns a function that the C interface calls before each call: it tells the
// profile and check mode the name of the function of C and the address to which it returns. The
// result is nil if the job has neither.
func ProfileFromC(w *mpi.World) func(name string, site uintptr) { return hook.Get().ProfileFromC(w) }

// Checks reports whether the job is in check mode.
func Checks(w *mpi.World) bool { return hook.Get().Checks(w) }

// MessageFromC returns the communicator for a message that the C interface sends or receives in
// check mode: errors name the function of C, the datatype and the place to which it returns.
// Messages of the same datatype match, and all match one without.
func MessageFromC(c *mpi.Comm, name, datatype string, site uintptr) *mpi.Comm {
	return hook.Get().MessageFromC(c, name, datatype, site).(*mpi.Comm)
}
