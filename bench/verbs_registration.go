package bench

// The cost of registering memory with a device. The leader measures; the follower exists
// because some devices register only with a queue pair.

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

func leadRegistration(_ *VerbsSession, w wire, t *verbsTrial) ([]figure, error) {
	r, ok := w.(remoteWire)
	if !ok || r.lossy() {
		return nil, fmt.Errorf("%w: it has no registration", rdma.ErrUnsupported)
	}
	mem := buffer(t.Size)
	us, err := inBatches(t, t.Time, func(rounds int) error {
		for range rounds {
			mr, err := r.device().Register(mem, rdma.RemoteRead|rdma.RemoteWrite)
			if err != nil {
				return err
			}
			if err := r.device().Deregister(mr); err != nil {
				return err
			}
		}
		return nil
	}, 1)
	return []figure{{"registration", "us", us, "register"}}, err
}

// followNothing does nothing: Follow waits for the leader's stop.
func followNothing(*VerbsSession, wire, *verbsTrial) error { return nil }
