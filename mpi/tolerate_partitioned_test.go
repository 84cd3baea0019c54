package mpi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/mpi"
)

// TestRevokeEndsPartitioned checks that a revoked communicator interrupts both sides of
// partitioned messages with a rank that is alive, paired or not.
func TestRevokeEndsPartitioned(t *testing.T) {
	for _, paired := range []bool{false, true} {
		t.Run(fmt.Sprintf("paired %v", paired), func(t *testing.T) {
			tolerantJob(t, 3, []int{2}, func(c *mpi.Comm) error {
				d, err := c.Group().Include(0, 1)
				if err != nil {
					return err
				}
				two, err := c.CreateGroup(d, 0)
				if err != nil {
					return err
				}
				if two.Rank() == 1 {
					if paired {
						p := mpi.PsendInit(two, make([]int, 4), 2, 0, 5)
						if err := p.Start(); err != nil {
							return err
						}
						if err := p.Ready(1); err != nil { // the other partition never is
							return err
						}
						if err := mpi.Send(c, []int{0}, 0, 1); err != nil {
							return err
						}
					}
					return two.Revoke()
				}
				p := mpi.PrecvInit(two, make([]int, 4), 2, 1, 5)
				if err := p.Start(); err != nil {
					return err
				}
				if paired {
					if _, err := mpi.Recv(c, []int{0}, 1, 1); err != nil {
						return err
					}
				}
				if _, err := p.Wait(); !errors.Is(err, mpi.ErrRevoked) {
					return fmt.Errorf("the receive ends with %v, want an error of class ErrRevoked", err)
				}
				return nil
			})
		})
	}
}
