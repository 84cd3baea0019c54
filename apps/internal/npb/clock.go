package npb

import (
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// Clock measures the timed part of an application on one rank, and how much of it the rank
// spends in communication:
//
//	clock.Start(c)
//	…
//	clock.EnterMPI()
//	err := mpi.Allreduce(c, sum, sum, mpi.Sum)
//	clock.LeaveMPI()
//	…
//	clock.Stop()
//	return clock.Finish(c, result)
type Clock struct {
	start, entered time.Time
	total, in      time.Duration
}

// Start begins the timed part on all ranks together. What was measured before is dropped,
// so that the calls of an untimed iteration need no clock of their own.
func (k *Clock) Start(c *mpi.Comm) error {
	err := c.Barrier()
	*k = Clock{start: time.Now()}
	return err
}

// EnterMPI marks the start of communication, LeaveMPI its end.
func (k *Clock) EnterMPI() { k.entered = time.Now() }

// LeaveMPI adds the time since EnterMPI to that of communication.
func (k *Clock) LeaveMPI() { k.in += time.Since(k.entered) }

// Stop ends the timed part.
func (k *Clock) Stop() { k.total = time.Since(k.start) }

// Finish adds the times to the result: that of the slowest rank, and the mean of the time
// in MPI. All ranks get the same.
func (k *Clock) Finish(c *mpi.Comm, r Result) (Result, error) {
	longest, sum := []float64{k.total.Seconds()}, []float64{k.in.Seconds()}
	if err := mpi.Allreduce(c, longest, longest, mpi.Max); err != nil {
		return r, err
	}
	if err := mpi.Allreduce(c, sum, sum, mpi.Sum); err != nil {
		return r, err
	}
	r.Ranks = c.Size()
	r.Seconds = longest[0]
	r.InMPI = sum[0] / float64(r.Ranks)
	return r, nil
}
