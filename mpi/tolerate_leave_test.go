package mpi_test

import (
	"errors"

	"github.com/muster-mpi/muster/mpi"
)

const leaveProgram = "leave after a failure"

// leaveAfterFailure sends messages to a rank that is killed, and leaves the job.
func leaveAfterFailure(c *mpi.Comm) error {
	if err := c.Barrier(); err != nil {
		return err
	}
	if c.Rank() == 1 {
		killNow()
		select {} // until it is killed
	}
	for {
		if err := mpi.Send(c, []int{1}, 1, 1); err != nil {
			if errors.Is(err, mpi.ErrProcFailed) {
				return nil
			}
			return err
		}
	}
}
