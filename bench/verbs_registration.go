package bench

// What it costs to register memory with a device. The leader measures; the follower is
// there because some devices register only with a queue pair.

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

func leadRegistration(_ *VerbsSession, w wire, t *verbsTrial) ([]figure, error) {
	r, ok := w.(remoteWire)
	if !ok || r.lossy() {
		return nil, fmt.Errorf("%w: it registers no memory", rdma.ErrUnsupported)
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

// followNothing waits for the leader's stop, which Follow hears.
func followNothing(*VerbsSession, wire, *verbsTrial) error { return nil }
