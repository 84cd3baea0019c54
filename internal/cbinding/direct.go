package cbinding

import (
	"github.com/muster-mpi/muster/internal/direct"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/rankset"
)

// Direct is what the front needs to send and receive short messages of a communicator without
// entering Go.
type Direct struct {
	Progress *engine.Engine
	// Context identifies the communicator in messages.
	Context uint32
	// Ranks are those of the communicator in the world.
	Ranks *rankset.List
}

// Engine stores pointers to the words of the rank's engine, which it pins. It returns the owner of its
// lock, 0 unless that is the caller, and the number of polls before a waiter yields the
// core.
func (d Direct) Engine(t *direct.Engine, pins *direct.Pins) (owner uintptr, spin int) {
	return d.Progress.Direct(t, pins), d.Progress.Spin()
}

// RunLocked calls f with the engine locked: the front does nothing meanwhile.
func (d Direct) RunLocked(f func()) {
	defer d.Progress.Hold().Release()
	f()
}
